// A sparse matrix times a dense one: out[i] = sum over the entries e of row i of values[e] * x[columns[e]].
//
// Parallel decomposition: a thread takes whole rows; each is summed in the order of its entries. Denormal numbers count
// as zero on every thread.
#pragma once

#include <cstdint>

namespace stea {

struct SparseRows {
    const int64_t* indptr;   // [num_rows + 1]
    const int32_t* columns;  // [num_entries]
    const float* values;     // [num_entries]
    int64_t num_rows;
    int64_t num_entries;
    const float* x;  // [*, width]
    int64_t width;
    float* out;  // [num_rows, width]
};

}  // namespace stea
