#include "runtime.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace cuda_on_cpu {
namespace {

std::mutex mutex;
std::string failing_call;
cudaError_t failure = cudaSuccess;
cudaError_t last_error = cudaSuccess;
size_t memory_limit = static_cast<size_t>(-1);
std::atomic<size_t> alive{0};

cudaError_t result_of(const char* call) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (failing_call != call) return cudaSuccess;
    failing_call.clear();
    return failure;
}

}  // namespace

Settings& settings() {
    static Settings current;
    return current;
}

void fail_next(const std::string& call, cudaError_t error) {
    const std::lock_guard<std::mutex> lock(mutex);
    failing_call = call;
    failure = error;
}

void limit_memory(size_t bytes) { memory_limit = bytes; }
void set_last_error(cudaError_t error) { last_error = error; }
size_t allocations_alive() { return alive; }

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
        case cudaErrorMemoryAllocation:
            return "cudaErrorMemoryAllocation";
        case cudaErrorInvalidConfiguration:
            return "cudaErrorInvalidConfiguration";
        case cudaErrorInsufficientDriver:
            return "cudaErrorInsufficientDriver";
        case cudaErrorInvalidResourceHandle:
            return "cudaErrorInvalidResourceHandle";
        case cudaErrorIllegalAddress:
            return "cudaErrorIllegalAddress";
        default:
            return "cudaErrorUnknown";
    }
}

const char* cudaGetErrorString(cudaError_t) { return "simulated"; }

cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return result_of("cudaGetDeviceCount");
}

cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    *properties = {"CPU", 0, 0};
    return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t) {
    if (bytes > memory_limit) return cudaErrorMemoryAllocation;
    *memory = std::malloc(bytes);
    if (*memory == nullptr) return cudaErrorMemoryAllocation;
    std::memset(*memory, 0xA5, bytes);  // memory of an allocator that reuses is never zero
    ++alive;
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
    std::free(memory);
    --alive;
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
    std::memset(memory, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) { return result_of("cudaStreamSynchronize"); }
