// Expected statement counts behind P(r in r') on a GPU; the contract is that of ../relation_counts.h.
//
// Parallel decomposition: a warp takes a run of edges, and for each statement r(x, y) among them a lane takes pairs
// (x', y') of beliefs. Round by round the warp agrees on the next r' between any x' and y', multiplies its factors in
// a fixed order and adds the term to an integer: degrees do not matter, and sums of integers have no order.
//
// num(r, r') is kept in a hash table of `capacity` slots, a power of two: keys r * 2R' + r' + 1 (0 = free) and values.
// Where the table is too small, `overflow` is set and the sums are worthless: call again with a larger one.
#pragma once

#include "device.h"
#include "views.h"

namespace stea::cuda {

using CountKey = unsigned long long;  // integers that CUDA has atomics for
using CountSum = unsigned long long;

struct CountArgs {
    GraphView source;
    GraphView target;
    BeliefsView beliefs;
    int32_t num_source_relations;  // R
    int32_t num_target_relations;  // R'
    double scale;                  // 2^scale_bits
    RowRange edges;                // the edges of the rows to count
    CountKey* keys;                // out [capacity], zeros before
    CountSum* num;                 // out [capacity], zeros before
    int64_t capacity;
    CountSum* den;      // out [R], zeros before
    int32_t* overflow;  // out [1], zero before
};

void run_relation_counts(const CountArgs& args, int block_size, Stream stream);

}  // namespace stea::cuda
