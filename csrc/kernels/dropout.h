// Dropout: out = x * scale where the draw of an element is at least `zeroed` of 65,536, otherwise 0.
//
// The draws are not stored. Sixteen bits for every element come from a hash of the key, the row and the column, so that
// the gradient, which is dropped in the same way, draws them again.
//
// Parallel decomposition: a thread takes whole rows.
#pragma once

#include <cstdint>

namespace stea {

struct Dropout {
    const float* x;  // [num_rows, width]
    float* out;      // the same shape
    int64_t num_rows;
    int64_t width;
    uint64_t key;
    uint32_t zeroed;
    float scale;
};

}  // namespace stea
