// What the lanes of a warp compute together. Every lane gets the result. The order of the operations is fixed, so two
// runs give the same bits.
#pragma once

#include <cstdint>

namespace stea::cuda {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarp = 32;

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int warp_in_block() { return static_cast<int>(threadIdx.x) / kWarp; }
__device__ inline int warps_per_block() { return static_cast<int>(blockDim.x) / kWarp; }

// Number of this warp among all warps of the launch.
__device__ inline int64_t warp_in_grid() {
    return static_cast<int64_t>(blockIdx.x) * warps_per_block() + warp_in_block();
}

template <typename T>
__device__ T warp_sum(T value) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
    return value;
}

__device__ inline double warp_product(double value) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) value *= __shfl_xor_sync(kAllLanes, value, distance);
    return value;
}

__device__ inline int32_t warp_min(int32_t value) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
        const int32_t other = __shfl_xor_sync(kAllLanes, value, distance);
        value = other < value ? other : value;
    }
    return value;
}

// The sum over the block, for its first thread. `partial` is shared memory for one value per warp.
__device__ inline double block_sum(double value, double* partial) {
    value = warp_sum(value);
    if (lane_id() == 0) partial[warp_in_block()] = value;
    __syncthreads();
    double total = 0.0;
    if (warp_in_block() == 0) total = warp_sum(lane_id() < warps_per_block() ? partial[lane_id()] : 0.0);
    return total;
}

}  // namespace stea::cuda
