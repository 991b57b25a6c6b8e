// What every target of a query scores at most, in 16 bits: 0 to 32767, rounded up.
//
// The targets stand in blocks of kRows rows and kLanes lanes. A group is a lane of a block, and groups stand in blocks
// likewise: the largest bounds of groups, and of groups of groups, are found by vectors, and lead to the targets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cosine_lists.h"

namespace stea {

struct Bound {
    int16_t most;
    int32_t target;
    bool operator<(const Bound& other) const {  // the larger one is first
        return most != other.most ? most > other.most : target < other.target;
    }
};

class CosineBounds {
  public:
    explicit CosineBounds(int64_t targets)
        : targets_(targets),
          sums_(static_cast<size_t>(padded_targets(targets))),
          groups_(sums_.size() / kRows),
          parents_(groups_.size() / kRows) {}

    int16_t* sums() { return sums_.data(); }
    int16_t sum(int32_t target) const { return sums_[static_cast<size_t>(target)]; }
    void clear() { std::fill(sums_.begin(), sums_.end(), int16_t{0}); }

    // A target's bound: its sum and `norms` times `left`, in quarters. `norms` has padded_targets entries.
    void bound(const int16_t* norms, int16_t left) {
        norms_ = norms;
        left_ = left;
        fold(sums_.data(), groups_.data(), static_cast<int64_t>(parents_.size()) * kRows / kLanes, true);
        fold(groups_.data(), parents_.data(), static_cast<int64_t>(parents_.size()) / kLanes, false);
    }

    // A bound that at least k targets reach, or 1.
    int16_t reached_by(int64_t k) {
        if (static_cast<int64_t>(parents_.size()) < k) return 1;
        largest_.resize(static_cast<size_t>(k));
        std::partial_sort_copy(parents_.begin(), parents_.end(), largest_.begin(), largest_.end(),
                               [](int16_t a, int16_t b) { return a > b; });
        return std::max<int16_t>(largest_.back(), 1);
    }

    // The targets with at least that bound; those after the first `enough` may be missing.
    void gather(int16_t least, int64_t enough, std::vector<Bound>& found) const {
        found.clear();
        for (int64_t parent = 0; parent < static_cast<int64_t>(parents_.size()); ++parent) {
            if (parents_[static_cast<size_t>(parent)] < least) continue;
            if (static_cast<int64_t>(found.size()) > enough) return;
            for (int64_t i = 0, group = first_child(parent); i < kRows; ++i, group += kLanes) {
                if (groups_[static_cast<size_t>(group)] >= least) gather_group(group, least, found);
            }
        }
    }

  private:
    static int64_t first_child(int64_t group) { return group / kLanes * kLanes * kRows + group % kLanes; }

    void gather_group(int64_t group, int16_t least, std::vector<Bound>& found) const {
        for (int64_t i = 0, target = first_child(group); i < kRows; ++i, target += kLanes) {
            const int16_t most = bound_at(sums_.data(), target);
            if (most >= least && target < targets_) found.push_back({most, static_cast<int32_t>(target)});
        }
    }

    int16_t bound_at(const int16_t* sums, int64_t target) const {
        return static_cast<int16_t>(sums[target] + (static_cast<uint16_t>(norms_[target] * left_) >> 2));
    }

    // The largest of every lane of every block, of the sums themselves or of the bounds.
    void fold(const int16_t* values, int16_t* largest, int64_t blocks, bool bounds) const {
        const int16_t* norms = norms_;
        const int16_t left = left_;
        for (int64_t block = 0; block < blocks; ++block, largest += kLanes) {
            int16_t most[kLanes] = {};
            for (int64_t row = 0; row < kRows; ++row, values += kLanes) {
                if (bounds) {
                    for (int64_t lane = 0; lane < kLanes; ++lane) {
                        const auto rest = static_cast<uint16_t>(norms[lane] * left);
                        const auto value = static_cast<int16_t>(values[lane] + (rest >> 2));
                        most[lane] = most[lane] > value ? most[lane] : value;
                    }
                    norms += kLanes;
                } else {
                    for (int64_t lane = 0; lane < kLanes; ++lane) {
                        most[lane] = most[lane] > values[lane] ? most[lane] : values[lane];
                    }
                }
            }
            std::copy(most, most + kLanes, largest);
        }
    }

    int64_t targets_;
    std::vector<int16_t> sums_;
    std::vector<int16_t> groups_;
    std::vector<int16_t> parents_;
    std::vector<int16_t> largest_;
    const int16_t* norms_ = nullptr;
    int16_t left_ = 0;
};

}  // namespace stea
