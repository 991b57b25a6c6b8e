// Rows or groups of the pair set over threads.
#pragma once

#include <vector>

#include "../pair_set.h"
#include "parallel_rows.h"

namespace stea {

// Something that each worker has for itself; no two of them share a cache line.
template <typename Scratch>
class WorkerLocal {
  public:
    explicit WorkerLocal(int n_threads) : scratches_(static_cast<size_t>(n_threads)) {}
    Scratch& of(int worker) { return scratches_[static_cast<size_t>(worker)].value; }

  private:
    struct alignas(128) Apart {
        Scratch value;
    };
    std::vector<Apart> scratches_;
};

// Calls task(worker, group) for every group, the largest first; `options.poll` may end it.
template <typename Task>
void over_groups(const int64_t* indptr, int64_t count, const PairOptions& options, Task&& task) {
    const GraphView sizes{indptr, nullptr, count, indptr[count]};
    parallel_rows(sizes, RowRange{0, count}, options.n_threads, task, [](int) {}, options.poll);
}

}  // namespace stea
