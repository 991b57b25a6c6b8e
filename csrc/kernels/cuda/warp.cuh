// What the lanes of a warp compute together. Every lane gets the result. The order of the operations is fixed, so two
// runs give the same bits.
#pragma once

#include <cstdint>

namespace stea::cuda {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarp = 32;

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x % kWarp); }
__device__ inline int warp_in_block() { return static_cast<int>(threadIdx.x / kWarp); }
__device__ inline int warps_per_block() { return static_cast<int>(blockDim.x / kWarp); }

// Number of this warp among all warps of the launch.
__device__ inline int64_t warp_in_grid() {
    return static_cast<int64_t>(blockIdx.x) * warps_per_block() + warp_in_block();
}

// The lanes before this one, as bits.
__device__ inline unsigned lanes_before() { return (1u << lane_id()) - 1u; }

// The last of some lanes, of which there is at least one.
__device__ inline int last_lane(unsigned lanes) { return kWarp - 1 - __clz(static_cast<int>(lanes)); }

// The sum of the values of the lanes up to this one.
template <typename T>
__device__ T warp_inclusive_sum(T value) {
    for (int distance = 1; distance < kWarp; distance *= 2) {
        const T before = __shfl_up_sync(kAllLanes, value, distance);
        if (lane_id() >= distance) value += before;
    }
    return value;
}

// Where an item lies when every lane has a stretch of items and all stretches stand in one line: the lane that has it,
// and its number there. `ends` is where the lane's own stretch ends in that line; all lanes call this together.
struct Place {
    int lane = 0;
    int32_t number = 0;

    __device__ Place(int32_t item, int32_t ends) {
        for (int step = kWarp / 2; step > 0; step /= 2) {
            if (__shfl_sync(kAllLanes, ends, lane + step - 1) <= item) lane += step;
        }
        const int32_t before = __shfl_sync(kAllLanes, ends, lane == 0 ? 0 : lane - 1);
        number = item - (lane == 0 ? 0 : before);
    }
};

// The lanes, out of some, whose value is the one that is asked for; of both, only the lowest `kBits` bits count. Every
// lane may ask for another.
template <int kBits>
__device__ unsigned lanes_with(unsigned value, unsigned asked, unsigned lanes) {
    for (int bit = 0; bit < kBits; ++bit) {
        const unsigned set = __ballot_sync(kAllLanes, (value >> bit & 1u) != 0);
        lanes &= (asked >> bit & 1u) != 0 ? set : ~set;
    }
    return lanes;
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
