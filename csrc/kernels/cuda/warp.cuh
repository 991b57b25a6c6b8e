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

// The lanes before this one, as bits.
__device__ inline unsigned lanes_before() { return (1u << lane_id()) - 1u; }

// The sum of the values of the lanes up to this one.
template <typename T>
__device__ T warp_inclusive_sum(T value) {
    for (int distance = 1; distance < kWarp; distance *= 2) {
        const T before = __shfl_up_sync(kAllLanes, value, distance);
        if (lane_id() >= distance) value += before;
    }
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

}  // namespace stea::cuda
