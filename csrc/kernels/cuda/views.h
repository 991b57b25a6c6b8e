// What the CUDA kernels read beside the views of ../views.h. All pointers are device pointers.
#pragma once

#include "../views.h"

namespace stea::cuda {

// A stored pair of relations. Sixteen bytes: read as one vector.
struct alignas(16) RelationPair {
    int32_t relation;         // r
    int32_t target_relation;  // r'
    Strength strength;
};

// (r, r') -> Strength: the stored pairs by buckets of a hash, of which there are at least two for each pair. Most
// buckets hold no pair or one, so one read finds it or shows that there is none.
struct StrengthsView {
    const int32_t* starts;  // [2^bits + 1] where the pairs of a bucket begin
    int32_t shift;          // 32 - bits
    const RelationPair* pairs;
    const float* source_default;  // [2R] strength.source of pairs that are not stored
    const float* target_default;  // [2R'] strength.target of pairs that are not stored
};

}  // namespace stea::cuda
