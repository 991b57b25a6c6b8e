#include "isa.h"

#include <stdexcept>

namespace stea {

namespace baseline {
extern const Tier tier;
extern const Int8Tier int8_tier;
}  // namespace baseline
#ifdef STEA_HAVE_AVX2
namespace avx2 {
extern const Tier tier;
extern const Int8Tier int8_tier;
}  // namespace avx2
namespace avxvnni {
extern const Int8Tier int8_tier;
}
namespace avx512vnni {
extern const Int8Tier int8_tier;
}
#endif

namespace {

template <typename AnyTier>
const AnyTier& find_among(const std::vector<const AnyTier*>& tiers, const std::string& name) {
    if (name.empty()) return *tiers.back();
    std::string known;
    for (const AnyTier* tier : tiers) {
        if (name == tier->name) return *tier;
        known += known.empty() ? tier->name : std::string(", ") + tier->name;
    }
    throw std::invalid_argument("tier '" + name + "' cannot run here; usable tiers: " + known);
}

}  // namespace

std::vector<const Tier*> usable_tiers() {
    std::vector<const Tier*> tiers = {&baseline::tier};
#ifdef STEA_HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) tiers.push_back(&avx2::tier);
#endif
    return tiers;
}

const Tier& find_tier(const std::string& name) { return find_among(usable_tiers(), name); }

std::vector<const Int8Tier*> usable_int8_tiers() {
    std::vector<const Int8Tier*> tiers = {&baseline::int8_tier};
#ifdef STEA_HAVE_AVX2
    if (__builtin_cpu_supports("avx2")) tiers.push_back(&avx2::int8_tier);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("avxvnni")) tiers.push_back(&avxvnni::int8_tier);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni")) {
        tiers.push_back(&avx512vnni::int8_tier);
    }
#endif
    return tiers;
}

const Int8Tier& find_int8_tier(const std::string& name) { return find_among(usable_int8_tiers(), name); }

}  // namespace stea
