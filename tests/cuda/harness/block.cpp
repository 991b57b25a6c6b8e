#include "block.h"

#include <sstream>

namespace cuda_on_cpu {
namespace {

thread_local Thread* current = nullptr;

std::string describe(const Site& site) {
    const std::string file = site.file;
    return std::string(site.name) + " at " + file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line);
}

bool same(const Site& a, const Site& b) { return a.line == b.line && std::string(a.file) == b.file; }

}  // namespace

Thread& current_thread() { return *current; }
void set_current_thread(Thread* thread) { current = thread; }

dim3 Block::index() const {
    const dim3& grid = grid_->grid;
    return {number_ % grid.x, number_ / grid.x % grid.y, number_ / grid.x / grid.y};
}

void Block::prepare(const Grid& grid, unsigned number) {
    grid_ = &grid;
    number_ = number;
    random_.seed(grid.seed * 7919u + number + 1u);
    at_barrier_ = left_ = 0;
    const unsigned size = grid.block.x * grid.block.y * grid.block.z;
    runnable_.reset(size);
    while (threads_.size() > size) {
        spare_.push_back(std::move(threads_.back()));
        threads_.pop_back();
    }
    while (threads_.size() < size && !spare_.empty()) {
        threads_.push_back(std::move(spare_.back()));
        spare_.pop_back();
    }
    while (threads_.size() < size) {
        threads_.push_back(std::make_unique<Thread>());
        Thread* thread = threads_.back().get();
        thread->block = this;
        thread->fiber = std::make_unique<Fiber>([this, thread] { thread_body(*thread); });
    }
    for (unsigned i = 0; i < size; ++i) {
        threads_[i]->index = i;
        make_runnable(*threads_[i]);
    }
    if (!shared_) shared_.reset(new char[grid.shared_bytes]);
    // What another block left behind must not look like a zeroed table. A loop: memset is known to the sanitizer.
    volatile char* bytes = shared_.get();
    for (size_t i = 0; i < grid.shared_bytes; ++i) bytes[i] = static_cast<char>(0xA5);
}

bool Block::run(const Grid& grid, unsigned number) {
    prepare(grid, number);
    scheduler_ = std::make_unique<Fiber>();
    order_release(&start_order_);
    while (report_.empty() && left_ < threads_.size()) {
        if (runnable_.empty()) {
            report_ = "deadlock" + where_all_wait();
            break;
        }
        Thread& thread = next();
        set_current_thread(&thread);
        thread.fiber->enter(*scheduler_);
    }
    if (!report_.empty()) {  // these fibers will never end
        threads_.clear();
        shared_.reset();
    }
    return report_.empty();
}

Thread& Block::next() { return *runnable_.take(grid_->seed == 0 ? 0 : random_() % runnable_.size()); }

void Block::thread_body(Thread& thread) {
    for (;;) {
        order_acquire(&start_order_);
        order_acquire(&end_order_);  // the memory of the block that ran on these fibers before
        (*grid_->body)();
        order_release(&end_order_);
        order_release(launch_end_order());
        leave(thread);
        scheduler_->enter(*thread.fiber);
    }
}

void Block::leave(Thread& thread) {
    thread.state = State::kLeft;
    ++left_;
    const unsigned bit = 1u << (thread.index % kLanes);
    for (int number = 0; number < kLanes && thread.index / kLanes * kLanes + number < threads_.size(); ++number) {
        const Thread& other = lane(thread, number);
        if (other.state == State::kInWarp && (other.call.mask & bit) != 0) {
            return fail("lane " + std::to_string(thread.index % kLanes) +
                        " left the kernel, but is named in the mask of " + describe(other.site));
        }
    }
    open_barrier_if_complete();
}

void Block::make_runnable(Thread& thread) {
    thread.state = State::kRunnable;
    runnable_.push(&thread);
}

void Block::wait(Thread& thread) { scheduler_->enter(*thread.fiber); }

void Block::fail(const std::string& text) {
    if (report_.empty()) report_ = text;
}

