// The part of the CUDA runtime that the launchers use, over host memory, with faults on demand.
#pragma once

#include <cstddef>
#include <string>

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
using cudaStream_t = struct CUstream_st*;
struct cudaDeviceProp {
    char name[256];
    int major;
    int minor;
};

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

namespace cuda_on_cpu {

// What a launch runs with; set between launches.
struct Settings {
    unsigned seed = 0;  // 0: threads in order; else a permuted schedule
    int workers = 1;    // threads of the host that run blocks
};
Settings& settings();

// The next call of this name fails with this error. Cleared by an empty name.
void fail_next(const std::string& call, cudaError_t error);
// Allocations beyond so many bytes at once fail.
void limit_memory(size_t bytes);
// Makes the runtime report a kernel that went wrong.
void set_last_error(cudaError_t error);
size_t allocations_alive();

}  // namespace cuda_on_cpu
