// The targets of a search by cosine, by columns.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../cosine_topk.h"

namespace stea {

// Weights in 16 bits and norms in 8, rounded up: what is computed from them is never too small.
constexpr double kMostWeight = 65535.0;
constexpr double kMostNorm = 255.0;

// Targets are looked at by blocks of blocks, whose rows and lanes are these.
constexpr int64_t kLanes = 16;
constexpr int64_t kRows = 8;

inline int64_t padded_targets(int64_t targets) {
    constexpr int64_t kWhole = kRows * kRows * kLanes;
    return (targets + kWhole - 1) / kWhole * kWhole;
}

// The least whole number that is not below, at most `most`; what was rounded on the way does not matter.
inline int32_t whole_above(double value, double most) {
    const double up = value * (1.0 + 1e-6) + 1.0;
    return static_cast<int32_t>(up < most ? up : most);
}

// A frequent column of a target.
struct Frequent {
    uint16_t column;  // counted from the first frequent one
    uint16_t weight;  // in parts of most_weight / kMostWeight
};

// Every column's targets in order, and the frequent columns by targets. Columns from `first_frequent` on have long
// lists.
class CosineLists {
  public:
    CosineLists(const WeightedRows& targets, int64_t num_columns, const std::function<bool()>& poll);

    const int32_t* targets(int32_t column) const { return targets_.data() + begin_[static_cast<size_t>(column)]; }
    const uint16_t* weights(int32_t column) const { return weights_.data() + begin_[static_cast<size_t>(column)]; }
    int64_t length(int32_t column) const {
        return begin_[static_cast<size_t>(column) + 1] - begin_[static_cast<size_t>(column)];
    }

    int32_t first_frequent() const { return first_frequent_; }
    int64_t num_frequent() const { return static_cast<int64_t>(begin_.size()) - 1 - first_frequent_; }
    const Frequent* frequent_begin(int32_t target) const { return frequent_.data() + frequent_begin_[target]; }
    const Frequent* frequent_end(int32_t target) const { return frequent_.data() + frequent_begin_[target + 1]; }

    // [padded_targets] the norms of the frequent columns, in parts of most_norm / kMostNorm.
    const int16_t* frequent_norms() const { return frequent_norms_.data(); }
    double most_weight() const { return most_weight_; }
    double most_norm() const { return most_norm_; }

  private:
    void measure(const WeightedRows& targets);
    void fill(const WeightedRows& targets, const std::function<bool()>& poll);

    std::vector<int64_t> begin_;  // [columns + 1]
    std::vector<int32_t> targets_;
    std::vector<uint16_t> weights_;  // in parts of most_weight / kMostWeight
    std::vector<int64_t> frequent_begin_;
    std::vector<Frequent> frequent_;
    std::vector<int16_t> frequent_norms_;
    double most_weight_ = 0.0;
    double most_norm_ = 0.0;
    int32_t first_frequent_ = 0;
};

}  // namespace stea
