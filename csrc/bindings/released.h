// Kernels that run without the interpreter's lock and can be interrupted.
#pragma once

#include <pybind11/pybind11.h>

#include "../kernels/cpu/parallel_rows.h"
#include "gil.h"

namespace stea {

// Calls kernel(poll) without the GIL; Ctrl-C is looked for through the interpreter's own signal check.
template <typename Kernel>
void released_with_poll(Kernel&& kernel) {
    try {
        ReleasedGil released;
        kernel([&released] { return released.ask([] { return PyErr_CheckSignals() != 0; }); });
    } catch (const Interrupted&) {
        throw pybind11::error_already_set();
    }
}

}  // namespace stea
