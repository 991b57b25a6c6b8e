// Knobs of the harness for ctypes, beside the Python module it is linked into.
#include "runtime.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void harness_schedule(unsigned seed, int workers) {
    cuda_on_cpu::settings().seed = seed;
    cuda_on_cpu::settings().workers = workers;
}
EXPORTED void harness_pose(int device_type) { cuda_on_cpu::settings().device_type = device_type; }
EXPORTED void harness_capability(int capability) { cuda_on_cpu::settings().capability = capability; }
EXPORTED void harness_fail_call(const char* call, int error, int n) { cuda_on_cpu::fail_call(call, error, n); }
EXPORTED void harness_set_last_error(int error) { cuda_on_cpu::set_last_error(error); }
EXPORTED void harness_make_current(int device) { cuda_on_cpu::make_current(device); }
EXPORTED void harness_expect_stream(const void* stream) { cuda_on_cpu::expect_stream(stream); }
EXPORTED unsigned harness_contexts() { return cuda_on_cpu::contexts(); }
EXPORTED void harness_forget_contexts() { cuda_on_cpu::forget_contexts(); }
