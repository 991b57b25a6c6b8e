// The beliefs of the neighbours of some rows, to be looked up by their target.
#pragma once

#include "warp.cuh"

namespace stea::cuda {

constexpr int kFiledPlaces = 104;  // beliefs that a warp can file at a time

// w(n, n') of a neighbour n to which a row's `edge` leads first. Sixteen bytes: read as one vector.
struct alignas(16) FiledBelief {
    int32_t target;  // n'
    float weight;
    int32_t edge;
    int32_t next;  // of the list
};

constexpr int kBucketBits = 8, kBuckets = 1 << kBucketBits;
constexpr unsigned kRowStep = 0x85EBCA6Bu, kSpread = 0x9E3779B1u;

__device__ inline unsigned bucket_of(int row, int32_t target) {
    return (static_cast<unsigned>(target) + static_cast<unsigned>(row) * kRowStep) * kSpread >> (32 - kBucketBits);
}

// Beliefs of two rows of a warp in one target are in two buckets, so a list with a target holds those of one row.
__device__ constexpr bool rows_are_apart() {
    for (unsigned rows = 1; rows < kWarp; ++rows) {
        const unsigned apart = rows * kRowStep * kSpread >> (32 - kBucketBits);
        if (apart == 0 || apart == kBuckets - 1) return false;  // a carry may add 1
    }
    return true;
}
static_assert(rows_are_apart(), "");

// In shared memory; the beliefs of a bucket are a list, from the last one that was filed to the first.
class BeliefTable {
  public:
    static constexpr int kNone = 0xff;

    __device__ void clear() {
        __syncwarp(kAllLanes);  // nobody reads what was filed before
        for (int i = lane_id(); i < kBuckets; i += kWarp) heads_[i] = kNone;
        __syncwarp(kAllLanes);
    }

    // The lanes that have a belief file it, at the place with the number of the lane behind `first`. A ballot per bit
    // finds the lanes that file into the same bucket, so the order of lists does not depend on who comes first.
    __device__ void file(bool has_one, int first, int row, FiledBelief belief) {
        const unsigned bucket = bucket_of(row, belief.target);
        const unsigned same = lanes_with<kBucketBits>(bucket, bucket, __ballot_sync(kAllLanes, has_one));
        const unsigned earlier = same & lanes_before();
        belief.next = earlier != 0 ? first + last_lane(earlier) : heads_[bucket];
        __syncwarp(kAllLanes);  // the heads have been read
        if (has_one) {
            places_[first + lane_id()] = belief;
            if (same >> lane_id() == 1u) heads_[bucket] = static_cast<uint8_t>(first + lane_id());
        }
        __syncwarp(kAllLanes);
    }

    // Where the list begins that has the beliefs in a target; kNone ends a list.
    __device__ int first_of(int row, int32_t target) const { return heads_[bucket_of(row, target)]; }
    __device__ const FiledBelief& operator[](int place) const { return places_[place]; }

  private:
    FiledBelief places_[kFiledPlaces];
    uint8_t heads_[kBuckets];
};

}  // namespace stea::cuda
