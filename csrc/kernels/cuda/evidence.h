// Evidence L(e, e') on a GPU; the contract is that of ../evidence.h, in float32 within 1e-5 of the definition.
//
// Parallel decomposition. A warp per row counts the row's nodes, that is, the beliefs of all its neighbours.
// Rows whose nodes fit into `table_slots`: a block per row files them in shared memory, then a warp per candidate walks
// the candidate's edges, a lane per edge; where the candidate is a hub, the warp walks the nodes and searches the
// edges. Hubs among the rows: the whole grid files the nodes in global memory, then a block per (hub, candidate) walks.
// Where witnesses are pairs of neighbours (n, n'), the lane that meets the first statement about n and the first about
// n' takes the strongest of all of them, and the lanes that meet the others take nothing. Terms are summed in a fixed
// order, in double precision, so two runs give the same bits.
#pragma once

#include "device.h"
#include "views.h"

namespace stea::cuda {

struct EvidenceArgs {
    GraphView source;
    GraphView target;
    CandidatesView candidates;
    BeliefsView beliefs;
    StrengthsView strengths;
    RowRange rows;
    Witnesses witnesses;
    float* evidence;         // out [rows, k]
    int32_t* witness_count;  // out [rows, k], or null: not wanted; counted with kNeighbor only
};

struct EvidenceLaunch {
    int block_size = 128;    // a multiple of 32, at most 1024
    int table_slots = 1024;  // of 8 bytes in shared memory; a power of two, at least 32
};

// Enqueues everything on the stream; waits once, for the number of hubs.
void run_evidence(const EvidenceArgs& args, const EvidenceLaunch& launch, Stream stream);

}  // namespace stea::cuda
