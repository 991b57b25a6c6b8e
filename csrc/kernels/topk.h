// The best K of every row and of every column of a similarity matrix, from blocks of it.
//
//   score(i, j) = block(i, j) * row_scale[i] * column_scale[j] - row_offset[i] - column_offset[j]
//
// A call reads one block once and offers each score to its row and to its column. What is kept of a line (a
// row or a column) is a pool of at most `capacity` entries, cut back to the `keep` best whenever it is full;
// the threshold is what a score must exceed to be among them. Ties: the lower index is better.
//
// Parallel decomposition: a thread takes tiles of kTileRows rows. Rows belong to one tile; what a tile found for
// the columns is applied after all tiles of a wave, by ranges of columns. The kept sets do not depend on the
// order, and sums are taken per tile in a fixed order, so no result depends on the number of threads.
#pragma once

#include <cstdint>

namespace stea {

struct ScoreBlock {
    const float* values;  // [rows, columns], row-major
    int64_t rows;
    int64_t columns;
    const float* row_scale;      // [rows]
    const float* column_scale;   // [columns]
    const float* row_offset;     // [rows]
    const float* column_offset;  // [columns]
    int32_t first_row;           // number of the block's first row, and column, in the whole matrix
    int32_t first_column;
};

struct Entry {
    float score;
    int32_t index;
};

// The lines of the block: `entries` and the others start at its first line.
struct PoolView {
    Entry* entries;    // [lines, capacity]
    int32_t* sizes;    // [lines]
    float* threshold;  // [lines] -inf, or what the best are known to exceed, until `keep` entries are there
    float* best;       // [lines] largest score so far, at least the first threshold
    int64_t capacity;  // more than keep
    int64_t keep;
};

// Sums of exp(beta * (score - anchor)) over what has been seen; anchor is the best score at that time.
struct PartitionView {
    double* sums;   // [lines]
    float* anchor;  // [lines]
};

constexpr int64_t kTileRows = 32;

}  // namespace stea
