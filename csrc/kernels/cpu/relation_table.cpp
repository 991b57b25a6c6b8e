#include "../relation_table.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace stea {
namespace {

constexpr int64_t kCornerSide = 1024;  // 8 MiB at the most, of which only the observed pairs are ever touched

// rank * stride for the kCornerSide most frequent relations, kOutside for the others.
std::vector<uint32_t> rank_relations(const RelationSide& side, int64_t stride) {
    std::vector<int32_t> order(static_cast<size_t>(side.size));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return side.edges[a] > side.edges[b]; });
    std::vector<uint32_t> index(order.size(), kOutside);
    for (size_t rank = 0; rank < order.size() && rank < static_cast<size_t>(kCornerSide); ++rank) {
        index[static_cast<size_t>(order[rank])] = static_cast<uint32_t>(rank) * static_cast<uint32_t>(stride);
    }
    return index;
}

struct SparseRows {
    std::vector<int64_t> indptr;
    std::vector<int32_t> indices;
    std::vector<float> values;
};

// Rows of the result are in increasing order of the column, because the rows read are.
SparseRows transpose(const SparseView& matrix, int64_t num_rows, int64_t num_columns) {
    const int64_t nnz = matrix.indptr[num_rows];
    SparseRows out{std::vector<int64_t>(static_cast<size_t>(num_columns) + 1, 0),
                   std::vector<int32_t>(static_cast<size_t>(nnz)), std::vector<float>(static_cast<size_t>(nnz))};
    for (int64_t j = 0; j < nnz; ++j) ++out.indptr[static_cast<size_t>(matrix.indices[j]) + 1];
    std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
    std::vector<int64_t> next(out.indptr.begin(), out.indptr.end() - 1);
    for (int32_t row = 0; row < num_rows; ++row) {
        for (int64_t j = matrix.indptr[row]; j < matrix.indptr[row + 1]; ++j) {
            const auto place = static_cast<size_t>(next[static_cast<size_t>(matrix.indices[j])]++);
            out.indices[place] = row;
            out.values[place] = matrix.values[j];
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
    : index1_(rank_relations(side1, std::min(side2.size, kCornerSide))),
      index2_(rank_relations(side2, 1)),
      default1_(scaled(side1, fallback)),
      default2_(scaled(side2, fallback)),
      corner_(static_cast<size_t>(std::min(side1.size, kCornerSide) * std::min(side2.size, kCornerSide))) {
    if (fallback > 0.0f) fill_defaults();
    const SparseRows from1 = transpose(sub21, side2.size, side1.size);
    for (int32_t r = 0; r < side1.size; ++r) {
        int64_t i = from1.indptr[static_cast<size_t>(r)];
        int64_t j = sub12.indptr[r];
        const int64_t i_end = from1.indptr[static_cast<size_t>(r) + 1];
        const int64_t j_end = sub12.indptr[r + 1];
        while (i < i_end || j < j_end) {
            const int32_t in21 = i < i_end ? from1.indices[static_cast<size_t>(i)] : INT32_MAX;
            const int32_t in12 = j < j_end ? sub12.indices[j] : INT32_MAX;
            const int32_t r2 = std::min(in12, in21);
            Strength strength{0.0f, 0.0f};
            if (in21 == r2) strength.from1 = from1.values[static_cast<size_t>(i++)] * side1.fun[r];
            if (in12 == r2) strength.from2 = sub12.values[j++] * side2.fun[r2];
            store(r, r2, strength);
        }
    }
    build_outside();
}

void RelationTable::store(int32_t relation1, int32_t relation2, Strength strength) {
    const uint32_t cell = index1_[static_cast<size_t>(relation1)] + index2_[static_cast<size_t>(relation2)];
    if (cell < kOutside) {
        corner_[cell] = strength;
    } else {
        outsiders_.push_back({relation_key(relation1, relation2), strength});
    }
}

void RelationTable::fill_defaults() {
    for (size_t r = 0; r < index1_.size(); ++r) {
        for (size_t r2 = 0; r2 < index2_.size(); ++r2) {
            const uint32_t cell = index1_[r] + index2_[r2];
            if (cell < kOutside) corner_[cell] = {default1_[r], default2_[r2]};
        }
    }
}

void RelationTable::build_outside() {
    size_t slots = 2;
    while (slots < 2 * outsiders_.size()) slots *= 2;
    outside_.assign(slots, OutsidePair{-1, {0.0f, 0.0f}});
    for (const OutsidePair& pair : outsiders_) {
        uint64_t at = outside_slot(pair.key, slots - 1);
        while (outside_[at].key >= 0) at = (at + 1) & (slots - 1);
        outside_[at] = pair;
    }
    outsiders_ = {};
}

RelationTableView RelationTable::view(bool source_is_graph1) const {
    return {corner_.data(),      index1_.data(),   index2_.data(),   outside_.data(),
            outside_.size() - 1, default1_.data(), default2_.data(), source_is_graph1};
}

}  // namespace stea
