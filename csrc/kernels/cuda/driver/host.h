// CUDA for a host compiler: read before a .cu file, it makes the launchers compile without nvcc, over the driver alone.
//
// The kernels themselves are only parsed: nothing calls them, so what they use is declared and never defined. They are
// compiled at run time, and `load_kernels` says where they are.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__
#define __launch_bounds__(...)

// The part of the runtime that the launchers use. Errors have the driver's numbers, which are those of the runtime.
using cudaError_t = int;
using cudaStream_t = struct CUstream_st*;
constexpr cudaError_t cudaSuccess = 0;
struct cudaDeviceProp {
    char name[256];
    int major;
    int minor;
};
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);  // -1: no context is current
cudaError_t cudaSetDevice(int device);   // -1: make none current
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDriverGetVersion(int* version);

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

extern const dim3 threadIdx, blockIdx, blockDim, gridDim;
void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);
void __threadfence();
unsigned __activemask();
unsigned __ballot_sync(unsigned mask, int value);
int __any_sync(unsigned mask, int value);
int __all_sync(unsigned mask, int value);
int __popc(unsigned bits);
int __popcll(unsigned long long bits);
int __ffs(int bits);
int __ffsll(long long bits);
int __clz(int bits);
int __clzll(long long bits);
int __float_as_int(float value);
float __int_as_float(int bits);
float __fdividef(float a, float b);
float __logf(float value);
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32);
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32);
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32);
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32);
template <typename T>
unsigned __match_any_sync(unsigned mask, T value);
template <typename T>
T __reduce_add_sync(unsigned mask, T value);
template <typename T>
T __ldg(const T* address);
template <typename T>
T atomicAdd(T* address, T value);
template <typename T>
T atomicOr(T* address, T value);
template <typename T>
T atomicMax(T* address, T value);
template <typename T>
T atomicMin(T* address, T value);
template <typename T>
T atomicExch(T* address, T value);
template <typename T>
T atomicCAS(T* address, T expected, T value);

namespace stea::cuda::driver {

// Notes a kernel by what the compiler calls it; returns its number.
size_t note_kernel(const std::string& signature);

// Enqueues a kernel on the current device; sets the last error where that fails.
void launch(size_t kernel, const dim3& grid, const dim3& block, size_t shared_bytes, cudaStream_t stream,
            void** parameters);

template <auto* kernel>
std::string signature() {
    return __PRETTY_FUNCTION__;
}

template <auto* kernel>
struct Launcher;

template <typename... Parameters, void (*kernel)(Parameters...)>
struct Launcher<kernel> {
    static inline const size_t number = note_kernel(signature<kernel>());

    // Takes its parameters by value: a launch needs their addresses.
    static void with(const dim3& grid, const dim3& block, size_t shared_bytes, cudaStream_t stream,
                     Parameters... values) {
        void* parameters[] = {&values...};
        launch(number, grid, block, shared_bytes, stream, parameters);
    }
};

}  // namespace stea::cuda::driver

#define STEA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    ::stea::cuda::driver::Launcher<kernel>::with((grid), (block), (shared_bytes), (stream), __VA_ARGS__)
#define STEA_DYNAMIC_SHARED(type, name) extern type name[]
