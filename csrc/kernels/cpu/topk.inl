// Eight scores at a time: one AVX register, or two SSE registers with the same results.
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

static inline float score_at(const ScoreBlock& block, int64_t row, int64_t column) {
    return block.values[row * block.columns + column] * (block.row_scale[row] * block.column_scale[column]) -
           block.row_offset[row] - block.column_offset[column];
}

static inline Eight scores_at(const ScoreBlock& block, int64_t row, int64_t column) {
    return load_eight(block.values + row * block.columns + column) *
               (block.row_scale[row] * load_eight(block.column_scale + column)) -
           block.row_offset[row] - load_eight(block.column_offset + column);
}

// Writes the scores of columns [begin, end) of a row that exceed the row's or their column's threshold, and
// returns their number. `found` has room for all of them.
int64_t scan_scores(const ScoreBlock& block, int64_t row, int64_t begin, int64_t end, float row_threshold,
                    const float* column_threshold, Entry* found) {
    int64_t count = 0;
    int64_t column = begin;
    for (; column + 8 <= end; column += 8) {
        const Eight scores = scores_at(block, row, column);
        uint32_t bits = lanes_set((scores > row_threshold) | (scores > load_eight(column_threshold + column)));
        while (bits != 0) {
            const int lane = __builtin_ctz(bits);
            found[count++] = Entry{scores[lane], static_cast<int32_t>(column + lane)};
            bits &= bits - 1;
        }
    }
    for (; column < end; ++column) {
        const float score = score_at(block, row, column);
        if (score > row_threshold || score > column_threshold[column]) {
            found[count++] = Entry{score, static_cast<int32_t>(column)};
        }
    }
    return count;
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

// Sum over the columns of exp(beta * (score - row_anchor)); adds exp(beta * (score - column_anchor)) to
// column_sums, which is padded to a multiple of eight.
double add_exponentials(const ScoreBlock& block, int64_t row, float beta, float row_anchor, const float* column_anchor,
                        float* column_sums) {
    double total = 0.0;
    Eight lanes = {};
    constexpr int64_t kShort = 1024;  // columns between two additions in double precision
    for (int64_t column = 0; column < block.columns; column += 8) {
        Eight scores;
        Eight anchors;
        if (column + 8 <= block.columns) {
            scores = scores_at(block, row, column);
            anchors = load_eight(column_anchor + column);
        } else {  // lanes beyond the last column score -inf: their exponential is 0 whatever the anchors are
            for (int64_t lane = 0; lane < 8; ++lane) {
                const bool inside = column + lane < block.columns;
                scores[lane] = inside ? score_at(block, row, column + lane) : -__builtin_inff();
                anchors[lane] = inside ? column_anchor[column + lane] : 0.0f;
            }
        }
        lanes += exp_eight((scores - row_anchor) * beta);
        store_eight(column_sums + column, load_eight(column_sums + column) + exp_eight((scores - anchors) * beta));
        if (column % kShort == kShort - 8 || column + 8 >= block.columns) {
            for (int lane = 0; lane < 8; ++lane) total += static_cast<double>(lanes[lane]);
            lanes = Eight{};
        }
    }
    return total;
}

typedef double FourDoubles __attribute__((vector_size(4 * sizeof(double))));

// Inner product, or squared distance, in double precision.
template <bool kDistance, typename Number>
static inline double exact_product(const Number* a, const Number* b, int64_t width) {
    FourDoubles lanes[2] = {};
    int64_t i = 0;
    for (; i + 8 <= width; i += 8) {
        for (int half = 0; half < 2; ++half) {
            FourDoubles x;
            FourDoubles y;
            for (int lane = 0; lane < 4; ++lane) {
                x[lane] = static_cast<double>(a[i + 4 * half + lane]);
                y[lane] = static_cast<double>(b[i + 4 * half + lane]);
            }
            lanes[half] += kDistance ? (x - y) * (x - y) : x * y;
        }
    }
    const FourDoubles sums = lanes[0] + lanes[1];
    double total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (; i < width; ++i) {
        const double x = static_cast<double>(a[i]);
        const double y = static_cast<double>(b[i]);
        total += kDistance ? (x - y) * (x - y) : x * y;
    }
    return total;
}

// The whole row, to the second-level cache: keys lie anywhere, and reading them takes longer than multiplying.
template <typename Number>
static inline void prefetch_row(const Number* row, int64_t width) {
    constexpr int64_t kLine = 64 / sizeof(Number);
    for (int64_t i = 0; i < width; i += kLine) __builtin_prefetch(row + i, 0, 2);
}

template <typename Number>
static void exact_products_of(const Number* query, const Number* keys, int64_t width, const int32_t* indices, int64_t k,
                              bool distance, double* out) {
    for (int64_t c = 0; c < k; ++c) {
        if (c + 2 < k && indices[c + 2] >= 0) prefetch_row(keys + indices[c + 2] * width, width);
        const Number* key = keys + static_cast<int64_t>(indices[c]) * width;
        out[c] = indices[c] < 0 ? 0.0
                 : distance     ? exact_product<true>(query, key, width)
                                : exact_product<false>(query, key, width);
    }
}

void exact_products_float(const float* query, const float* keys, int64_t width, const int32_t* indices, int64_t k,
                          bool distance, double* out) {
    exact_products_of(query, keys, width, indices, k, distance, out);
}

void exact_products_double(const double* query, const double* keys, int64_t width, const int32_t* indices, int64_t k,
                           bool distance, double* out) {
    exact_products_of(query, keys, width, indices, k, distance, out);
}
