#define STEA_TIER avx2
#include "tier_body.inl"
