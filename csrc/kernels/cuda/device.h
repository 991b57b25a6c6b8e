// Devices, streams and errors, without a CUDA header: what the bindings need to know of the runtime.
#pragma once

#include <stdexcept>
#include <string>

namespace stea::cuda {

using Stream = void*;  // a cudaStream_t; null is the legacy default stream

// DLPack's number of the memory that the kernels read.
int dlpack_device_type();

class CudaError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct DeviceCount {
    int count;
    std::string error;  // why there is none
};

// What the driver says of itself and of a device, without a context on it.
DeviceCount device_count();
struct Device {
    std::string name;
    int compute_capability;  // 10 * major + minor: 75 for 7.5
};
Device device_properties(int device);
int driver_version();  // 1000 * major + 10 * minor; 0 where there is no driver

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
