// Pairs that are each other's best candidate.
//
//   partner(e) = e' if e' is the best candidate of e and e is the best candidate of e', else -1
//   value(e)   = sqrt(max(score(e, e'), 0) * max(score(e', e), 0))
//
// Of equal scores the candidate listed first is the best. A row of -1 has none, and where a side is empty nobody has a
// partner.
//
// Parallel decomposition: a warp per row finds its best candidate, a lane per candidate; then a thread per source row
// asks whether the choice is returned.
#pragma once

#include "device.h"
#include "views.h"

namespace stea::cuda {

template <typename Score>
struct RankingView {
    const int32_t* indices;  // [rows, k], -1 = none
    const Score* scores;     // [rows, k], not NaN
    int64_t rows;
    int64_t k;
};

template <typename Score>
struct MutualArgs {
    RankingView<Score> forward;
    RankingView<Score> backward;
    int32_t* partner;        // out [forward.rows]
    Score* value;            // out [forward.rows], 0 where there is no partner
    int32_t* best;           // scratch [forward.rows]
    Score* best_score;       // scratch [forward.rows]
    int32_t* best_back;      // scratch [backward.rows]
    Score* best_back_score;  // scratch [backward.rows]
};

template <typename Score>
void run_mutual_best(const MutualArgs<Score>& args, int block_size, Stream stream);

}  // namespace stea::cuda
