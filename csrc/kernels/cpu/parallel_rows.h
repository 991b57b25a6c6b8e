// Spreads source rows over threads.
#pragma once

#include <cstdint>
#include <functional>

#include "../views.h"
#include "interruption.h"

namespace stea {

// Runs one row on one worker. `worker` is below the number of threads asked for, and no two threads
// share one at a time.
using RowTask = std::function<void(int worker, int64_t row)>;

// What a worker does after its last row, on the same thread.
using WorkerTask = std::function<void(int worker)>;

// Runs every row of `rows` once. Rows of hubs go first, one at a time and largest first, so that no
// thread starts a long row when the others are about to finish; the rest follow in small chunks.
// The first exception of a task is rethrown in the calling thread, after all threads have ended.
void parallel_rows(const GraphView& graph, RowRange rows, int n_threads, const RowTask& task, const WorkerTask& finish,
                   const Poll& poll);

}  // namespace stea
