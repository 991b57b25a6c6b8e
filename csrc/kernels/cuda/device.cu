#include <mutex>

#include "check.cuh"
#include "device.h"

#ifndef STEA_DLPACK_DEVICE_TYPE    // a test harness that works on host memory says which it poses as
#define STEA_DLPACK_DEVICE_TYPE 2  // kDLCUDA
#endif

namespace stea::cuda {
namespace {

std::mutex mutex;
std::string destroyed_by;  // the first error after which the context cannot be used

std::string describe(cudaError_t error, const char* call) {
    return std::string(call) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
}

// After these errors every call of this process fails; all others leave the context as it was.
bool destroys_context(cudaError_t error) {
    switch (static_cast<int>(error)) {
        case 214:  // uncorrectable ECC error
        case 700:  // illegal address
        case 702:  // launch timeout
        case 710:  // device assertion
        case 714:  // hardware stack error
        case 715:  // illegal instruction
        case 716:  // misaligned address
        case 717:  // invalid address space
        case 718:  // invalid program counter
        case 719:  // launch failure
            return true;
        default:
            return false;
    }
}

void refuse_destroyed_context() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (destroyed_by.empty()) return;
    throw CudaError("the CUDA context of this process was destroyed by an earlier error (" + destroyed_by +
                    "); start a new process");
}

}  // namespace

int dlpack_device_type() { return STEA_DLPACK_DEVICE_TYPE; }

void check(cudaError_t error, const char* call) {
    if (error == cudaSuccess) return;
    const std::string text = describe(error, call);
    (void)cudaGetLastError();  // forget what can be forgotten
    if (!destroys_context(error)) throw CudaError(text);
    const std::lock_guard<std::mutex> lock(mutex);
    if (destroyed_by.empty()) destroyed_by = text;
    throw CudaError(text + "; the CUDA context of this process can no longer be used");
}

DeviceCount device_count() {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return {count, ""};
    (void)cudaGetLastError();
    return {0, error == cudaSuccess ? "the driver reports none" : describe(error, "cudaGetDeviceCount")};
}

Device device_properties(int device) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    return {properties.name, 10 * properties.major + properties.minor};
}

int driver_version() {
    int version = 0;
    check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
    return version;
}

DeviceGuard::DeviceGuard(int device) {
    refuse_destroyed_context();
    check(cudaGetLastError(), "work before this call");
    check(cudaGetDevice(&former_), "cudaGetDevice");
    if (former_ != device) check(cudaSetDevice(device), "cudaSetDevice");
}

// Where the former device has no context yet, making it current would give it one: the caller works inside of
// torch.cuda.device, so that it is the same device.
DeviceGuard::~DeviceGuard() {
    int now = 0;
    if (cudaGetDevice(&now) == cudaSuccess && now != former_) (void)cudaSetDevice(former_);
}

}  // namespace stea::cuda
