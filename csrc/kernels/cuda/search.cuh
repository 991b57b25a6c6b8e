// Where something is: binary searches in sorted rows, and a table by a hash.
#pragma once

#include "views.h"

namespace stea::cuda {

// The first edge in [begin, end) that is not before (neighbor, relation); edges are ordered by both.
__device__ inline const Edge* first_edge(const Edge* begin, const Edge* end, int32_t neighbor, int32_t relation) {
    while (begin < end) {
        const Edge* middle = begin + (end - begin) / 2;
        const bool before =
            middle->neighbor < neighbor || (middle->neighbor == neighbor && middle->relation < relation);
        if (before) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

// The number of the first of `size` edges that leads to this neighbour or to one behind it.
__device__ inline int32_t first_of_neighbor(const Edge* edges, int32_t size, int32_t neighbor) {
    int32_t begin = 0;
    while (size > 0) {
        const int32_t half = size / 2;
        const bool before = edges[begin + half].neighbor < neighbor;
        begin = before ? begin + half + 1 : begin;
        size = before ? size - half - 1 : half;
    }
    return begin;
}

// The row that holds an edge: the last one that begins at or before it. Rows without edges are passed over.
__device__ inline int64_t row_of_edge(const int64_t* indptr, int64_t num_rows, int64_t edge) {
    int64_t low = 0, high = num_rows;
    while (low + 1 < high) {
        const int64_t middle = low + (high - low) / 2;
        if (indptr[middle] <= edge) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// The two strengths of a pair of relations. `device_data.py` files the pairs by the same hash.
__device__ inline Strength find_strength(const StrengthsView& strengths, int32_t relation, int32_t target_relation) {
    const uint32_t mixed = static_cast<uint32_t>(relation) * 0x9E3779B1u + static_cast<uint32_t>(target_relation);
    const uint32_t bucket = mixed * 0x85EBCA6Bu >> strengths.shift;
    const int32_t end = strengths.starts[bucket + 1];
    for (int32_t i = strengths.starts[bucket]; i < end; ++i) {
        const RelationPair pair = strengths.pairs[i];
        if (pair.relation == relation && pair.target_relation == target_relation) return pair.strength;
    }
    return {strengths.source_default[relation], strengths.target_default[target_relation]};
}

}  // namespace stea::cuda
