// Eight floats at a time: one AVX register, or two SSE registers with the same results.
typedef float Eight __attribute__((vector_size(8 * sizeof(float))));
typedef int32_t EightBits __attribute__((vector_size(8 * sizeof(float))));

static inline Eight load_eight(const float* values) {
    Eight out;
    __builtin_memcpy(&out, values, sizeof out);
    return out;
}

static inline void store_eight(float* values, Eight eight) { __builtin_memcpy(values, &eight, sizeof eight); }

// One bit per lane that is true.
static inline uint32_t lanes_set(EightBits mask) {
#ifdef __AVX__
    return static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(mask)));
#else
    uint32_t bits = 0;
    for (int lane = 0; lane < 8; ++lane) bits |= (mask[lane] != 0 ? 1u : 0u) << lane;
    return bits;
#endif
}

// exp(x) for x <= 0, to a few units in the last place; 0 below -87 and for NaN (-inf times a beta of 0). Only
// operations that round alike everywhere.
static inline Eight exp_eight(Eight x) {
    const EightBits usable = x > -87.0f;
    const Eight clamped = reinterpret_cast<Eight>(usable & reinterpret_cast<EightBits>(x));
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
    const Eight shifted = clamped * 1.44269504f + kRound;
    const Eight whole = shifted - kRound;
    const Eight rest = (clamped - whole * 0.693359375f) + whole * 2.12194440e-4f;
    Eight value = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    value = value * rest + 8.3334519073e-3f;
    value = value * rest + 4.1665795894e-2f;
    value = value * rest + 1.6666665459e-1f;
    value = value * rest + 5.0000001201e-1f;
    value = value * rest * rest + rest + 1.0f;
    const EightBits exponent = reinterpret_cast<EightBits>(shifted) << 23;  // the low bits of `shifted` are the number
    const Eight scaled = reinterpret_cast<Eight>(reinterpret_cast<EightBits>(value) + exponent);
    return reinterpret_cast<Eight>(usable & reinterpret_cast<EightBits>(scaled));
}

// tanh(x) to a few units in the last place; NaN stays NaN.
static inline Eight tanh_eight(Eight x) {
    constexpr int32_t kSign = INT32_MIN;
    const EightBits sign = reinterpret_cast<EightBits>(x) & kSign;
    const Eight size = reinterpret_cast<Eight>(reinterpret_cast<EightBits>(x) & ~kSign);
    const Eight square = x * x;
    Eight near = square * -5.70498872745e-3f + 2.06390887954e-2f;
    near = near * square - 5.37397155531e-2f;
    near = near * square + 1.33314422036e-1f;
    near = near * square - 3.33332819422e-1f;
    near = near * square * x + x;
    const Eight decay = exp_eight(size * -2.0f);
    const Eight far = (1.0f - decay) / (1.0f + decay);
    const EightBits is_near = (size < 0.625f) | (x != x);
    const EightBits far_bits = reinterpret_cast<EightBits>(far) | sign;
    return reinterpret_cast<Eight>((is_near & reinterpret_cast<EightBits>(near)) | (~is_near & far_bits));
}

// The first `count` lanes, and zeros.
static inline Eight load_some(const float* values, int64_t count) {
    if (count == 8) return load_eight(values);
    Eight out = {};
    for (int64_t lane = 0; lane < count; ++lane) out[lane] = values[lane];
    return out;
}

static inline void store_some(float* values, Eight eight, int64_t count) {
    if (count == 8) return store_eight(values, eight);
    for (int64_t lane = 0; lane < count; ++lane) values[lane] = eight[lane];
}

static inline float sum_of(Eight v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

struct TwoProducts {
    float first;
    float second;
};

// x.a and x.b
static inline TwoProducts two_products(const float* x, const float* a, const float* b, int64_t width) {
    Eight sums[4] = {};
    int64_t c = 0;
    for (; c + 16 <= width; c += 16) {
        const Eight low = load_eight(x + c);
        const Eight high = load_eight(x + c + 8);
        sums[0] += low * load_eight(a + c);
        sums[1] += high * load_eight(a + c + 8);
        sums[2] += low * load_eight(b + c);
        sums[3] += high * load_eight(b + c + 8);
    }
    for (; c < width; c += 8) {
        const int64_t count = width - c < 8 ? width - c : 8;
        const Eight some = load_some(x + c, count);
        sums[0] += some * load_some(a + c, count);
        sums[2] += some * load_some(b + c, count);
    }
    return {sum_of(sums[0] + sums[1]), sum_of(sums[2] + sums[3])};
}

static inline float product(const float* a, const float* b, int64_t width) {
    Eight sums[4] = {};
    int64_t c = 0;
    for (; c + 32 <= width; c += 32) {
        for (int part = 0; part < 4; ++part) sums[part] += load_eight(a + c + 8 * part) * load_eight(b + c + 8 * part);
    }
    for (; c < width; c += 8) {
        const int64_t count = width - c < 8 ? width - c : 8;
        sums[0] += load_some(a + c, count) * load_some(b + c, count);
    }
    return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// One summand a * x, or a * x + b * y, of a sum of rows.
struct Term {
    const float* x;
    const float* y;
    float a;
    float b;
};

constexpr int64_t kTerms = 32;  // summed at a time: their rows stay in the first-level cache

// out[c ...] += sum of the terms, kept in registers for 8 * kVectors columns at a time.
template <bool kTwo, int kVectors>
static inline void add_columns(float* out, const Term* terms, int64_t count, int64_t c) {
    Eight sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = load_eight(out + c + 8 * v);
    for (int64_t t = 0; t < count; ++t) {
        for (int v = 0; v < kVectors; ++v) {
            const int64_t column = c + 8 * v;
            const Eight part = terms[t].a * load_eight(terms[t].x + column);
            sums[v] += kTwo ? part + terms[t].b * load_eight(terms[t].y + column) : part;
        }
    }
    for (int v = 0; v < kVectors; ++v) store_eight(out + c + 8 * v, sums[v]);
}

// out[width] += sum of the terms
template <bool kTwo>
static inline void add_terms(float* out, const Term* terms, int64_t count, int64_t width) {
    int64_t c = 0;
    for (; c + 64 <= width; c += 64) add_columns<kTwo, 8>(out, terms, count, c);
    for (; c + 8 <= width; c += 8) add_columns<kTwo, 1>(out, terms, count, c);
    for (; c < width; ++c) {
        for (int64_t t = 0; t < count; ++t) {
            const float part = terms[t].a * terms[t].x[c];
            out[c] += kTwo ? part + terms[t].b * terms[t].y[c] : part;
        }
    }
}

static inline void prefetch_row(const float* row, int64_t width) {
    for (int64_t c = 0; c < width; c += 16) __builtin_prefetch(row + c);
}
