// The loss of hard negatives and its gradient, from a block of products of queries with all entities.
//
// For query q and entity j: u_j = base[q] + 2 (q . z_j) - norms[j], but 0 for the two ends of the query's pair; with
// the mean and the deviation of u over all entities
//
//   losses[q] = log(sum over j of exp(scale (u_j - mean) / deviation))
//   c_qj      = derivative of losses[q] by u_j, mean and deviation held constant; 0 for the ends
//   pushes[q] = sum over j of c_qj,   pulled[q] = sum over j of c_qj z_j
//   gradient[j] += sum over q of c_qj (q - z_j)
//
// The products may be rough (`byte_products.h`). Mean, deviation and the entities that weigh little are taken from
// them; those above e^-cut of the largest are computed again from q and z_j. What is below it counts in the loss but
// has no gradient, and below e^-kLeast it counts as zero.
//
// Parallel decomposition: a thread takes whole queries (rough products: a block of them, whose products with all
// entities only it ever sees), then whole entities; each is summed in one fixed order.
#pragma once

#include <cstdint>

namespace stea {

constexpr float kLeast = 20.0f;

struct NegativeBlock {
    const float* products;  // [num_queries, num_entities], rows `stride` apart
    int64_t stride;
    bool rough;
    int64_t num_queries;
    int64_t num_entities;
    int64_t width;
    const float* queries;  // [num_queries, width]
    const float* z;        // [num_entities, width]
    const float* norms;    // [num_entities] squared
    const float* base;     // [num_queries]
    const float* centre;   // [num_queries] about the mean of 2 q . z_j - norms[j]: without it squares would cancel
    const int32_t* ends;   // [num_queries, 2], different ones
    double scale;
    float cut;
    float* losses;    // [num_queries]
    float* pushes;    // [num_queries]
    float* pulled;    // [num_queries, width]
    float* gradient;  // [num_entities, width], added to
};

// An entity that has a gradient, c_qj.
struct Negative {
    int32_t entity;
    float weight;
};

// A query of an entity, c_qj.
struct Pusher {
    int32_t query;
    float weight;
};

}  // namespace stea
