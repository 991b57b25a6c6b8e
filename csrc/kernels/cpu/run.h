// The kernels over a range of rows: tier, threads and interruption put together.
#pragma once

#include <vector>

#include "interruption.h"
#include "tier.h"

namespace stea {

struct RunOptions {
    const Tier& tier;
    int n_threads;
    Poll poll;
};

void run_evidence(const EvidenceArgs& args, const RunOptions& options);
void run_blanket(const BlanketArgs& args, const RunOptions& options);
void run_proposals(const ProposalArgs& args, const RunOptions& options);

// Observed pairs in increasing order of (r, r'), counts in units of 2^-scale_bits.
struct RelationCounts {
    std::vector<int64_t> keys;  // r * 2R' + r'
    std::vector<int64_t> num;   // same length
    std::vector<int64_t> den;   // [R]
};

RelationCounts run_relation_counts(const CountArgs& args, const RunOptions& options);

}  // namespace stea
