#define STEA_TIER baseline
#include "tier_body.inl"
