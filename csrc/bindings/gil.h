// The interpreter's lock, which a native call gives back while it computes.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>

#include "../kernels/cpu/parallel_rows.h"

namespace stea {

// Takes the lock again, or never returns: where the interpreter has ended meanwhile, CPython before 3.14 ends the
// thread that asks for the lock by unwinding its stack. Nothing of that may run: destructors would release Python
// objects without the lock, and the first function that must not throw would abort the process. So the unwinding ends
// here, in a handler that does not return, and the thread waits for the end of the process, as it does in later
// versions.
inline void take_gil(PyThreadState* state) {
    try {
        PyEval_RestoreThread(state);
    } catch (...) {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

// While it lives, the calling thread does without the lock.
class ReleasedGil {
  public:
    ReleasedGil() : state_(PyEval_SaveThread()) {}
    ~ReleasedGil() { take_gil(state_); }
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;

    // What `question` answers with the lock.
    template <typename Question>
    auto ask(Question&& question) {
        take_gil(state_);
        const auto answer = question();
        state_ = PyEval_SaveThread();
        return answer;
    }

  private:
    PyThreadState* state_;
};

// Calls kernel(poll) without the lock; Ctrl-C is looked for through the interpreter's own signal check.
template <typename Kernel>
void run_interruptibly(Kernel&& kernel) {
    try {
        ReleasedGil released;
        kernel([&released] { return released.ask([] { return PyErr_CheckSignals() != 0; }); });
    } catch (const Interrupted&) {
        throw pybind11::error_already_set();
    }
}

}  // namespace stea
