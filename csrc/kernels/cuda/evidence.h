// Evidence L(e, e') on a GPU; the contract is that of ../evidence.h, in float32 within 1e-5 of the definition.
//
// Parallel decomposition. A warp takes 32 pairs (e, e') that follow each other. It files the beliefs of the neighbours
// of their rows e in shared memory, by their targets, as many rows at a time as there is room for; then the edges of
// the candidates e' stand in one line, every lane takes the next of them, whichever pair it is of, and looks up who
// believes in its neighbour. Pairs for which that is not possible (rows with too many beliefs around them) or not worth
// it (candidates with many more edges than the row) are searched: the edges of the side that has fewer are walked, a
// filter of 256 bits per pair holds the hashes of the neighbours of the other side, and what passes it is searched
// among the sorted edges there.
//
// Whatever meets is queued; as soon as 32 are in the queue, each lane evaluates one of them and adds the shares that
// belong to the pair with its number, in the order of the queue. There is no scratch memory, no wait for the host, and
// no atomic but for the bits of the filters; lists and sums have a fixed order, and sums a second float for what the
// first one rounds off, so two runs give the same bits.
//
// Of a pair (n, n') all statements between e and n and between e' and n' are taken together: their sum, or with
// Witnesses::kNeighbor the strongest of them.
#pragma once

#include "device.h"
#include "views.h"

namespace stea::cuda {

struct EvidenceArgs {
    GraphView source;
    GraphView target;
    CandidateRows candidates;  // by the number of the row in the range
    int64_t num_pairs;         // of all these rows
    BeliefsView beliefs;       // w(n, n') by n
    BeliefsView believers;     // the same by n': row n' holds the n that believe in it
    StrengthsView strengths;
    RowRange rows;
    Witnesses witnesses;
    float* evidence;         // out [num_pairs], laid out as the candidates
    int32_t* witness_count;  // out likewise, or null: not wanted; the pairs (n, n') with a share above 0
};

constexpr int kMostEvidenceThreads = 256;  // of a block: its shared memory must do with 48 KB

// `block_size`: a multiple of 32. Enqueues one kernel on the stream.
void run_evidence(const EvidenceArgs& args, int block_size, Stream stream);

}  // namespace stea::cuda
