#include <mutex>

#include "check.cuh"
#include "device.h"

namespace stea::cuda {
namespace {

std::mutex mutex;
std::string destroyed_by;  // the first error after which the context cannot be used

std::string describe(cudaError_t error, const char* call) {
    return std::string(call) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
}

// Errors of one call leave the context as it was; all others are sticky: the process must end.
bool leaves_context_intact(cudaError_t error) {
    switch (error) {
        case cudaErrorInvalidValue:
        case cudaErrorMemoryAllocation:
        case cudaErrorInvalidConfiguration:
        case cudaErrorInvalidDevice:
        case cudaErrorInvalidResourceHandle:
        case cudaErrorNoDevice:
        case cudaErrorInsufficientDriver:
            return true;
        default:
            return false;
    }
}

}  // namespace

int dlpack_device_type() {
#ifdef __CUDACC__
    return 2;  // kDLCUDA
#else
    return 1;  // kDLCPU: the test harness works on host memory
#endif
}

void check(cudaError_t error, const char* call) {
    if (error == cudaSuccess) return;
    const std::string text = describe(error, call);
    (void)cudaGetLastError();  // forget what can be forgotten
    if (leaves_context_intact(error)) throw CudaError(text);
    const std::lock_guard<std::mutex> lock(mutex);
    if (destroyed_by.empty()) destroyed_by = text;
    throw CudaError(text + "; the CUDA context of this process can no longer be used");
}

void* allocate(size_t bytes, const char* call, cudaStream_t stream) {
    void* memory = nullptr;
    const cudaError_t error = cudaMallocAsync(&memory, bytes == 0 ? 1 : bytes, stream);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        throw OutOfMemory(std::string(call) + ": out of memory: " + std::to_string(bytes) + " bytes of scratch needed");
    }
    check(error, call);
    return memory;
}

void release(void* memory, cudaStream_t stream) noexcept { (void)cudaFreeAsync(memory, stream); }

DeviceCount device_count() {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return {count, ""};
    (void)cudaGetLastError();
    return {0, error == cudaSuccess ? "the driver reports none" : describe(error, "cudaGetDeviceCount")};
}

std::string device_name(int device) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    return std::string(properties.name) + " (sm_" + std::to_string(properties.major) +
           std::to_string(properties.minor) + ")";
}

DeviceGuard::DeviceGuard(int device) {
    {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!destroyed_by.empty()) {
            throw CudaError("the CUDA context of this process was destroyed by an earlier error (" + destroyed_by +
                            "); start a new process");
        }
    }
    check(cudaGetLastError(), "work before this call");
    check(cudaGetDevice(&former_), "cudaGetDevice");
    check(cudaSetDevice(device), "cudaSetDevice");
}

DeviceGuard::~DeviceGuard() { (void)cudaSetDevice(former_); }

}  // namespace stea::cuda
