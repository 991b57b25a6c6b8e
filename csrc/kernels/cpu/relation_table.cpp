#include "../relation_table.h"

#include <algorithm>
#include <numeric>

namespace stea {
namespace {

struct Pairs {
    std::vector<size_t> indptr;  // [rows + 1]
    std::vector<int32_t> columns;
    std::vector<Strength> strengths;

    size_t num_rows() const { return indptr.size() - 1; }
    size_t length(size_t row) const { return indptr[row + 1] - indptr[row]; }
};

// The pairs seen from the other graph. Rows of the result are in increasing order of the column, because the
// rows read are.
Pairs transpose(const Pairs& pairs, size_t num_columns) {
    Pairs out{std::vector<size_t>(num_columns + 1, 0), std::vector<int32_t>(pairs.columns.size()),
              std::vector<Strength>(pairs.columns.size())};
    for (const int32_t column : pairs.columns) ++out.indptr[static_cast<size_t>(column) + 1];
    std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
    std::vector<size_t> next(out.indptr.begin(), out.indptr.end() - 1);
    for (size_t row = 0; row < pairs.num_rows(); ++row) {
        for (size_t j = pairs.indptr[row]; j < pairs.indptr[row + 1]; ++j) {
            const size_t place = next[static_cast<size_t>(pairs.columns[j])]++;
            out.columns[place] = static_cast<int32_t>(row);
            out.strengths[place] = {pairs.strengths[j].target, pairs.strengths[j].source};
        }
    }
    return out;
}

// One matrix of P(r in r') as pairs with only the strength of the target side.
Pairs contained(const SparseView& sub, const RelationSide& source, const RelationSide& target) {
    Pairs out;
    out.indptr.assign(sub.indptr, sub.indptr + source.size + 1);
    out.columns.assign(sub.indices, sub.indices + sub.indptr[source.size]);
    for (size_t j = 0; j < out.columns.size(); ++j) {
        out.strengths.push_back({0.0f, sub.values[j] * target.fun[out.columns[j]]});
    }
    return out;
}

// Pairs stored in either, with the strengths of both.
Pairs joined(const Pairs& a, const Pairs& b) {
    Pairs out;
    out.indptr.push_back(0);
    for (size_t row = 0; row < a.num_rows(); ++row) {
        size_t i = a.indptr[row];
        size_t j = b.indptr[row];
        while (i < a.indptr[row + 1] || j < b.indptr[row + 1]) {
            const int32_t in_a = i < a.indptr[row + 1] ? a.columns[i] : INT32_MAX;
            const int32_t in_b = j < b.indptr[row + 1] ? b.columns[j] : INT32_MAX;
            const int32_t column = std::min(in_a, in_b);
            Strength strength{0.0f, 0.0f};
            if (in_a == column) strength.target = a.strengths[i++].target;
            if (in_b == column) strength.source = b.strengths[j++].source;
            out.columns.push_back(column);
            out.strengths.push_back(strength);
        }
        out.indptr.push_back(out.columns.size());
    }
    return out;
}

// Finds for one row after the other a shift at which none of its columns is taken.
class Places {
  public:
    explicit Places(size_t width) : width_(width), taken_(width + 1, false) {}

    // Columns in increasing order. The first shift that fits, unless that takes too long to find.
    size_t take(const int32_t* columns, size_t count) {
        constexpr int kMostTries = 4096;
        while (taken_[first_free_]) ++first_free_;
        const auto first = static_cast<size_t>(columns[0]);
        size_t shift = std::max(first_free_, first) - first;
        for (int tries = 0; !fits(shift, columns, count); ++shift) {
            if (++tries == kMostTries) shift = end_;
        }
        for (size_t i = 0; i < count; ++i) taken_[shift + static_cast<size_t>(columns[i])] = true;
        end_ = std::max(end_, shift + static_cast<size_t>(columns[count - 1]) + 1);
        return shift;
    }

    // Every place that a row may read, whatever its shift.
    size_t size() const { return end_ + width_; }

  private:
    bool fits(size_t shift, const int32_t* columns, size_t count) {
        if (shift + width_ >= taken_.size()) taken_.resize(2 * (shift + width_ + 1), false);
        for (size_t i = 0; i < count; ++i) {
            if (taken_[shift + static_cast<size_t>(columns[i])]) return false;
        }
        return true;
    }

    size_t width_;
    size_t first_free_ = 0;
    size_t end_ = 0;  // nothing is taken from here on
    std::vector<bool> taken_;
};

StrengthOverlay overlay(const Pairs& pairs, size_t num_columns) {
    std::vector<size_t> order(pairs.num_rows());
    std::iota(order.begin(), order.end(), size_t{0});
    // The longest rows first: short ones fill the gaps.
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return pairs.length(a) > pairs.length(b); });
    Places places(num_columns);
    StrengthOverlay out;
    out.shift.assign(pairs.num_rows(), 0);
    for (const size_t row : order) {
        if (pairs.length(row) == 0) break;
        out.shift[row] = static_cast<uint32_t>(places.take(&pairs.columns[pairs.indptr[row]], pairs.length(row)));
    }
    out.slots.assign(places.size(), PairSlot{{0.0f, 0.0f}, -1, -1});
    for (size_t row = 0; row < pairs.num_rows(); ++row) {
        const auto relation = static_cast<int32_t>(row);
        for (size_t j = pairs.indptr[row]; j < pairs.indptr[row + 1]; ++j) {
            out.slots[out.shift[row] + static_cast<size_t>(pairs.columns[j])] = {pairs.strengths[j], relation,
                                                                                 relation};
        }
    }
    return out;
}

std::vector<float> scaled(const RelationSide& side, float factor) {
    std::vector<float> values(side.fun, side.fun + side.size);
    for (float& value : values) value *= factor;
    return values;
}

}  // namespace

RelationTable::RelationTable(const SparseView& sub12, const SparseView& sub21, const RelationSide& side1,
                             const RelationSide& side2, float fallback)
    : default1_(scaled(side1, fallback)), default2_(scaled(side2, fallback)), has_defaults_(fallback > 0.0f) {
    const auto size1 = static_cast<size_t>(side1.size);
    const auto size2 = static_cast<size_t>(side2.size);
    const Pairs pairs = joined(contained(sub12, side1, side2), transpose(contained(sub21, side2, side1), size1));
    from1_ = overlay(pairs, size2);
    from2_ = overlay(transpose(pairs, size2), size1);
}

RelationTableView RelationTable::view(bool source_is_graph1) const {
    const StrengthOverlay& seen = source_is_graph1 ? from1_ : from2_;
    const std::vector<float>& source = source_is_graph1 ? default1_ : default2_;
    const std::vector<float>& target = source_is_graph1 ? default2_ : default1_;
    return {seen.slots.data(), seen.shift.data(), source.data(), target.data(), has_defaults_};
}

}  // namespace stea
