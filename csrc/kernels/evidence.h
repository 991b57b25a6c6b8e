// Evidence L(e, e') for every (row, candidate).
//
//   L(e, e') = - sum over (r, n) in N(e), (r', n') in N(e') of
//                log(1 - x) + log(1 - y),   x = strength.source * w(n, n'), y = strength.target * w(n, n')
//
// Each factor 1 - x is clamped below at kMinFactor. A candidate of -1 gets evidence 0.
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
    CandidatesView candidates;
    BeliefsView beliefs;
    RelationTableView relations;
    int32_t num_source_relations;  // R
    int32_t num_target_relations;  // R'
    RowRange rows;
    float* evidence;  // out [rows, k]
};

}  // namespace stea
