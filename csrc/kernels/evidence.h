// Evidence L(e, e') for every (row, candidate).
//
//   L(e, e') = - sum over (r, n) in N(e), (r', n') in N(e') of
//                log(1 - x) + log(1 - y),   x = strength.source * w(n, n'), y = strength.target * w(n, n')
//
// With Witnesses::kNeighbor the statements about one pair of neighbours are one witness, the strongest of them:
//
//   L(e, e') = sum over the distinct neighbours n of e and n' of e' of the
//                maximum over r(e, n), r'(e', n') of - log(1 - x) - log(1 - y)
//
// and the number of witnesses is that of the pairs (n, n') with a maximum above 0 in float32. Edges are ordered by
// (neighbour, relation): a witness is a run of edges of e against a run of edges of e'.
//
// Each factor 1 - x is clamped below at kMinFactor. A candidate of -1 gets evidence 0 and no witness.
//
// Parallel decomposition: a thread takes whole source rows. Rows are independent and each is summed in
// one fixed order, so the result does not depend on the number of threads or on the instruction set.
#pragma once

#include "views.h"

namespace stea {

constexpr double kMinFactor = 1e-4;

struct EvidenceArgs {
    GraphView source;
    GraphView target;
    CandidateRows candidates;  // by the number of the row in the range
    BeliefsView beliefs;
    RelationTableView relations;
    int32_t num_source_relations;  // R
    int32_t num_target_relations;  // R'
    RowRange rows;
    Witnesses witnesses;
    float* evidence;         // out, laid out as the candidates
    int32_t* witness_count;  // out likewise, or null: not wanted; counted with kNeighbor only
};

}  // namespace stea
