// Proposals: for every row the targets for which its matched neighbours speak most, whether or not an encoder
// thought of them.
//
//   L'(e, e') = - sum over (r, n) in N(e), beliefs (n, n'), edges (r', n') of e' of log(1 - x) + log(1 - y)
//
// with x and y as in evidence.h: the evidence of all pairs that share a believed neighbour, found by walking
// from e over its neighbours' counterparts. A row keeps the k targets with the largest L' > 0 (ties: the lower id).
//
// With Witnesses::kNeighbor, of the statements between e and n and between n' and e' only the strongest counts for each
// belief (n, n'), as in evidence.h.
//
// Hubs: facts (r, n) are followed in the order of the bit length of the number of edges behind them, then of
// their position, until the next one would exceed the row's budget of edges, or eight have been followed and a fifth of
// that budget has been walked. What is left out says little: a neighbour that half the graph shares has almost no
// inverse functionality, and a counterpart that none of eight rarer ones leads to is not found by it.
//
// Parallel decomposition: a thread takes whole source rows; each row has one fixed order of summation.
#pragma once

#include "views.h"

namespace stea {

constexpr int64_t kFactsThatAreEnough = 8;
constexpr int64_t kShareThatIsEnough = 5;  // of the budget, one in so many edges

struct ProposalArgs {
    GraphView source;
    GraphView target;
    BeliefsView beliefs;
    RelationTableView relations;
    int32_t num_source_relations;  // R
    int32_t num_target_relations;  // R'
    const uint8_t* open_rows;      // [source entities] 0: the row gets no proposals
    const uint8_t* open_targets;   // [target entities] 0: never proposed
    int64_t k;
    int64_t budget;
    RowRange rows;
    Witnesses witnesses;
    int32_t* indices;  // out [rows, k], best first, -1 = none
    float* evidence;   // out [rows, k], L', 0 where there is none
};

}  // namespace stea
