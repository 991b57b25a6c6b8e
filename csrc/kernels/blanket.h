// The neighbours' factors of the Markov blanket, for every (row, candidate).
//
//   B(e, e') = sum over distinct neighbours n != e, n' in beliefs(n) of w(n, n') * g(n, n' | y_e = e')
//
// where g(n, n' | y_e = e') is the compatibility 1 - exp(-L(n, n')) with the beliefs of e replaced by
// certainty about e'. A candidate of -1 gets 0.
//
// The kernel needs L(n, n') of every belief under the present beliefs (`belief_evidence`). It takes the
// share of e out of it and puts the share of "e is e'" in, so that no second hop is ever walked.
//
// With Witnesses::kNeighbor the share of e in L(n, n') is the strongest statement between n and e, as in evidence.h.
//
// Parallel decomposition: as for evidence, a thread takes whole source rows.
#pragma once

#include "views.h"

namespace stea {

struct BlanketArgs {
    GraphView source;
    GraphView target;
    CandidatesView candidates;
    BeliefsView beliefs;
    const float* belief_evidence;  // [nnz of beliefs] L(n, n')
    RelationTableView relations;
    int32_t num_source_relations;  // R: the inverse of r is r + R (mod 2R)
    int32_t num_target_relations;  // R'
    RowRange rows;
    Witnesses witnesses;  // those that belief_evidence was computed with
    float* blanket;       // out [rows, k]
};

}  // namespace stea
