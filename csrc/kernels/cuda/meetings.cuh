// Pairs of neighbours that meet, in the order in which a warp found them, and sums that lose nothing.
#pragma once

#include "warp.cuh"

namespace stea::cuda {

// The first edges by which a pair (e, e') of the warp's 32 leads to neighbours n and n', and w(n, n').
struct Meeting {
    int32_t pair;
    int32_t edge;
    int32_t target_edge;
    float weight;
};

constexpr int kQueuePlaces = 2 * kWarp;  // fewer than 32 wait while 32 more come

// A ring in shared memory; every lane knows its front and its size.
class MeetingQueue {
  public:
    __device__ explicit MeetingQueue(Meeting* ring) : ring_(ring) {}
    __device__ int size() const { return size_; }

    // Each lane adds its meeting if it has one; together no more than there is room for.
    __device__ void push(bool has_one, const Meeting& meeting) {
        const unsigned lanes = __ballot_sync(kAllLanes, has_one);
        if (has_one) ring_[(front_ + size_ + __popc(lanes & lanes_before())) % kQueuePlaces] = meeting;
        size_ += __popc(lanes);
    }

    // The lane's own of the `count` in front of the queue, which all lanes take away together; none: a pair of 32.
    __device__ Meeting take(int count) {
        __syncwarp(kAllLanes);  // they have been written
        Meeting meeting{kWarp, 0, 0, 0.0f};
        if (lane_id() < count) meeting = ring_[(front_ + lane_id()) % kQueuePlaces];
        __syncwarp(kAllLanes);  // and read, before others come in their places
        front_ = (front_ + count) % kQueuePlaces;
        size_ -= count;
        return meeting;
    }

  private:
    Meeting* ring_;
    int front_ = 0;
    int size_ = 0;
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
