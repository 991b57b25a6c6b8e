// A kernel of a tier without the interpreter's lock.
#pragma once

#include <string>

#include "../kernels/cpu/isa.h"
#include "../kernels/cpu/run.h"
#include "arrays.h"
#include "gil.h"

namespace stea {

template <typename Kernel>
void run_released(const std::string& tier, int n_threads, Kernel&& kernel) {
    const Tier& chosen = find_tier(tier);
    const int threads = checked_threads(n_threads);
    run_interruptibly([&](const auto& poll) { kernel(RunOptions{chosen, threads, poll}); });
}

}  // namespace stea
