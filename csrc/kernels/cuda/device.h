// Devices, streams and errors, without a CUDA header: what the bindings need to know of the runtime.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace stea::cuda {

using Stream = void*;  // a cudaStream_t; null is the legacy default stream

// DLPack's number of the memory that the kernels read.
int dlpack_device_type();

class CudaError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Scratch memory could not be had; the message says how much was needed.
class OutOfMemory : public CudaError {
    using CudaError::CudaError;
};

struct DeviceCount {
    int count;
    std::string error;  // why there is none
};

DeviceCount device_count();
std::string device_name(int device);

// Makes a device current and restores the former one. Refuses a context that an earlier error has destroyed.
class DeviceGuard {
  public:
    explicit DeviceGuard(int device);
    ~DeviceGuard();
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;

  private:
    int former_ = 0;
};

}  // namespace stea::cuda
