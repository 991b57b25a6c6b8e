// One stack of execution that can be left and entered again, known to the sanitizers as such.
#pragma once

#include <cstddef>
#include <functional>

namespace cuda_on_cpu {

class Fiber {
  public:
    Fiber();  // stands for the stack it is created on
    explicit Fiber(std::function<void()> body);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Leaves `from`, the fiber that runs now, for this one.
    void enter(Fiber& from);

  private:
    static void start(Fiber* self);
    void arrived();

    std::function<void()> body_;
    char* stack_ = nullptr;  // null for the stack of a thread
    void* stack_pointer_ = nullptr;
    const void* bottom_ = nullptr;  // as AddressSanitizer wants it
    size_t size_ = 0;
    void* fake_stack_ = nullptr;
    void* tsan_fiber_ = nullptr;
    Fiber* came_from_ = nullptr;
};

// For ThreadSanitizer: what happened before a release is seen by whoever acquires the same object.
void order_release(void* object);
void order_acquire(void* object);

}  // namespace cuda_on_cpu