void Block::maybe_yield(Thread& thread) {
    if (grid_->seed == 0 || random_() % 4 != 0) return;
    make_runnable(thread);
    wait(thread);
}

void Block::barrier(Thread& thread, const Site& site) {
    void* order = &barrier_order_[barrier_generation_ % 2];
    order_release(order);
    thread.state = State::kAtBarrier;
    thread.site = site;
    ++at_barrier_;
    open_barrier_if_complete();
    wait(thread);
    order_acquire(order);
}

void Block::open_barrier_if_complete() {
    if (at_barrier_ == 0 || at_barrier_ + left_ < threads_.size()) return;
    const Thread* first = nullptr;
    for (const auto& thread : threads_) {
        if (thread->state != State::kAtBarrier) continue;
        if (first == nullptr) first = thread.get();
        if (!same(first->site, thread->site)) {
            return fail("divergent barrier: some threads wait at " + describe(first->site) + ", others at " +
                        describe(thread->site));
        }
    }
    if (left_ > 0) {
        return fail("divergent barrier: " + std::to_string(left_) + " threads left the kernel before " +
                    describe(first->site));
    }
    at_barrier_ = 0;
    ++barrier_generation_;
    for (const auto& thread : threads_) make_runnable(*thread);
}

bool Block::has_left(const Thread& thread, int number) const {
    return thread.index / kLanes * kLanes + number >= threads_.size() || lane(thread, number).state == State::kLeft;
}

void Block::check_mask(const Thread& thread) {
    const unsigned mask = thread.call.mask;
    if ((mask >> (thread.index % kLanes) & 1u) == 0) {
        return fail("the calling lane is not in the mask of " + describe(thread.site));
    }
    for (int number = 0; number < kLanes; ++number) {
        if ((mask >> number & 1u) != 0 && has_left(thread, number)) {
            return fail("lane " + std::to_string(number) + " has left the kernel, but is named in the mask of " +
                        describe(thread.site));
        }
    }
}

uint64_t Block::warp_operation(Thread& thread, const Site& site, const WarpCall& call) {
    unsigned& generation = warp_generation_[thread.index / kLanes];
    void* order = &warp_order_[thread.index / kLanes][generation % 2];
    if (call.op == WarpOp::kSync) order_release(order);  // shuffles and votes order no memory
    thread.state = State::kInWarp;
    thread.site = site;
    thread.call = call;
    check_mask(thread);
    if (report_.empty() && warp_is_complete(thread)) {
        finish_warp_operation(thread);
        ++generation;
    }
    wait(thread);
    if (call.op == WarpOp::kSync) order_acquire(order);
    return thread.call.result;
}

bool Block::warp_is_complete(const Thread& thread) const {
    for (int number = 0; number < kLanes; ++number) {
        if ((thread.call.mask >> number & 1u) == 0) continue;
        const Thread& other = lane(thread, number);
        if (other.state != State::kInWarp || other.call.mask != thread.call.mask) return false;
    }
    return true;
}

void Block::finish_warp_operation(Thread& thread) {
    const unsigned mask = thread.call.mask;
    for (int number = 0; number < kLanes; ++number) {
        if ((mask >> number & 1u) == 0) continue;
        Thread& other = lane(thread, number);
        if (other.call.op != thread.call.op || !same(other.site, thread.site)) {
            return fail("divergent warp: some lanes are in " + describe(thread.site) + ", others in " +
                        describe(other.site));
        }
        other.call.result = result_for(other);
    }
    for (int number = 0; number < kLanes; ++number) {
        if ((mask >> number & 1u) != 0) make_runnable(lane(thread, number));
    }
}

std::string Block::where_all_wait() const {
    std::ostringstream text;
    const Thread* shown = nullptr;
    for (const auto& thread : threads_) {
        if (thread->state == State::kLeft || (shown != nullptr && same(shown->site, thread->site))) continue;
        text << (shown == nullptr ? ": thread " : ", thread ") << thread->index << " waits in "
             << describe(thread->site);
        shown = thread.get();
    }
    return text.str();
}

}  // namespace cuda_on_cpu
