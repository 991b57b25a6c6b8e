// The result of a butterfly at j and j + half goes to 2j and 2j + 1: every stage reads and writes whole vectors.
static inline void butterflies(const float* from, float* to, int64_t half) {
    for (int64_t j = 0; j < half; ++j) {
        const float a = from[j];
        const float b = from[j + half];
        to[2 * j] = a + b;
        to[2 * j + 1] = a - b;
    }
}

// A Hadamard transform of `size` numbers in place, in some order of its rows; `scratch` has room for as many.
static inline void hadamard(float* values, int64_t size, float* scratch) {
    float* from = values;
    float* to = scratch;
    for (int64_t done = 1; done < size; done *= 2) {
        butterflies(from, to, size / 2);
        float* const swapped = from;
        from = to;
        to = swapped;
    }
    const float factor = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(size)));
    for (int64_t i = 0; i < size; ++i) values[i] = from[i] * factor;
}

// The unit vector of the row, turned.
template <typename Number>
static inline void turn_row(const Number* row, double inverse_norm, const Turn& turn, float* out, float* scratch) {
    for (int64_t i = 0; i < turn.width; ++i) {
        out[i] = static_cast<float>(static_cast<double>(row[i]) * inverse_norm) * turn.signs[i];
    }
    hadamard(out, turn.block, scratch);
    if (turn.block == turn.width) return;
    for (int64_t i = 0; i < turn.width; ++i) out[i] *= turn.signs[turn.width + i];
    hadamard(out + turn.width - turn.block, turn.block, scratch);
}

