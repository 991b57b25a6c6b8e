// A kernel without the interpreter's lock, and Ctrl-C while it runs.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "../kernels/cpu/isa.h"
#include "../kernels/cpu/parallel_rows.h"
#include "../kernels/cpu/run.h"
#include "arrays.h"
#include "gil.h"

namespace stea {

// Runs a kernel without the GIL; Ctrl-C is looked for through the interpreter's own signal check.
template <typename Kernel>
void run_released(const std::string& tier, int n_threads, Kernel&& kernel) {
    const Tier& chosen = find_tier(tier);
    const int threads = checked_threads(n_threads);
    try {
        ReleasedGil released;
        const auto poll = [&released] { return released.ask([] { return PyErr_CheckSignals() != 0; }); };
        kernel(RunOptions{chosen, threads, poll});
    } catch (const Interrupted&) {
        throw py::error_already_set();
    }
}

}  // namespace stea
