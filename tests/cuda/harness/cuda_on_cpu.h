// CUDA for g++: read before a .cu file (-include), it makes the file compile as C++ and run on the CPU.
//
// Every CUDA thread is a fiber. A barrier or a *_sync call blocks its fiber until the others it waits for have come
// to the same call; the scheduler picks the next fiber, in an order that a seed permutes. Barriers that only some
// threads reach, lanes that have left but are named in a mask, and deadlocks end the launch with a report.
//
// What the kernels may touch is implemented out of line, in files compiled without ThreadSanitizer: the sanitizer then
// sees the memory of the kernels only, ordered by barriers only.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "runtime.h"

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace cuda_on_cpu {

// Where a call stands in the source: threads that wait together must have come to the same place.
struct Site {
    const char* name;
    const char* file;
    int line;
};

enum class WarpOp { kShuffle, kShuffleUp, kShuffleDown, kShuffleXor, kBallot, kAny, kAll, kSync };

dim3 thread_index();
dim3 block_index();
dim3 block_dim();
dim3 grid_dim();
void* shared_memory();

void block_barrier(const Site& site);
uint64_t warp_operation(WarpOp op, const Site& site, unsigned mask, uint64_t value, int argument, int width);
void maybe_yield();  // between atomics, so that schedules permute them too

// Whether a GPU takes this launch; sets the last error if not. Throws where it comes on a wrong stream.
bool accepts_launch(const dim3& grid, const dim3& block, size_t shared_bytes, const void* stream, const char* name);
void launch(dim3 grid, dim3 block, size_t shared_bytes, const void* stream, const char* name,
            const std::function<void()>& body);

// The arguments are evaluated once and copied, as at a launch on a GPU.
template <typename... Parameters, typename... Arguments>
void launch_kernel(dim3 grid, dim3 block, size_t shared_bytes, const void* stream, const char* name,
                   void (*kernel)(Parameters...), Arguments... arguments) {
    launch(grid, block, shared_bytes, stream, name, [=] { kernel(arguments...); });
}

template <typename T>
T shuffle(WarpOp op, const Site& site, unsigned mask, T value, int argument, int width = 32) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = warp_operation(op, site, mask, bits, argument, width);
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

template <typename T>
T atomic_max(T* address, T value) {
    maybe_yield();
    T before = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (before < value &&
           !__atomic_compare_exchange_n(address, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return before;
}

}  // namespace cuda_on_cpu

#define threadIdx (::cuda_on_cpu::thread_index())
#define blockIdx (::cuda_on_cpu::block_index())
#define blockDim (::cuda_on_cpu::block_dim())
#define gridDim (::cuda_on_cpu::grid_dim())

#define CUDA_ON_CPU_SITE(name) (::cuda_on_cpu::Site{name, __FILE__, __LINE__})
#define CUDA_ON_CPU_SHUFFLE(op, name, mask, ...) \
    ::cuda_on_cpu::shuffle(::cuda_on_cpu::WarpOp::op, CUDA_ON_CPU_SITE(name), mask, __VA_ARGS__)
#define CUDA_ON_CPU_VOTE(op, name, mask, value) \
    ::cuda_on_cpu::warp_operation(::cuda_on_cpu::WarpOp::op, CUDA_ON_CPU_SITE(name), mask, (value) ? 1 : 0, 0, 32)

#define __syncthreads() ::cuda_on_cpu::block_barrier(CUDA_ON_CPU_SITE("__syncthreads"))
#define __syncwarp(mask) (void)CUDA_ON_CPU_VOTE(kSync, "__syncwarp", mask, false)
#define __shfl_sync(mask, ...) CUDA_ON_CPU_SHUFFLE(kShuffle, "__shfl_sync", mask, __VA_ARGS__)
#define __shfl_up_sync(mask, ...) CUDA_ON_CPU_SHUFFLE(kShuffleUp, "__shfl_up_sync", mask, __VA_ARGS__)
#define __shfl_down_sync(mask, ...) CUDA_ON_CPU_SHUFFLE(kShuffleDown, "__shfl_down_sync", mask, __VA_ARGS__)
#define __shfl_xor_sync(mask, ...) CUDA_ON_CPU_SHUFFLE(kShuffleXor, "__shfl_xor_sync", mask, __VA_ARGS__)
#define __ballot_sync(mask, value) static_cast<unsigned>(CUDA_ON_CPU_VOTE(kBallot, "__ballot_sync", mask, value))
#define __any_sync(mask, value) static_cast<int>(CUDA_ON_CPU_VOTE(kAny, "__any_sync", mask, value))
#define __popc(bits) __builtin_popcount(bits)
#define __ffs(bits) __builtin_ffs(bits)
#define __clz(bits) ((bits) == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)))
#define __fdividef(a, b) ((a) / (b))
#define __logf(x) std::log(static_cast<float>(x))
#define __all_sync(mask, value) static_cast<int>(CUDA_ON_CPU_VOTE(kAll, "__all_sync", mask, value))

// Relaxed, as on a GPU: atomics order no other memory.
#define CUDA_ON_CPU_ATOMIC(expression) (::cuda_on_cpu::maybe_yield(), (expression))
template <typename T>
T atomicAdd(T* address, T value) {
    return CUDA_ON_CPU_ATOMIC(__atomic_fetch_add(address, value, __ATOMIC_RELAXED));
}
template <typename T>
T atomicOr(T* address, T value) {
    return CUDA_ON_CPU_ATOMIC(__atomic_fetch_or(address, value, __ATOMIC_RELAXED));
}
template <typename T>
T atomicExch(T* address, T value) {
    return CUDA_ON_CPU_ATOMIC(__atomic_exchange_n(address, value, __ATOMIC_RELAXED));
}
template <typename T>
T atomicCAS(T* address, T expected, T value) {
    ::cuda_on_cpu::maybe_yield();
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
template <typename T>
T atomicMax(T* address, T value) {
    return ::cuda_on_cpu::atomic_max(address, value);
}

// What launch.cuh leaves to be defined: the kernel's C++ is run, or in the mode "ptx" what nvcc made of it.
#ifdef HARNESS_PTX
#include "../ptx/launch.h"
#define STEA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    ::ptx::launch_as<kernel>(kernel, (grid), (block), (shared_bytes), (stream), __VA_ARGS__)
#else
#define STEA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    ::cuda_on_cpu::launch_kernel((grid), (block), (shared_bytes), (stream), #kernel, kernel, __VA_ARGS__)
#endif
#define STEA_DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(::cuda_on_cpu::shared_memory())
