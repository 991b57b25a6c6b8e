// Inner products of single pairs of vectors, in double precision: for scores of pairs that no search has found.
//
// Parallel decomposition: a thread takes chunks of pairs; pairs of one row that stand side by side read it once.
#pragma once

#include <cstdint>

#include "tier.h"

namespace stea {

template <typename Number>
struct PairProducts {
    const Number* queries;  // [rows, width]
    const Number* keys;     // [columns, width]
    int64_t width;
    const int32_t* rows;     // [count]
    const int32_t* columns;  // [count]
    int64_t count;
    double* out;  // [count]
};

template <typename Number>
void pair_products(const PairProducts<Number>& args, const Tier& tier, int n_threads);

}  // namespace stea
