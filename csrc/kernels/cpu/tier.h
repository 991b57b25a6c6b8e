// The row kernels of one instruction set. Every tier compiles the same body (tier_body.inl) with its
// own flags and offers it through this table; `isa.h` picks one at run time.
#pragma once

#include "../blanket.h"
#include "../dense_product.h"
#include "../dropout.h"
#include "../evidence.h"
#include "../negatives.h"
#include "../proposals.h"
#include "../reflection.h"
#include "../relation_counts.h"
#include "../sparse_rows.h"
#include "../topk.h"
#include "../triple_view.h"
#include "scratch.h"

namespace stea {

struct Tier {
    const char* name;
    void (*evidence_row)(const EvidenceArgs&, EvidenceScratch&, int64_t row);
    void (*blanket_row)(const BlanketArgs&, BlanketScratch&, int64_t row);
    void (*count_row)(const CountArgs&, CountScratch&, int64_t row);
    void (*proposal_row)(const ProposalArgs&, ProposalScratch&, int64_t row);
    int64_t (*scan_scores)(const ScoreBlock&, int64_t row, int64_t begin, int64_t end, float row_threshold,
                           const float* column_threshold, Entry* found);
    double (*add_exponentials)(const ScoreBlock&, int64_t row, float beta, float row_anchor, const float* column_anchor,
                               float* column_sums);
    void (*exact_products_float)(const float* query, const float* keys, int64_t width, const int32_t* indices,
                                 int64_t k, bool distance, double* out);
    void (*exact_products_double)(const double* query, const double* keys, int64_t width, const int32_t* indices,
                                  int64_t k, bool distance, double* out);
    void (*dense_product_rows)(const DenseProduct&, int64_t begin, int64_t end);
    void (*sparse_row)(const SparseRows&, int64_t row);
    void (*triple_view_row)(const TripleView&, int64_t row);
    void (*dropout_row)(const Dropout&, int64_t row);
    void (*reflect_forward_row)(const ReflectionForward&, int64_t row);
    void (*reflect_backward_edges_row)(const ReflectionBackward&, int64_t row, float* sums);
    void (*reflect_backward_entity_row)(const ReflectionBackward&, int64_t row);
    void (*reflect_backward_set_row)(const ReflectionBackward&, int64_t set);
    void (*reflect_backward_attention)(const ReflectionBackward&, int64_t begin, int64_t end, float* sums);
    int64_t (*negative_row)(const NegativeBlock&, int64_t query, Negative* hits);
    void (*push_entity)(const NegativeBlock&, int64_t entity, const Pusher* pushers, int64_t count);
};

}  // namespace stea
