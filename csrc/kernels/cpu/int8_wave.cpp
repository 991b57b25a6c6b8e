#include "int8_wave.h"

#include <algorithm>
#include <limits>

namespace stea {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kUnreachableShift = 1e30f;  // exp of minus this is 0
constexpr int64_t kMostRanges = 32;         // of columns, to which what was found is applied by different threads

constexpr size_t kMostKept = 8192;  // candidates of a range whose memory is not given back

constexpr int64_t kLeastBlocks = 4;  // of a wave with few rows, so that more than one thread has work

int64_t most_blocks(int64_t rows) { return std::max(kLeastBlocks + 1, rounded_up_to(rows, kBlockRows) / kBlockRows); }

int bits_of(int64_t number) {
    int bits = 0;
    for (; number > 0; number /= 2) ++bits;
    return bits;
}

}  // namespace

ScanLines::ScanLines(int64_t count)
    : inverse(static_cast<size_t>(count), 1.0f),
      threshold(static_cast<size_t>(count), kInfinity),
      offset(static_cast<size_t>(count), 0.0f),
      factor(static_cast<size_t>(count), 0.0f),
      shift(static_cast<size_t>(count), kUnreachableShift) {}

void ScanLines::set(int64_t place, const Line& line) {
    const auto i = static_cast<size_t>(place);
    inverse[i] = 1.0f / line.unit;
    offset[i] = line.excluded ? kInfinity : (line.offset - kFuzz * std::abs(line.offset)) * inverse[i];
    set_threshold(place, line);
}

void ScanLines::set_threshold(int64_t place, const Line& line) {
    const auto i = static_cast<size_t>(place);
    const float fuzz = kFuzz * (std::abs(line.threshold) + std::abs(line.offset));
    threshold[i] = std::isinf(line.threshold) ? line.threshold : (line.threshold + line.offset - fuzz) * inverse[i];
}

Wave::Wave(const ColumnPanels& panels, int64_t most_rows, bool with_sums)
    : range_bits(bits_of((panels.count() - 1) / kMostRanges)),
      ranges(((panels.count() - 1) >> range_bits) + 1),
      row_bytes(panels.steps() * kStepBytes),
      row_bias(panels.bits() == Bits::k8 ? 128 : 0),
      slivers((most_rows + kBlockRows) * row_bytes),  // blocks are equally large, so the last one may be padded
      found(static_cast<size_t>(most_blocks(most_rows) * ranges)),
      padded_columns(rounded_up_to(panels.count(), kSliverColumns)),
      column_sums(static_cast<size_t>(with_sums ? most_blocks(most_rows) * padded_columns : 0)) {}

void Wave::begin(int64_t first_row, int64_t count) {
    first = first_row;
    rows = count;
    block_size = std::min(kBlockRows, rounded_up_to(std::max<int64_t>(1, count / kLeastBlocks), kSliverRows));
    blocks = rounded_up_to(count, block_size) / block_size;
    std::fill_n(slivers.data(), blocks * block_size * row_bytes, row_bias);
    std::fill(column_sums.begin(), column_sums.end(), 0.0f);
    for (Found& list : found) {
        list.exact.clear();
        list.candidates.clear();
        // The first waves find much more than the others.
        if (list.candidates.capacity() > kMostKept) list.candidates.shrink_to_fit();
    }
}

}  // namespace stea
