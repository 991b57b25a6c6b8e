// The row kernels of one instruction set. Every tier compiles the same body (tier_body.inl) with its
// own flags and offers it through this table; `isa.h` picks one at run time.
#pragma once

#include "../blanket.h"
#include "../evidence.h"
#include "../relation_counts.h"
#include "scratch.h"

namespace stea {

struct Tier {
    const char* name;
    void (*evidence_row)(const EvidenceArgs&, EvidenceScratch&, int64_t row);
    void (*blanket_row)(const BlanketArgs&, BlanketScratch&, int64_t row);
    void (*count_row)(const CountArgs&, CountScratch&, int64_t row);
};

}  // namespace stea
