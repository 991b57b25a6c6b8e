// Spreads numbered tasks over threads.
#pragma once

#include <cstdint>
#include <functional>

#include "interruption.h"

namespace stea {

// Calls task(worker, number) once for every number below `count`; the first exception is rethrown at the end.
using NumberedTask = std::function<void(int worker, int64_t number)>;
void parallel_tasks(int64_t count, int n_threads, const NumberedTask& task);

// The same, until the poll asks to stop.
void parallel_tasks(int64_t count, int n_threads, const NumberedTask& task, const Poll& poll);

}  // namespace stea
