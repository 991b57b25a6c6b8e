// The kernels over whole numbers of 8 bits for one instruction set: the same bodies, compiled with its flags; `isa.h`
// picks one.
#pragma once

#include "../byte_products.h"
#include "../int8_search.h"

namespace stea {

struct Int8Tier {
    const char* name;
    bool multiplies_bytes;  // by an instruction made for it: only then is int8 faster than float32
    RoundedRow (*round_floats)(const float* row, double inverse_norm, const Turn&, float* scratch, const SliverPlace&);
    RoundedRow (*round_doubles)(const double* row, double inverse_norm, const Turn&, float* scratch,
                                const SliverPlace&);
    int64_t (*scan)(const ScanRows&, const ScanColumns&, const ScanSums&, const ScanHits&);
    ByteRow (*round_bytes)(const float* row, int64_t width, const SliverPlace&);
    void (*multiply_bytes)(const ByteRows&, const ByteColumns&, float* out, int64_t stride);
};

}  // namespace stea
