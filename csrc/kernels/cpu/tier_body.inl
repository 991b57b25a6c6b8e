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
// The kernels of the tier: each stands on the helpers above, and none on another.
#include "blanket.inl"
#include "evidence.inl"
#include "proposal_visits.inl"
#include "proposals.inl"
#include "relation_counts.inl"
#include "topk.inl"

}  // namespace

extern const Tier tier;
#define STEA_NAME_OF(tier_name) #tier_name
#define STEA_NAME(tier_name) STEA_NAME_OF(tier_name)
const Tier tier = {STEA_NAME(STEA_TIER), evidence_row, blanket_row,      count_row,
                   proposal_row,         scan_scores,  add_exponentials, exact_products_float,
                   exact_products_double};

}  // namespace STEA_TIER
}  // namespace stea