static inline float largest_magnitude(const float* values, int64_t count) {
    float largest = 0.0f;
    for (int64_t i = 0; i < count; ++i) {
        const float magnitude = __builtin_fabsf(values[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

// What `turn_row` may have moved a unit vector by, and a bound on the rounding of the sum of squares: both in float32.
static inline float turning_error(const Turn& turn) {
    const int stages = 2 * (63 - __builtin_clzll(static_cast<uint64_t>(turn.block)));
    return static_cast<float>(stages + 10) * 0x1p-24f;
}

static inline float rounded_up(float sum_of_squares, int64_t terms) {
    return __builtin_sqrtf(sum_of_squares) * (1.0f + static_cast<float>(terms + 16) * 0x1p-23f);
}

// The components of up to kSumLanes numbers to their place.
static inline void store_components(const int16_t* whole, int64_t first, int64_t count, const SliverPlace& place) {
    const int64_t size = place.bits == Bits::k8 ? 1 : 2;
    uint8_t bytes[kSumLanes * sizeof(int16_t)] = {};
    if (place.bits == Bits::k8) {
        for (int64_t i = 0; i < kSumLanes; ++i)
            bytes[i] = static_cast<uint8_t>(static_cast<uint8_t>(whole[i]) ^ place.bias);
    } else {
        __builtin_memcpy(bytes, whole, sizeof bytes);
    }
    for (int64_t at = 0; at < count * size; at += kStepBytes) {
        __builtin_memcpy(place.bytes + (first * size + at) / kStepBytes * place.stride, bytes + at, kStepBytes);
    }
}

// q = values / scale to the nearest whole number: its components to their place, its facts as the result.
static inline RoundedRow round_turned(const float* values, const Turn& turn, const SliverPlace& place) {
    const int64_t width = turn.width;
    const float largest = largest_magnitude(values, width);
    float scale = largest / (place.bits == Bits::k8 ? 127.0f : 32767.0f);
    if (place.bits == Bits::k16 && scale < 1.0f / kMostLength16) scale = 1.0f / kMostLength16;
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
    float lanes[kSumLanes] = {};
    int64_t squares = 0;
    int32_t sum = 0;
    for (int64_t begin = 0; begin < width; begin += kSumLanes) {
        int16_t whole[kSumLanes] = {};
        const int64_t count = width - begin < kSumLanes ? width - begin : kSumLanes;
        for (int64_t i = 0; i < count; ++i) {
            const float value = values[begin + i];
            const float shifted = value * inverse + kRound;
            const float rest = value - (shifted - kRound) * scale;
            lanes[i] += rest * rest;
            __builtin_memcpy(whole + i, &shifted, sizeof *whole);  // its low bits are the number
        }
        for (int64_t i = 0; i < kSumLanes; ++i) {
            sum += whole[i];
            squares += whole[i] * whole[i];
        }
        store_components(whole, begin, count, place);
    }
    float total = 0.0f;
    for (int64_t i = 0; i < kSumLanes; ++i) total += lanes[i];
    const float residual = rounded_up(total, width / kSumLanes + kSumLanes) + turning_error(turn) + kFuzz;
    const auto length = static_cast<float>(static_cast<double>(scale) * __builtin_sqrt(static_cast<double>(squares)));
    return {scale, residual, length * (1.0f + 0x1p-20f), sum};
}

RoundedRow round_floats(const float* row, double inverse_norm, const Turn& turn, float* scratch,
                        const SliverPlace& place) {
    turn_row(row, inverse_norm, turn, scratch, scratch + turn.width);
    return round_turned(scratch, turn, place);
}

RoundedRow round_doubles(const double* row, double inverse_norm, const Turn& turn, float* scratch,
                         const SliverPlace& place) {
    turn_row(row, inverse_norm, turn, scratch, scratch + turn.width);
    return round_turned(scratch, turn, place);
}

struct Tile {
    Ints sums[kTileRows][kTileVectors];
};

// Q + reach of every pair of a tile. Meanwhile an eighth of the next sliver of columns, at `next`, is sent for: a block
// has eight slivers of rows.
template <Bits kBits>
static inline Tile multiply_tile(const uint8_t* rows, const uint8_t* columns, int64_t steps, const int32_t* reach,
                                 const int32_t* correction, const uint8_t* next) {
    Tile tile;
    for (int v = 0; v < kTileVectors; ++v) {
        Ints begin = load_lanes<Ints>(reach + v * kLanes);
        if (kBiased && kBits == Bits::k8) begin += load_lanes<Ints>(correction + v * kLanes);
        for (int i = 0; i < kTileRows; ++i) tile.sums[i][v] = begin;
    }
    for (int64_t step = 0; step < steps; ++step) {
        Ints right[kTileVectors];
        for (int v = 0; v < kTileVectors; ++v) right[v] = load_lanes<Ints>(columns + v * kLanes * kStepBytes);
#pragma GCC unroll 12
        for (int i = 0; i < kTileRows; ++i) {
            int32_t four;
            __builtin_memcpy(&four, rows + i * kStepBytes, sizeof four);
            const Ints left = Ints{} + four;
            for (int v = 0; v < kTileVectors; ++v) {
                tile.sums[i][v] = kBits == Bits::k16 ? add_products16(tile.sums[i][v], left, right[v])
                                                     : add_products(tile.sums[i][v], left, right[v]);
            }
        }
        __builtin_prefetch(next + step * (kSliverColumns * kStepBytes / 8), 0, 2);
        rows += kSliverRows * kStepBytes;
        columns += kSliverColumns * kStepBytes;
    }
    return tile;
}

template <bool kOffsets>
static inline int64_t compare_tile(const Tile& tile, const ScanRows& rows, int64_t first_row,
                                   const ScanColumns& columns, int64_t first_column, const ScanHits& hits,
                                   int64_t count) {
#pragma GCC unroll 12
    for (int i = 0; i < kTileRows; ++i) {
        const int64_t row = first_row + i;
        const float inverse = rows.inverse[row];
        for (int v = 0; v < kTileVectors; ++v) {
            const int64_t column = first_column + v * kLanes;
            const Floats column_inverse = load_lanes<Floats>(columns.inverse + column);
            Floats row_limit = column_inverse * rows.threshold[row];
            Floats column_limit = load_lanes<Floats>(columns.threshold + column) * inverse;
            if (kOffsets) {
                row_limit += load_lanes<Floats>(columns.offset + column) * inverse;
                column_limit += column_inverse * rows.offset[row];
            }
            const Floats upper = to_floats(tile.sums[i][v]) + rows.reach[row];
            const uint32_t bits = lanes_at_least(upper, row_limit) | lanes_at_least(upper, column_limit);
            if (__builtin_expect(bits != 0, 0)) {
                count = append_hits(hits, count, bits, tile.sums[i][v], static_cast<int32_t>(row),
                                    static_cast<int32_t>(column));
            }
        }
    }
    return count;
}

static inline void add_exponentials_of_tile(const Tile& tile, int64_t first_row, const ScanColumns& columns,
                                            int64_t first_column, const ScanSums& sums) {
    for (int v = 0; v < kTileVectors; ++v) {
        const int64_t column = first_column + v * kLanes;
        const Ints reach = load_lanes<Ints>(columns.reach + column);
        const Floats factor = load_lanes<Floats>(sums.column_factor + column);
        const Floats shift = load_lanes<Floats>(sums.column_shift + column);
        Floats total = load_lanes<Floats>(sums.column_sums + column);
        for (int i = 0; i < kTileRows; ++i) {
            const int64_t row = first_row + i;
            const Floats products = to_floats(tile.sums[i][v] - reach) * (factor * sums.row_factor[row]);
            const Floats terms = exp_lanes((products - shift) - sums.row_shift[row]);
            float* lanes = sums.row_lanes + row * kSumLanes + column % kSumLanes;
            const Floats row_total = load_lanes<Floats>(lanes) + terms;
            __builtin_memcpy(lanes, &row_total, sizeof row_total);
            total += terms;
        }
        __builtin_memcpy(sums.column_sums + column, &total, sizeof total);
    }
}

template <Bits kBits, bool kOffsets, bool kSums>
static int64_t scan_block(const ScanRows& rows, const ScanColumns& columns, const ScanSums& sums,
                          const ScanHits& hits) {
    int64_t count = 0;
    for (int64_t row = 0; row < rows.count; row += kTileRows) {
        const uint8_t* left =
            rows.slivers + row / kSliverRows * rows.steps * kSliverRows * kStepBytes + row % kSliverRows * kStepBytes;
        const uint8_t* next =
            columns.sliver + (rows.steps * kSliverColumns + row / kSliverRows * rows.steps * kStepBytes) * kStepBytes;
        for (int64_t column = 0; column < kSliverColumns; column += kTileVectors * kLanes) {
            const Tile tile = multiply_tile<kBits>(left, columns.sliver + column * kStepBytes, rows.steps,
                                                   columns.reach + column, columns.correction + column, next);
            count = compare_tile<kOffsets>(tile, rows, row, columns, column, hits, count);
            if (kSums) add_exponentials_of_tile(tile, row, columns, column, sums);
        }
    }
    return count;
}

// Writes the hits of a block of rows and a sliver of columns, and returns their number.
int64_t scan(const ScanRows& rows, const ScanColumns& columns, const ScanSums& sums, const ScanHits& hits) {
    constexpr Bits k8 = Bits::k8;
    constexpr Bits k16 = Bits::k16;
    const bool with_offsets = rows.has_offsets;
    if (sums.row_lanes != nullptr) {
        return with_offsets ? scan_block<k16, true, true>(rows, columns, sums, hits)
                            : scan_block<k16, false, true>(rows, columns, sums, hits);
    }
    if (rows.bits == k16) {
        return with_offsets ? scan_block<k16, true, false>(rows, columns, sums, hits)
                            : scan_block<k16, false, false>(rows, columns, sums, hits);
    }
    return with_offsets ? scan_block<k8, true, false>(rows, columns, sums, hits)
                        : scan_block<k8, false, false>(rows, columns, sums, hits);
}
