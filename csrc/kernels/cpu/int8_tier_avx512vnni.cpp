#define STEA_TIER avx512vnni
#include "int8_tier_body.inl"
