// Which instruction-set tiers this build has, which the CPU can run, and which to use.
#pragma once

#include <string>
#include <vector>

#include "int8_tier.h"
#include "tier.h"

namespace stea {

// Tiers compiled in and supported by this CPU, slowest first. Never empty.
std::vector<const Tier*> usable_tiers();

// The tier of that name; the best usable one for "". Throws std::invalid_argument for one that is
// unknown, not built, or not supported by this CPU.
const Tier& find_tier(const std::string& name);

// The same for the kernels over whole numbers of 8 bits.
std::vector<const Int8Tier*> usable_int8_tiers();
const Int8Tier& find_int8_tier(const std::string& name);

}  // namespace stea
