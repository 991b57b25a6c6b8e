// The product of two dense matrices, out = a * b, whose bits depend on nothing but a and b. (A BLAS rounds otherwise
// with another number of threads, and on another processor.)
//
// Parallel decomposition: a thread takes blocks of rows; every element is summed in the order of the depth. Denormal
// numbers count as zero on every thread.
#pragma once

#include <cstdint>

namespace stea {

constexpr int64_t kPanelWidth = 16;  // columns of b that lie together

struct DenseProduct {
    const float* a;       // [rows, depth]
    const float* panels;  // [ceil(columns / 16), depth, 16]: b, with zeros beyond its columns
    float* out;           // [rows, columns]
    int64_t rows;
    int64_t depth;
    int64_t columns;
};

}  // namespace stea
