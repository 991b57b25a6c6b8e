// Knobs of the harness for ctypes, beside the Python module it is linked into.
#include "runtime.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void harness_schedule(unsigned seed, int workers) { cuda_on_cpu::settings() = {seed, workers}; }
EXPORTED void harness_fail_next(const char* call, int error) {
    cuda_on_cpu::fail_next(call, static_cast<cudaError_t>(error));
}
EXPORTED void harness_limit_memory(size_t bytes) { cuda_on_cpu::limit_memory(bytes); }
EXPORTED void harness_set_last_error(int error) { cuda_on_cpu::set_last_error(static_cast<cudaError_t>(error)); }
EXPORTED size_t harness_allocations_alive() { return cuda_on_cpu::allocations_alive(); }
