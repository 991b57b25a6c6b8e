// One block of CUDA threads as fibers: their states, barriers and warps.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cuda_on_cpu.h"
#include "fiber.h"

namespace cuda_on_cpu {

constexpr int kLanes = 32;

class Block;

enum class State { kRunnable, kAtBarrier, kInWarp, kLeft };

struct WarpCall {
    WarpOp op;
    unsigned mask;
    uint64_t value;
    int argument;
    int width;
    uint64_t result;
};

struct Thread {
    Block* block;
    unsigned index;
    State state = State::kLeft;
    Site site{};  // where it waits
    WarpCall call{};
    std::unique_ptr<Fiber> fiber;
};

// The threads that may run, in the order in which they became so. It allocates nothing while fibers run: their
// allocations would look like memory that threads exchange without order.
class RunQueue {
  public:
    void reset(size_t capacity) {
        ring_.assign(capacity, nullptr);
        first_ = size_ = 0;
    }
    bool empty() const { return size_ == 0; }
    size_t size() const { return size_; }
    void push(Thread* thread) { ring_[(first_ + size_++) % ring_.size()] = thread; }
    // Takes the thread in this place; the first one takes its place.
    Thread* take(size_t place) {
        Thread*& taken = ring_[(first_ + place) % ring_.size()];
        std::swap(taken, ring_[first_]);
        Thread* thread = ring_[first_];
        first_ = (first_ + 1) % ring_.size();
        --size_;
        return thread;
    }

  private:
    std::vector<Thread*> ring_;
    size_t first_ = 0;
    size_t size_ = 0;
};

// What all blocks of a launch share.
struct Grid {
    dim3 grid, block;
    size_t shared_bytes;
    const char* name;
    const std::function<void()>* body;
    unsigned seed;
};

// Blocks run one after the other on the fibers of a `Block` object.
class Block {
  public:
    // Runs the block with this number; false if it was reported.
    bool run(const Grid& grid, unsigned number);
    const std::string& report() const { return report_; }
    void* shared() { return shared_.get(); }
    void drop_shared() { shared_.reset(); }
    const Grid& grid() const { return *grid_; }
    dim3 index() const;

    void barrier(Thread& thread, const Site& site);
    uint64_t warp_operation(Thread& thread, const Site& site, const WarpCall& call);
    void maybe_yield(Thread& thread);

  private:
    void prepare(const Grid& grid, unsigned number);
    void thread_body(Thread& thread);
    void leave(Thread& thread);
    Thread& next();
    void make_runnable(Thread& thread);
    void wait(Thread& thread);
    void open_barrier_if_complete();
    bool warp_is_complete(const Thread& thread) const;
    void finish_warp_operation(Thread& thread);
    uint64_t result_for(const Thread& thread);
    Thread& lane(const Thread& thread, int number) { return *threads_[thread.index / kLanes * kLanes + number]; }
    const Thread& lane(const Thread& thread, int number) const {
        return *threads_[thread.index / kLanes * kLanes + number];
    }
    bool has_left(const Thread& thread, int number) const;
    void check_mask(const Thread& thread);
    void fail(const std::string& text);
    std::string where_all_wait() const;

    const Grid* grid_ = nullptr;
    unsigned number_ = 0;
    std::vector<std::unique_ptr<Thread>> threads_;  // of this block; more fibers may be kept for larger ones
    std::vector<std::unique_ptr<Thread>> spare_;
    std::unique_ptr<char[]> shared_;
    std::unique_ptr<Fiber> scheduler_;
    RunQueue runnable_;
    std::minstd_rand random_;
    unsigned at_barrier_ = 0;
    unsigned left_ = 0;
    unsigned barrier_generation_ = 0;
    unsigned warp_generation_[kLanes] = {};
    std::string report_;
    // Objects through which ThreadSanitizer learns of an order. Two of each kind: who comes to the next barrier early
    // must not be seen by who leaves this one late.
    char start_order_ = 0;
    char end_order_ = 0;
    char barrier_order_[2] = {};
    char warp_order_[kLanes][2] = {};
};

Thread& current_thread();
void set_current_thread(Thread* thread);
void* launch_end_order();

}  // namespace cuda_on_cpu
