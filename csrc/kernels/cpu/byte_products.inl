typedef int8_t Bytes __attribute__((vector_size(kLanes)));

// Rounds a row, whose components go to their place four at a time.
ByteRow round_bytes(const float* row, int64_t width, const SliverPlace& place) {
    const float scale = largest_magnitude(row, width) / 127.0f;
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    constexpr float kRound = 12582912.0f;       // 1.5 * 2^23: adding it rounds to a whole number ...
    constexpr int32_t kRoundBits = 0x4B400000;  // ... which is what its bits then exceed these by
    const auto bias = static_cast<char>(place.bias);
    Ints sums = {};
    for (int64_t begin = 0; begin < width; begin += kLanes) {
        float some[kLanes] = {};
        const int64_t count = width - begin < kLanes ? width - begin : kLanes;
        const float* values = row + begin;
        if (count < kLanes) {
            for (int64_t i = 0; i < count; ++i) some[i] = values[i];
            values = some;
        }
        const Floats shifted = load_lanes<Floats>(values) * inverse + kRound;
        const Ints whole = reinterpret_cast<Ints>(shifted) - kRoundBits;
        sums += whole;
        const Bytes bytes = __builtin_convertvector(whole, Bytes) ^ bias;
        for (int64_t at = 0; at < count; at += kStepBytes) {
            __builtin_memcpy(place.bytes + (begin + at) / kStepBytes * place.stride,
                             reinterpret_cast<const char*>(&bytes) + at, kStepBytes);
        }
    }
    uint32_t sum = 0;  // what NaN rounds to may be too large for a sign
    for (int lane = 0; lane < kLanes; ++lane) sum += static_cast<uint32_t>(sums[lane]);
    return {scale, static_cast<int32_t>(sum)};
}

// out[i, j] = product of row i of the block and column j of the sliver; rows of `out` are `stride` apart.
void multiply_bytes(const ByteRows& rows, const ByteColumns& columns, float* out, int64_t stride) {
    constexpr int32_t kNoReach[kSliverColumns] = {};
    for (int64_t row = 0; row < rows.count; row += kTileRows) {
        const int64_t sliver = row / kSliverRows;
        const uint8_t* left = rows.slivers + (sliver * rows.steps * kSliverRows + row % kSliverRows) * kStepBytes;
        const uint8_t* next =
            columns.sliver + (rows.steps * kSliverColumns + sliver * rows.steps * kStepBytes) * kStepBytes;
        for (int64_t column = 0; column < kSliverColumns; column += kTileVectors * kLanes) {
            const Tile tile = multiply_tile<Bits::k8>(left, columns.sliver + column * kStepBytes, rows.steps, kNoReach,
                                                      columns.correction + column, next);
            for (int i = 0; i < kTileRows; ++i) {
                for (int v = 0; v < kTileVectors; ++v) {
                    const int64_t first = column + v * kLanes;
                    const Floats products =
                        to_floats(tile.sums[i][v]) * rows.scales[row + i] * load_lanes<Floats>(columns.scales + first);
                    __builtin_memcpy(out + (row + i) * stride + first, &products, sizeof products);
                }
            }
        }
    }
}
