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

// A growing set of places, sixty-four to a word.
class Bits {
  public:
    bool test(size_t place) const { return (window(place) & 1) != 0; }

    void set(size_t place) {
        if (place / 64 >= words_.size()) words_.resize(2 * (place / 64 + 1), 0);
        words_[place / 64] |= uint64_t{1} << (place % 64);
    }

    void clear() { words_.assign(words_.size(), 0); }

    // Whether no place of `other`, moved by `shift`, is set here.
    bool free_for(const Bits& other, size_t num_words, size_t shift) const {
        for (size_t w = 0; w < num_words; ++w) {
            if ((other.words_[w] & window(shift + 64 * w)) != 0) return false;
        }
        return true;
    }

  private:
    // Sixty-four places from `begin` on.
    uint64_t window(size_t begin) const {
        const size_t word = begin / 64;
        const size_t offset = begin % 64;
        const uint64_t low = word < words_.size() ? words_[word] >> offset : 0;
        const uint64_t high = offset > 0 && word + 1 < words_.size() ? words_[word + 1] << (64 - offset) : 0;
        return low | high;
    }

    std::vector<uint64_t> words_;
};

// Finds for one row after the other a shift of its own at which none of its columns is taken.
class Places {
  public:
    // The first shift that fits, counted from that of the row before: no shift is tried by many rows.
    size_t take(const std::vector<uint32_t>& columns) {
        if (columns.size() == 1) return fill(columns[0]);
        row_.clear();
        for (const uint32_t column : columns) row_.set(column);
        const size_t num_words = *std::max_element(columns.begin(), columns.end()) / 64 + 1;
        while (shifts_.test(cursor_) || !taken_.free_for(row_, num_words, cursor_)) ++cursor_;
        for (const uint32_t column : columns) occupy(cursor_ + column);
        shifts_.set(cursor_);
        return cursor_;
    }

    size_t end() const { return end_; }

  private:
    // A row of one column fills the first gap that it can.
    size_t fill(uint32_t column) {
        while (taken_.test(gap_)) ++gap_;
        size_t place = std::max<size_t>(gap_, column);
        while (taken_.test(place) || shifts_.test(place - column)) ++place;
        occupy(place);
        shifts_.set(place - column);
        return place - column;
    }

    void occupy(size_t place) {
        taken_.set(place);
        end_ = std::max(end_, place + 1);
    }

    Bits taken_;
    Bits shifts_;
    Bits row_;
    size_t cursor_ = 0;
    size_t gap_ = 0;  // everything before is taken
    size_t end_ = 0;  // nothing is taken from here on
};

// Rows in the order of their lengths, the longest first.
std::vector<size_t> by_length(const Pairs& pairs) {
    std::vector<size_t> order(pairs.num_rows());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return pairs.length(a) > pairs.length(b); });
    return order;
}

// Columns are ranked by their number of pairs, which makes rows dense at their beginning, and the longest rows
// are placed first: the short ones fill the gaps.
StrengthOverlay overlay(const Pairs& rows, const Pairs& columns, bool has_defaults) {
    StrengthOverlay out;
    out.rank.assign(columns.num_rows(), 0);
    uint32_t next = 0;
    for (const size_t column : by_length(columns)) out.rank[column] = next++;
    out.shift.assign(rows.num_rows(), 0);
    Places places;
    std::vector<uint32_t> ranks;
    size_t free = 0;  // rows without pairs: one shift for all of them unless they have defaults to be told apart by
    for (const size_t row : by_length(rows)) {
        ranks.clear();
        for (size_t j = rows.indptr[row]; j < rows.indptr[row + 1]; ++j) {
            ranks.push_back(out.rank[static_cast<size_t>(rows.columns[j])]);
        }
        const size_t shift = ranks.empty() ? places.end() + free : places.take(ranks);
        if (ranks.empty() && has_defaults) ++free;
        out.shift[row] = static_cast<uint32_t>(shift);
    }
    out.relation_at.assign(places.end() + free + 1, -1);
    for (size_t row = 0; row < rows.num_rows(); ++row) out.relation_at[out.shift[row]] = static_cast<int32_t>(row);
    out.strongest.assign(rows.num_rows(), Strength{0.0f, 0.0f});
    // Also what a row without the pair may read.
    out.slots.assign(out.relation_at.size() + columns.num_rows(), PairSlot{{0.0f, 0.0f}, -1, -1});
    for (size_t row = 0; row < rows.num_rows(); ++row) {
        for (size_t j = rows.indptr[row]; j < rows.indptr[row + 1]; ++j) {
            const int32_t column = rows.columns[j];
            const size_t place = out.shift[row] + out.rank[static_cast<size_t>(column)];
            out.slots[place] = {rows.strengths[j], column, column};
            out.strongest[row].source = std::max(out.strongest[row].source, rows.strengths[j].source);
            out.strongest[row].target = std::max(out.strongest[row].target, rows.strengths[j].target);
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
    const Pairs transposed = transpose(pairs, size2);
    from1_ = overlay(pairs, transposed, has_defaults_);
    from2_ = overlay(transposed, pairs, has_defaults_);
}

RelationTableView RelationTable::view(bool source_is_graph1) const {
    const StrengthOverlay& seen = source_is_graph1 ? from1_ : from2_;
    const std::vector<float>& source = source_is_graph1 ? default1_ : default2_;
    const std::vector<float>& target = source_is_graph1 ? default2_ : default1_;
    return {seen.slots.data(), seen.shift.data(), seen.rank.data(),      seen.relation_at.data(),
            source.data(),     target.data(),     seen.strongest.data(), has_defaults_};
}

}  // namespace stea
