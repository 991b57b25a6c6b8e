// Spreads numbered tasks over threads.
#pragma once

#include <cstdint>
#include <functional>

namespace stea {

// Calls task(worker, number) once for every number below `count`; the first exception is rethrown at the end.
void parallel_tasks(int64_t count, int n_threads, const std::function<void(int worker, int64_t number)>& task);

}  // namespace stea
