// The vectors of the int8 kernels: as wide as the instruction set's, with the same results on each.
#ifdef __AVX512VNNI__
constexpr int kLanes = 16;
constexpr int kTileRows = 12;  // 12 x 2 of the 32 registers hold sums
#else
constexpr int kLanes = 8;
constexpr int kTileRows = 6;  // 6 x 2 of the 16 registers
#endif
constexpr int kTileVectors = 2;

typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));

template <typename Vector, typename Number>
static inline Vector load_lanes(const Number* from) {
    Vector out;
    __builtin_memcpy(&out, from, sizeof out);
    return out;
}

static inline Floats to_floats(Ints values) { return __builtin_convertvector(values, Floats); }

// Adds the products of four unsigned bytes (a number's biased components, in every lane) and four signed ones.
// Without an instruction for it the bias is taken off first: kBiased says which sum it is.
static inline Ints add_products(Ints sums, Ints unsigned_bytes, Ints signed_bytes) {
#if defined(__AVX512VNNI__)
    return reinterpret_cast<Ints>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sums),
                                                      reinterpret_cast<__m512i>(unsigned_bytes),
                                                      reinterpret_cast<__m512i>(signed_bytes)));
#elif defined(__AVXVNNI__)
    return reinterpret_cast<Ints>(_mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(sums),
                                                          reinterpret_cast<__m256i>(unsigned_bytes),
                                                          reinterpret_cast<__m256i>(signed_bytes)));
#elif defined(__AVX2__)
    // The sign of one factor goes to the other: both are at most 127 then, and no sum of two exceeds 16 bits.
    const __m256i left = _mm256_xor_si256(reinterpret_cast<__m256i>(unsigned_bytes), _mm256_set1_epi8(-128));
    const __m256i right = _mm256_sign_epi8(reinterpret_cast<__m256i>(signed_bytes), left);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(left), right);
    return sums + reinterpret_cast<Ints>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#else
    for (int part = 0; part < 4; ++part) {
        const int shift = 24 - 8 * part;
        const Ints left = ((unsigned_bytes << shift) >> 24 & 255) - 128;
        sums += left * ((signed_bytes << shift) >> 24);
    }
    return sums;
#endif
}

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr bool kBiased = true;
#else
constexpr bool kBiased = false;
#endif

// Adds the products of two signed numbers of 16 bits each.
static inline Ints add_products16(Ints sums, Ints a, Ints b) {
#if defined(__AVX512VNNI__)
    return reinterpret_cast<Ints>(_mm512_dpwssd_epi32(reinterpret_cast<__m512i>(sums), reinterpret_cast<__m512i>(a),
                                                      reinterpret_cast<__m512i>(b)));
#elif defined(__AVXVNNI__)
    return reinterpret_cast<Ints>(_mm256_dpwssd_avx_epi32(reinterpret_cast<__m256i>(sums), reinterpret_cast<__m256i>(a),
                                                          reinterpret_cast<__m256i>(b)));
#elif defined(__AVX2__)
    return sums + reinterpret_cast<Ints>(_mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#else
    return sums + (a >> 16) * (b >> 16) + ((a << 16) >> 16) * ((b << 16) >> 16);
#endif
}

// One bit per lane in which a >= b; none where one of them is NaN.
static inline uint32_t lanes_at_least(Floats a, Floats b) {
#if defined(__AVX512VNNI__)
    return _mm512_cmp_ps_mask(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), _CMP_GE_OQ);
#elif defined(__AVX__)
    return static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_cmp_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), _CMP_GE_OQ)));
#else
    uint32_t bits = 0;
    for (int lane = 0; lane < kLanes; ++lane) bits |= (a[lane] >= b[lane] ? 1u : 0u) << lane;
    return bits;
#endif
}

// Appends the lanes whose bits are set, and returns the new number of hits.
static inline int64_t append_hits(const ScanHits& hits, int64_t count, uint32_t bits, Ints sums, int32_t row,
                                  int32_t first_column) {
#if defined(__AVX512VNNI__)
    const auto mask = static_cast<__mmask16>(bits);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i columns = _mm512_add_epi32(lanes, _mm512_set1_epi32(first_column));
    // Compressed within a register and stored whole: compressing into memory is slow on some processors.
    _mm512_storeu_si512(hits.sums + count, _mm512_maskz_compress_epi32(mask, reinterpret_cast<__m512i>(sums)));
    _mm512_storeu_si512(hits.columns + count, _mm512_maskz_compress_epi32(mask, columns));
    _mm512_storeu_si512(hits.rows + count, _mm512_set1_epi32(row));
    return count + __builtin_popcount(bits);
#else
    for (; bits != 0; bits &= bits - 1, ++count) {
        const int lane = __builtin_ctz(bits);
        hits.sums[count] = sums[lane];
        hits.columns[count] = first_column + lane;
        hits.rows[count] = row;
    }
    return count;
#endif
}

// exp(x) for x <= 80, to a few units in the last place; 0 below -87. Only operations that round alike everywhere.
static inline Floats exp_lanes(Floats x) {
    const Ints usable = x > -87.0f;
    const Floats clamped = reinterpret_cast<Floats>(usable & reinterpret_cast<Ints>(x));
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
    const Floats shifted = clamped * 1.44269504f + kRound;
    const Floats whole = shifted - kRound;
    const Floats rest = (clamped - whole * 0.693359375f) + whole * 2.12194440e-4f;
    Floats value = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    value = value * rest + 8.3334519073e-3f;
    value = value * rest + 4.1665795894e-2f;
    value = value * rest + 1.6666665459e-1f;
    value = value * rest + 5.0000001201e-1f;
    value = value * rest * rest + rest + 1.0f;
    const Ints exponent = reinterpret_cast<Ints>(shifted) << 23;  // the low bits of `shifted` are the number
    return reinterpret_cast<Floats>(usable & (reinterpret_cast<Ints>(value) + exponent));
}
