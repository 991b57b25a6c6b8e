// The rows of an encoder's kernel over threads.
#pragma once

#include "parallel_rows.h"
#include "run.h"
#include "standard_floats.h"

namespace stea {

// Calls kernel(row) for every row; those with many entries first.
template <typename Kernel>
void over_rows(const int64_t* indptr, int64_t rows, const RunOptions& options, const Kernel& kernel) {
    const GraphView sizes{indptr, nullptr, rows, indptr[rows]};
    parallel_rows(
        sizes, {0, rows}, options.n_threads,
        [&](int, int64_t row) {
            const FlushedDenormals flushed;
            kernel(row);
        },
        [](int) {}, options.poll);
}

}  // namespace stea
