// How much of what the neighbours of an entity say has changed.
#pragma once

#include "pair_set.h"
#include "views.h"

namespace stea {

// d(e) = sum over the edges (r, n) of e of share(r) * (moved(n) + change(r) * weight(n)), added up in the order of the
// edges in double precision: so it does not depend on the number of threads. Out [rows].
struct ChangesArgs {
    GraphView graph;
    RowRange rows;
    const float* shares;   // [2R] of relations
    const float* changes;  // [2R]
    const float* moved;    // [num_entities]
    const float* weights;  // [num_entities]
    float* out;
};
void changes_around(const ChangesArgs& args, const PairOptions& options);

}  // namespace stea
