// Define STEA_TIER (the tier's namespace) before including this file.
#include <cmath>
#include <cstdint>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#ifdef __AVX__
#include <immintrin.h>
#endif

#include "lanes.h"
#include "tier.h"

namespace stea {
namespace STEA_TIER {
namespace {

#include "neighborhood.inl"
#include "vectors.inl"
// The kernels of the tier: each stands on the helpers above, and none on another.
#include "blanket.inl"
#include "dense_product.inl"
#include "dropout.inl"
#include "evidence.inl"
#include "negatives.inl"
#include "proposal_visits.inl"
#include "proposals.inl"
#include "reflection.inl"
#include "relation_counts.inl"
#include "sparse_rows.inl"
#include "topk.inl"
#include "triple_view.inl"

}  // namespace

extern const Tier tier;
#define STEA_NAME_OF(tier_name) #tier_name
#define STEA_NAME(tier_name) STEA_NAME_OF(tier_name)
const Tier tier = {STEA_NAME(STEA_TIER),
                   evidence_row,
                   blanket_row,
                   count_row,
                   proposal_row,
                   scan_scores,
                   add_exponentials,
                   exact_products_float,
                   exact_products_double,
                   dense_product_rows,
                   sparse_row,
                   triple_view_row,
                   dropout_row,
                   reflect_forward_row,
                   reflect_backward_edges_row,
                   reflect_backward_entity_row,
                   reflect_backward_set_row,
                   reflect_backward_attention,
                   negative_row,
                   push_entity};

}  // namespace STEA_TIER
}  // namespace stea
