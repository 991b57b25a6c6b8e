#define STEA_TIER avxvnni
#include "int8_tier_body.inl"
