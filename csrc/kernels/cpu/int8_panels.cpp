#include "int8_panels.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "parallel_tasks.h"

namespace stea {
namespace {

constexpr std::align_val_t kCacheLine{64};

int64_t slivers_of(int64_t lines, int64_t size) { return (lines + size - 1) / size; }

// The generator "splitmix64".
uint64_t next_random(uint64_t& state) {
    uint64_t value = state += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

}  // namespace

AlignedBytes::AlignedBytes(int64_t size)
    : bytes_(static_cast<uint8_t*>(::operator new[](static_cast<size_t>(size), kCacheLine))) {
    std::memset(bytes_.get(), 0, static_cast<size_t>(size));
}

void AlignedBytes::Free::operator()(uint8_t* bytes) const { ::operator delete[](bytes, kCacheLine); }

SeededTurn::SeededTurn(int64_t width) : width_(width), block_(1), signs_(static_cast<size_t>(2 * width)) {
    while (2 * block_ <= width_) block_ *= 2;
    uint64_t state = 0;
    for (float& sign : signs_) sign = (next_random(state) & 1) != 0 ? 1.0f : -1.0f;
}

RoundedRow round_line(const Int8Tier& tier, const Matrix& values, double norm, int64_t line, const Turn& turn,
                      float* scratch, const SliverPlace& place) {
    const int64_t begin = line * values.width;
    return values.floats != nullptr ? tier.round_floats(values.floats + begin, 1.0 / norm, turn, scratch, place)
                                    : tier.round_doubles(values.doubles + begin, 1.0 / norm, turn, scratch, place);
}

ColumnPanels::ColumnPanels(const Matrix& values, const double* norms, Bits bits, const Int8Tier& tier, int n_threads)
    : tier_(tier),
      bits_(bits),
      turn_(values.width),
      rows_(static_cast<size_t>(values.count), kZeroRow),
      slivers_(slivers_of(values.count, kSliverColumns) * turn_.steps(bits) * kSliverColumns * kStepBytes) {
    constexpr int64_t kChunk = 4 * kSliverColumns;
    const int64_t stride = kSliverColumns * kStepBytes;
    parallel_tasks(slivers_of(values.count, kChunk), n_threads, [&](int, int64_t chunk) {
        std::vector<float> scratch(static_cast<size_t>(turn_.scratch_size()));
        for (int64_t line = chunk * kChunk; line < std::min((chunk + 1) * kChunk, values.count); ++line) {
            uint8_t* first = slivers_.data() + line / kSliverColumns * steps() * stride;
            const SliverPlace place{first + line % kSliverColumns * kStepBytes, stride, 0, bits};
            if (norms[line] > 0.0) {
                rows_[static_cast<size_t>(line)] =
                    round_line(tier, values, norms[line], line, turn_.view(), scratch.data(), place);
            }
        }
    });
}

}  // namespace stea
