// Errors of the CUDA runtime as exceptions with the call's name.
#pragma once

#include "device.h"
#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace stea::cuda {

inline cudaStream_t as_stream(Stream stream) { return static_cast<cudaStream_t>(stream); }

// Throws CudaError("<call>: <name>: <text>"). An error that destroys the context is remembered, and every later
// DeviceGuard refuses to work in it.
void check(cudaError_t error, const char* call);

// After a launch: errors of its configuration, and those that earlier work left behind.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace stea::cuda
