// Rows of one side as whole numbers of 8 or 16 bits, in the order in which the int8 search reads them.
#pragma once

#include <memory>
#include <vector>

#include "../int8_search.h"
#include "int8_tier.h"

namespace stea {

// Zeroed bytes that begin with a line of the cache.
class AlignedBytes {
  public:
    explicit AlignedBytes(int64_t size);
    uint8_t* data() { return bytes_.get(); }
    const uint8_t* data() const { return bytes_.get(); }

  private:
    struct Free {
        void operator()(uint8_t* bytes) const;
    };
    std::unique_ptr<uint8_t[], Free> bytes_;
};

// The orthogonal transform of this width: the same in every process.
class SeededTurn {
  public:
    explicit SeededTurn(int64_t width);
    Turn view() const { return {width_, block_, signs_.data()}; }
    int64_t steps(Bits bits) const { return (width_ * (bits == Bits::k8 ? 1 : 2) + kStepBytes - 1) / kStepBytes; }
    int64_t scratch_size() const { return 2 * width_; }

  private:
    int64_t width_;
    int64_t block_;
    std::vector<float> signs_;
};

// Rounds row `line` of a side into its place. Its norm must not be 0.
RoundedRow round_line(const Int8Tier& tier, const Matrix& values, double norm, int64_t line, const Turn& turn,
                      float* scratch, const SliverPlace& place);

// The side of the columns, whole.
class ColumnPanels {
  public:
    ColumnPanels(const Matrix& values, const double* norms, Bits bits, const Int8Tier& tier, int n_threads);

    int64_t count() const { return static_cast<int64_t>(rows_.size()); }
    int64_t width() const { return turn_.view().width; }
    const SeededTurn& turn() const { return turn_; }
    const Int8Tier& tier() const { return tier_; }
    const RoundedRow& row(int64_t line) const { return rows_[static_cast<size_t>(line)]; }
    Bits bits() const { return bits_; }
    int64_t steps() const { return turn_.steps(bits_); }
    const uint8_t* sliver(int64_t number) const {
        return slivers_.data() + number * steps() * kSliverColumns * kStepBytes;
    }

  private:
    const Int8Tier& tier_;
    Bits bits_;
    SeededTurn turn_;
    std::vector<RoundedRow> rows_;
    AlignedBytes slivers_;
};

}  // namespace stea
