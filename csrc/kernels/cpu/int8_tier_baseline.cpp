#define STEA_TIER baseline
#include "int8_tier_body.inl"
