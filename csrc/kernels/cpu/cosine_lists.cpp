#include "cosine_lists.h"

#include <algorithm>
#include <cmath>

#include "interruption.h"

namespace stea {
namespace {

// A list is long with more than this times the square root of the targets: measured on names of 20,000 to a million.
constexpr double kLongList = 10.0;
constexpr double kShortList = 1000.0;  // never long
constexpr int32_t kMostFrequent = 1 << 16;
constexpr int64_t kRowsBetweenPolls = 1 << 14;

}  // namespace

CosineLists::CosineLists(const WeightedRows& targets, int64_t num_columns, const std::function<bool()>& poll)
    : begin_(static_cast<size_t>(num_columns) + 1),
      frequent_begin_(static_cast<size_t>(targets.rows) + 1),
      frequent_norms_(static_cast<size_t>(padded_targets(targets.rows))) {
    const int64_t size = targets.indptr[targets.rows];
    targets_.resize(static_cast<size_t>(size));
    weights_.resize(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) ++begin_[static_cast<size_t>(targets.columns[i]) + 1];
    for (size_t c = 1; c < begin_.size(); ++c) begin_[c] += begin_[c - 1];
    const double long_list = std::max(kShortList, kLongList * std::sqrt(static_cast<double>(targets.rows)));
    while (first_frequent_ < num_columns && static_cast<double>(length(first_frequent_)) <= long_list) {
        ++first_frequent_;
    }
    first_frequent_ = std::max(first_frequent_, static_cast<int32_t>(num_columns) - kMostFrequent);
    measure(targets);
    fill(targets, poll);
}

void CosineLists::measure(const WeightedRows& targets) {
    double most = 0.0;
    for (int64_t row = 0; row < targets.rows; ++row) {
        double squares = 0.0;
        for (int64_t i = targets.indptr[row]; i < targets.indptr[row + 1]; ++i) {
            squares += double{targets.weights[i]} * targets.weights[i];
            most_weight_ = std::max(most_weight_, double{targets.weights[i]});
        }
        most = std::max(most, squares);
    }
    most_norm_ = std::sqrt(most);
}

void CosineLists::fill(const WeightedRows& targets, const std::function<bool()>& poll) {
    std::vector<int64_t> next(begin_.begin(), begin_.end() - 1);
    for (int64_t row = 0; row < targets.rows; ++row) {
        if (row % kRowsBetweenPolls == 0 && poll()) throw Interrupted{};
        double squares = 0.0;
        for (int64_t i = targets.indptr[row]; i < targets.indptr[row + 1]; ++i) {
            const int32_t column = targets.columns[i];
            const double weight = targets.weights[i];
            const auto rounded = static_cast<uint16_t>(whole_above(weight / most_weight_ * kMostWeight, kMostWeight));
            const auto place = static_cast<size_t>(next[static_cast<size_t>(column)]++);
            targets_[place] = static_cast<int32_t>(row);
            weights_[place] = rounded;
            if (column < first_frequent_) continue;
            frequent_.push_back({static_cast<uint16_t>(column - first_frequent_), rounded});
            squares += weight * weight;
        }
        frequent_begin_[static_cast<size_t>(row) + 1] = static_cast<int64_t>(frequent_.size());
        if (squares == 0.0) continue;
        frequent_norms_[static_cast<size_t>(row)] =
            static_cast<int16_t>(whole_above(std::sqrt(squares) / most_norm_ * kMostNorm, kMostNorm));
    }
}

}  // namespace stea
