// Builds the (r, r') -> Strength tables of views.h from two sparse matrices.
#pragma once

#include <cstddef>
#include <vector>

#include "views.h"

namespace stea {

// Rows with increasing column indices.
struct SparseView {
    const int64_t* indptr;
    const int32_t* indices;
    const float* values;
};

// One graph's side of the table.
struct RelationSide {
    const float* fun;  // [size] inverse functionality
    int64_t size;      // 2R
};

// One sparse matrix of strengths, rows laid over each other.
struct StrengthOverlay {
    std::vector<uint32_t> shift;
    std::vector<uint32_t> rank;
    std::vector<int32_t> relation_at;
    std::vector<PairSlot> slots;
    std::vector<Strength> strongest;
};

class RelationTable {
  public:
    // sub12[r, r'] = P(r in r'), sub21[r', r] = P(r' in r); `fallback` is the probability of pairs stored
    // in neither matrix. A pair stored in only one of them has probability 0 in the other.
    RelationTable(const SparseView& sub12, const SparseView& sub21, const RelationSide& side1,
                  const RelationSide& side2, float fallback);

    // The table for source rows that are entities of graph 1, or of graph 2.
    RelationTableView view(bool source_is_graph1) const;
    int64_t size1() const { return static_cast<int64_t>(default1_.size()); }
    int64_t size2() const { return static_cast<int64_t>(default2_.size()); }

  private:
    std::vector<float> default1_;
    std::vector<float> default2_;
    bool has_defaults_;
    StrengthOverlay from1_;  // seen from graph 1
    StrengthOverlay from2_;
};

}  // namespace stea
