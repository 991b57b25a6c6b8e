// P(r in r') of every observed pair from its expected counts, completed by the inverses.
//
//   P(r in r') = min(1, (num(r, r') + smoothing * prior) / (den(r) + smoothing))
//
// r in r' says the same as r^-1 in r'^-1: row R + r repeats row r with inverted columns. One pass over the pairs, on
// the calling thread.
#pragma once

#include <cstdint>

namespace stea {

struct ContainmentArgs {
    const int64_t* keys;  // [count] r * 2R' + r', increasing
    const int64_t* num;   // [count] in units of `unit`
    const int64_t* den;   // [R] "
    int64_t count;
    int32_t num_source_relations;  // R
    int32_t num_target_relations;  // R'
    double unit;
    double smoothing;
    double prior;
};

// A sparse matrix [2R, 2R'] with increasing columns in every row.
struct ContainmentOut {
    int64_t* indptr;   // [2R + 1]
    int32_t* columns;  // [2 count]
    float* probs;      // [2 count]
};

// False where the keys are not in order, or are of other relations.
bool fill_containment(const ContainmentArgs& args, const ContainmentOut& out);

}  // namespace stea
