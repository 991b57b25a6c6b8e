// The kernels of the int8 search for one instruction set: the same bodies, compiled with its flags; `isa.h` picks one.
#pragma once

#include "../int8_search.h"

namespace stea {

struct Int8Tier {
    const char* name;
    bool multiplies_bytes;  // by an instruction made for it: only then is int8 faster than float32
    RoundedRow (*round_floats)(const float* row, double inverse_norm, const Turn&, float* scratch, const SliverPlace&);
    RoundedRow (*round_doubles)(const double* row, double inverse_norm, const Turn&, float* scratch,
                                const SliverPlace&);
    int64_t (*scan)(const ScanRows&, const ScanColumns&, const ScanSums&, const ScanHits&);
};

}  // namespace stea
