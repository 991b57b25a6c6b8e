#define STEA_TIER avx2
#include "int8_tier_body.inl"
