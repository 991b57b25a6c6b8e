// The rows that an int8 search scans before the columns hear of them.
#pragma once

#include <algorithm>
#include <vector>

#include "int8_lines.h"
#include "int8_panels.h"

namespace stea {

// Lines as `scan` compares them, padded with lines that nothing can reach.
struct ScanLines {
    explicit ScanLines(int64_t count);
    void set(int64_t place, const Line& line);
    void set_threshold(int64_t place, const Line& line);

    std::vector<float> inverse;
    std::vector<float> threshold;
    std::vector<float> offset;
    std::vector<float> factor;  // of exponents
    std::vector<float> shift;
};

inline int64_t rounded_up_to(int64_t count, int64_t size) { return (count + size - 1) / size * size; }

struct Wave {
    // What was found for the columns of a range, by one block.
    struct Found {
        std::vector<SharedPairs::Dropped> candidates;  // queries are columns, keys are rows
        std::vector<SharedPairs::Scored> exact;
    };

    Wave(const ColumnPanels& panels, int64_t most_rows, bool with_sums);

    // Begins anew, with other rows and nothing found.
    void begin(int64_t first_row, int64_t count);

    int64_t block_rows(int64_t block) const { return std::min(block_size, rows - block * block_size); }
    Found& list(int64_t block, int64_t range) { return found[static_cast<size_t>(block * ranges + range)]; }
    Found& list_of(int64_t block, int32_t column) { return list(block, column >> range_bits); }

    int64_t first = 0;
    int64_t rows = 0;
    int64_t block_size = kBlockRows;  // at most that; does not depend on the number of threads
    int64_t blocks = 0;
    int range_bits;  // a range of columns is that power of two
    int64_t ranges;
    int64_t row_bytes;
    uint8_t row_bias;  // with 8 bits, rows are unsigned
    AlignedBytes slivers;
    float coarseness = 0.0f;   // largest residual / scale
    std::vector<Found> found;  // [blocks, ranges]
    int64_t padded_columns;
    std::vector<float> column_sums;  // [blocks, padded_columns], if wanted
};

}  // namespace stea
