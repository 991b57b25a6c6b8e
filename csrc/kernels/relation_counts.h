// Expected statement counts behind P(r in r'), from one side.
//
//   num(r, r') = sum over r(x, y) of 1 - prod over r'(x', y') of (1 - w(x, x') w(y, y'))
//   den(r)     = sum over r(x, y) of 1 - prod over all (x', y') of (1 - w(x, x') w(y, y'))
//
// r runs over the R relations of the source triples, r' over the 2R' of the target's closure; the
// inverse half follows by symmetry. A row contributes the triples whose head it is.
//
// Each statement's term is rounded to a multiple of 2^-scale_bits and summed as an integer: integer
// sums do not depend on their order, hence neither on the number of threads nor on the row blocks.
//
// Parallel decomposition: a thread takes whole head rows and counts into its own map; maps are merged.
#pragma once

#include "views.h"

namespace stea {

struct CountArgs {
    GraphView source;
    GraphView target;
    BeliefsView beliefs;
    int32_t num_source_relations;  // R
    int32_t num_target_relations;  // R'
    double scale;                  // 2^scale_bits
    RowRange rows;
};

}  // namespace stea
