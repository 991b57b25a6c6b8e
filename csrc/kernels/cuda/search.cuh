// Binary searches in sorted rows.
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

// The two strengths of a pair of relations.
__device__ inline Strength find_strength(const StrengthsView& strengths, int32_t relation, int32_t target_relation) {
    int64_t low = strengths.indptr[relation], high = strengths.indptr[relation + 1];
    const int64_t end = high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strengths.columns[middle] < target_relation) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < end && strengths.columns[low] == target_relation) return strengths.values[low];
    return {strengths.source_default[relation], strengths.target_default[target_relation]};
}

}  // namespace stea::cuda
