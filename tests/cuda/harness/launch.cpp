// Launches: blocks over workers, and what a kernel may ask about itself.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "block.h"

namespace cuda_on_cpu {
namespace {

constexpr size_t kMostSharedBytes = 48 * 1024;
constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostBlocks = 0x7fffffff, kMostBlocksAcross = 65535;  // in x, and in y and z

bool is_possible(const dim3& grid, const dim3& block, size_t shared_bytes) {
    const unsigned threads = block.x * block.y * block.z;
    return threads > 0 && threads <= kMostThreads && shared_bytes <= kMostSharedBytes && grid.x > 0 && grid.y > 0 &&
           grid.z > 0 && grid.x <= kMostBlocks && grid.y <= kMostBlocksAcross && grid.z <= kMostBlocksAcross;
}

// A worker runs its blocks on two sets of fibers in turns: for ThreadSanitizer, blocks that follow each other on one
// worker are then as unordered as blocks of different workers.
struct Worker {
    Block blocks[2];
};

std::vector<std::unique_ptr<Worker>> workers;
std::mutex launching;  // one launch at a time: streams are not simulated
char end_order = 0;

std::vector<unsigned> block_order(const Grid& grid) {
    std::vector<unsigned> order(grid.grid.x * grid.grid.y * grid.grid.z);
    std::iota(order.begin(), order.end(), 0u);
    if (grid.seed != 0) std::shuffle(order.begin(), order.end(), std::minstd_rand(grid.seed));
    return order;
}

struct Run {
    const Grid& grid;
    std::vector<unsigned> order;
    std::atomic<size_t> next{0};
    std::mutex mutex;
    std::string report;

    void work(Worker& worker) {
        int turn = 0;
        for (size_t i = next++; i < order.size(); i = next++) {
            Block& block = worker.blocks[turn++ % 2];
            if (block.run(grid, order[i])) continue;
            const std::lock_guard<std::mutex> lock(mutex);
            if (report.empty()) report = block.report();
            next = order.size();
        }
    }
};

void run_on_workers(Run& run, size_t count) {
    while (workers.size() < count) workers.push_back(std::make_unique<Worker>());
    if (count == 1) return run.work(*workers[0]);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) threads.emplace_back([&run, i] { run.work(*workers[i]); });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

void* launch_end_order() { return &end_order; }

bool accepts_launch(const dim3& grid, const dim3& block, size_t shared_bytes, const void* stream, const char* name) {
    const std::string complaint = stream_complaint(stream);
    if (!complaint.empty()) throw std::runtime_error("cuda_on_cpu: " + std::string(name) + ": " + complaint);
    const bool possible = is_possible(grid, block, shared_bytes);
    if (!possible) set_last_error(cudaErrorInvalidConfiguration);
    return possible;
}

void launch(dim3 grid, dim3 block, size_t shared_bytes, const void* stream, const char* name,
            const std::function<void()>& body) {
    const std::lock_guard<std::mutex> lock(launching);
    if (!accepts_launch(grid, block, shared_bytes, stream, name)) return;
    const DeviceAccess access(current_device());
    const Grid shape{grid, block, shared_bytes, name, &body, settings().seed};
    Run run{shape, block_order(shape), {}, {}, {}};
    run_on_workers(run, static_cast<size_t>(settings().workers));
    order_acquire(&end_order);
    for (const auto& worker : workers) {
        for (Block& each : worker->blocks) each.drop_shared();
    }
    if (run.report.empty()) return;
    workers.clear();  // blocks that were reported cannot be used again
    throw std::runtime_error("cuda_on_cpu: " + std::string(name) + ": " + run.report);
}

dim3 thread_index() {
    const Thread& thread = current_thread();
    const dim3& size = thread.block->grid().block;
    return {thread.index % size.x, thread.index / size.x % size.y, thread.index / size.x / size.y};
}
dim3 block_index() { return current_thread().block->index(); }
dim3 block_dim() { return current_thread().block->grid().block; }
dim3 grid_dim() { return current_thread().block->grid().grid; }
void* shared_memory() { return current_thread().block->shared(); }

void block_barrier(const Site& site) { current_thread().block->barrier(current_thread(), site); }
void maybe_yield() { current_thread().block->maybe_yield(current_thread()); }
uint64_t warp_operation(WarpOp op, const Site& site, unsigned mask, uint64_t value, int argument, int width) {
    return current_thread().block->warp_operation(current_thread(), site, {op, mask, value, argument, width, 0});
}

}  // namespace cuda_on_cpu
