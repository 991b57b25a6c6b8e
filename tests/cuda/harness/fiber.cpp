#include "fiber.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Set by the build for all files of a variant; the scheduler itself is never instrumented by ThreadSanitizer.
#ifdef HARNESS_TSAN
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* object);
void __tsan_release(void* object);
}
constexpr unsigned kNoSync = 1;  // a switch orders nothing
#endif
#ifdef HARNESS_ASAN
extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** bottom_old, size_t* size_old);
}
#endif

// HARNESS_UCONTEXT: as on other processors, by the C library, which asks the kernel at every switch.
#if defined(__x86_64__) && !defined(HARNESS_UCONTEXT)
#define OWN_SWITCH
#endif

#ifdef OWN_SWITCH
// Saves the registers that a call must keep, exchanges the stacks, and returns on the other one.
extern "C" void cuda_on_cpu_switch(void** save, void* load);
asm(R"(
.text
.globl cuda_on_cpu_switch
.type cuda_on_cpu_switch, @function
cuda_on_cpu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");
#else
#include <ucontext.h>
#endif

namespace cuda_on_cpu {
namespace {

constexpr size_t kStack = 256 * 1024;  // touched pages only are real; a sanitizer's report needs most of it
constexpr size_t kGuard = 4096;

char* map_stack() {
    void* memory = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, kGuard, PROT_NONE) != 0) {
        std::perror("cuda_on_cpu: stack of a fiber");
        std::abort();
    }
    return static_cast<char*>(memory);
}

// Stacks begin at different lines of the cache, else a thousand of them would share a few.
size_t stagger() {
    static std::atomic<size_t> count{0};
    return count++ % 64 * 320;
}

thread_local Fiber* starting = nullptr;

}  // namespace

void order_release(void* object) {
#ifdef HARNESS_TSAN
    __tsan_release(object);
#else
    (void)object;
#endif
}

void order_acquire(void* object) {
#ifdef HARNESS_TSAN
    __tsan_acquire(object);
#else
    (void)object;
#endif
}

Fiber::Fiber() {
#ifdef HARNESS_TSAN
    tsan_fiber_ = __tsan_get_current_fiber();
#endif
#ifndef OWN_SWITCH
    stack_pointer_ = new ucontext_t;
#endif
}

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(map_stack()), bottom_(stack_), size_(kStack) {
#ifdef HARNESS_TSAN
    tsan_fiber_ = __tsan_create_fiber(0);
#endif
    void (*entry)() = [] { start(starting); };
#ifdef OWN_SWITCH
    // As the switch leaves it: six registers, then where to return; at entry the stack is 8 off 16, as after a call.
    auto* top = reinterpret_cast<uintptr_t*>(stack_ + kStack - 64 - stagger());
    *--top = 0;
    *--top = reinterpret_cast<uintptr_t>(entry);
    for (int i = 0; i < 6; ++i) *--top = 0;
    stack_pointer_ = top;
#else
    auto* context = new ucontext_t;
    getcontext(context);
    context->uc_stack.ss_sp = stack_;
    context->uc_stack.ss_size = kStack - stagger();
    makecontext(context, entry, 0);
    stack_pointer_ = context;
#endif
}

Fiber::~Fiber() {
#ifdef HARNESS_TSAN
    if (stack_ != nullptr) __tsan_destroy_fiber(tsan_fiber_);
#endif
#ifndef OWN_SWITCH
    delete static_cast<ucontext_t*>(stack_pointer_);
#endif
    if (stack_ != nullptr) munmap(stack_, kStack);
}

void Fiber::enter(Fiber& from) {
    came_from_ = &from;
    starting = this;
#ifdef HARNESS_ASAN
    __sanitizer_start_switch_fiber(&from.fake_stack_, bottom_, size_);
#endif
#ifdef HARNESS_TSAN
    __tsan_switch_to_fiber(tsan_fiber_, kNoSync);
#endif
#ifdef OWN_SWITCH
    cuda_on_cpu_switch(&from.stack_pointer_, stack_pointer_);
#else
    swapcontext(static_cast<ucontext_t*>(from.stack_pointer_), static_cast<ucontext_t*>(stack_pointer_));
#endif
    from.arrived();
}

// Runs on the stack that was entered. Where the switch came from a thread's stack, that stack is now known.
void Fiber::arrived() {
#ifdef HARNESS_ASAN
    const void* bottom = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &size);
    if (came_from_ != nullptr && came_from_->stack_ == nullptr) {
        came_from_->bottom_ = bottom;
        came_from_->size_ = size;
    }
#endif
}

void Fiber::start(Fiber* self) {
    self->arrived();
    self->body_();
    std::abort();  // the body of a fiber leaves by entering another one, for good
}

}  // namespace cuda_on_cpu
