// One layer of relational reflection with attention, and its gradient.
//
// x_j is row j of the columns [source, source + heads * dim) of z, rho_e = unit[sets[e]], k_y and k_rho the attention
// of a head. For every edge e = (i, j) and head
//
//   dot_e   = x_j . rho_e
//   logit_e = k_y . x_j - 2 dot_e on_y[set] + on_unit[set]     on_y = k_y . rho, on_unit = k_rho . rho
//   a_e     = softmax of the logits over the edges of i
//   x'_i    = phi(sum over e of a_e x_j - 2 a_e dot_e rho_e)   in the columns from `target`
//
// A layer may be made for some rows only: position[i] is then the row of i in the gradient that comes back, or -1 for a
// row that is not wanted, which is left alone and has no gradient.
//
// Parallel decomposition: a thread takes whole rows: of i for the layer and for the gradients of the logits, of j for
// the gradient of x_j (over the edges that lead to j, found by `reverse`), of sets for the gradient of rho (see
// `SetSums`). Rows are independent and each is summed in one fixed order. Denormal numbers count as zero on every
// thread.
#pragma once

#include <cstdint>

namespace stea {

constexpr int64_t kMostHeads = 8;

enum class Activation { kTanh, kRelu, kNone };

// The distinct pairs (i, j) of neighbours, by i, and the same by sets.
struct ReflectionGraph {
    const int64_t* indptr;      // [num_entities + 1]
    const int32_t* rows;        // [num_edges] i
    const int32_t* columns;     // [num_edges] j
    const int32_t* reverse;     // [num_edges] the place of (j, i)
    const int32_t* sets;        // [num_edges]
    const int64_t* set_indptr;  // [num_sets + 1]
    const int32_t* set_edges;   // [num_edges] edges by their set
    int64_t num_entities;
    int64_t num_edges;
    int64_t num_sets;
};

// What the layer and its gradient read.
struct ReflectionLayer {
    ReflectionGraph graph;
    const int32_t* position;  // [num_entities], or null: all rows are wanted
    float* z;                 // [num_entities, width]; the gradient only reads it
    int64_t width;
    int64_t source;
    int64_t heads;
    int64_t dim;
    const float* unit;      // [num_sets, dim]
    const float* k_y;       // [heads, dim]
    const float* on_y;      // [num_sets, heads]
    float* dots;            // [num_edges, heads]
    float* weights;         // [num_edges, heads] a_e
    Activation activation;  // of the layer's output; in the gradient, of x
};

struct ReflectionForward {
    ReflectionLayer layer;
    const float* on_unit;  // [num_sets, heads]
    int64_t target;
};

// Sums for the sets that many edges have, by slices of the rows: most of the gradient of rho is added up while the rows
// of x and of the gradient are at hand, and only the edges of rare sets are visited set by set. A slot holds the sums
// of d_unit [dim], d_on_y [heads] and d_on_unit [heads].
struct SetSums {
    const int32_t* slots;  // [num_sets], -1 for a rare set
    int64_t count;
    int64_t slices;       // that of a row does not depend on the number of threads
    const float* values;  // [slices, count, dim + 2 heads]
};

struct ReflectionBackward {
    ReflectionLayer layer;
    const float* k_unit;  // [heads, dim]
    const float* grad;    // [rows, heads * dim] of the weighted sums; the row of i is position[i], or i
    // The gradient that z receives besides: [rows, outer_width], of which the columns from `source` are those of x. Its
    // row of i is outer_position[i] (-1: none), or i where there are no positions.
    const float* outer;
    int64_t outer_width;
    const int32_t* outer_position;
    SetSums sums;
    float* d_logits;   // [num_edges, heads]
    float* d_dots;     // [num_edges, heads]
    float* d_near;     // [num_entities, heads] of k_y . x_j
    float* d_x;        // [num_entities, heads * dim], before the activation that made x
    float* d_on_y;     // [num_sets, heads]
    float* d_on_unit;  // [num_sets, heads]
    float* d_unit;     // [num_sets, dim], added to
    float* d_k_y;      // [heads, dim]: what comes through k_y . x_j
};

}  // namespace stea
