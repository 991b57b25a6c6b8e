// The triple view of propagation: random features of the tensor product of every neighbour with the relation that leads
// to it, summed over the neighbours.
//
//   out[i, 16 k + c] = sum over the edges e of row i of strengths[relations[e], k] * x[columns[e], 16 k + c]
//   squares[i]      += sum of the squares of what was written
//
// for some of the relation dimensions k; out may be some columns of a wider matrix.
//
// Parallel decomposition: a thread takes whole rows; each is summed in the order of its edges.
#pragma once

#include <cstdint>

namespace stea {

constexpr int64_t kFeatures = 16;  // of one relation dimension

struct TripleView {
    const int64_t* indptr;     // [num_rows + 1]
    const int32_t* columns;    // [num_edges]
    const int32_t* relations;  // [num_edges]
    int64_t num_rows;
    int64_t num_edges;
    int64_t dimensions;
    const float* strengths;  // [*, dimensions]
    const float* x;          // [*, 16 dimensions]
    float* out;              // the first of 16 dimensions columns
    int64_t out_stride;
    double* squares;  // [num_rows], added to
};

}  // namespace stea
