#include "isa.h"

#include <stdexcept>

namespace stea {

namespace baseline {
extern const Tier tier;
}
#ifdef STEA_HAVE_AVX2
namespace avx2 {
extern const Tier tier;
}
#endif

std::vector<const Tier*> usable_tiers() {
    std::vector<const Tier*> tiers = {&baseline::tier};
#ifdef STEA_HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) tiers.push_back(&avx2::tier);
#endif
    return tiers;
}

bool has_bfloat16() {
#ifdef STEA_HAVE_AVX2
    return __builtin_cpu_supports("avx512bf16") != 0;
#else
    return false;
#endif
}

const Tier& find_tier(const std::string& name) {
    const std::vector<const Tier*> tiers = usable_tiers();
    if (name.empty()) return *tiers.back();
    std::string known;
    for (const Tier* tier : tiers) {
        if (name == tier->name) return *tier;
        known += known.empty() ? tier->name : std::string(", ") + tier->name;
    }
    throw std::invalid_argument("tier '" + name + "' cannot run here; usable tiers: " + known);
}

}  // namespace stea
