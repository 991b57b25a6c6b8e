// Define STEA_TIER (the tier's namespace) before including this file.
#include <cstdint>
#ifdef __AVX__
#include <immintrin.h>
#endif

#include "int8_tier.h"

namespace stea {
namespace STEA_TIER {
namespace {

#include "int8_lanes.inl"
#include "int8_search.inl"
// Stands on the tiles of the search.
#include "byte_products.inl"

}  // namespace

extern const Int8Tier int8_tier;
#define STEA_NAME_OF(tier_name) #tier_name
#define STEA_NAME(tier_name) STEA_NAME_OF(tier_name)
const Int8Tier int8_tier = {STEA_NAME(STEA_TIER), kBiased,       round_floats, round_doubles, scan,
                            round_bytes,          multiply_bytes};

}  // namespace STEA_TIER
}  // namespace stea
