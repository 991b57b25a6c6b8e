// A sparse matrix times a dense one: out[i] = sum over the entries e of row i of values[e] * x[columns[e]], where x and
// out may be some columns of wider matrices.
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
    int64_t width;
    const float* x;  // the first of `width` columns
    int64_t x_stride;
    float* out;  // the first of `width` columns
    int64_t out_stride;
};

}  // namespace stea
