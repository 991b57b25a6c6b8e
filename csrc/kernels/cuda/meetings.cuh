// Pairs of neighbours that meet, in the order in which a warp found them, and sums that lose nothing.
#pragma once

#include "warp.cuh"

namespace stea::cuda {

// What a set of neighbours may hold: a bit per hash. What was noted always passes, little else does.
constexpr int kFilterWords = 8;
constexpr int32_t kMostFiltered = 128;  // neighbours; with more, too many of the bits are set

struct NeighborFilter {
    unsigned words[kFilterWords];

    __device__ static unsigned hash(int32_t neighbor) { return static_cast<unsigned>(neighbor) * 0x9E3779B1u; }
    __device__ void set_all(bool value) {
        for (unsigned& word : words) word = value ? ~0u : 0u;
    }
    __device__ void note(int32_t neighbor) {
        const unsigned place = hash(neighbor);
        atomicOr(&words[place >> 29], 1u << (place >> 24 & 31));
    }
    __device__ bool may_hold(int32_t neighbor) const {
        const unsigned place = hash(neighbor);
        return (words[place >> 29] >> (place >> 24 & 31) & 1u) != 0;
    }
};

// A pair (e, e') of the warp's 32, and the first edges by which e leads to a neighbour n and e' to n'. An edge that is
// still to be searched is ~n or ~n'. The weight is what is believed of the two, w(n, n').
struct alignas(16) Meeting {
    int32_t pair;
    int32_t edge;
    int32_t target_edge;
    float weight;
};

constexpr unsigned kQueuePlaces = 2 * kWarp;  // fewer than 32 wait while 32 more come

// A ring in shared memory; every lane knows its front and its size.
class MeetingQueue {
  public:
    __device__ explicit MeetingQueue(Meeting* ring) : ring_(ring) {}
    __device__ int size() const { return static_cast<int>(end_ - front_); }

    // Each lane adds its meeting if it has one; together no more than there is room for.
    __device__ void push(bool has_one, const Meeting& meeting) {
        const unsigned lanes = __ballot_sync(kAllLanes, has_one);
        if (has_one) ring_[(end_ + __popc(lanes & lanes_before())) % kQueuePlaces] = meeting;
        end_ += __popc(lanes);
    }

    // The lane's own of the `count` in front of the queue, which all lanes take away together.
    __device__ Meeting take(int count) {
        __syncwarp(kAllLanes);  // they have been written
        Meeting meeting{};
        if (lane_id() < count) meeting = ring_[(front_ + lane_id()) % kQueuePlaces];
        __syncwarp(kAllLanes);  // and read, before others come in their places
        front_ += static_cast<unsigned>(count);
        return meeting;
    }

  private:
    Meeting* ring_;
    unsigned front_ = 0;  // both only grow
    unsigned end_ = 0;
};

// A sum of floats, and what its rounding lost.
struct TwoFloats {
    float high = 0.0f;
    float low = 0.0f;

    __device__ void add(float value) {
        const float sum = high + value, part = sum - high;
        low += (high - (sum - part)) + (value - part);
        high = sum;
    }
    __device__ float rounded() const { return high + low; }
};

}  // namespace stea::cuda
