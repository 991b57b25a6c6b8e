// Builds the (r, r') -> Strength table of views.h from two sparse matrices.
#pragma once

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
    const float* fun;      // [size] inverse functionality
    const int64_t* edges;  // [size] number of edges
    int64_t size;          // 2R
};

class RelationTable {
  public:
    // sub12[r, r'] = P(r in r'), sub21[r', r] = P(r' in r); `fallback` is the probability of pairs stored
    // in neither matrix. A pair stored in only one of them has probability 0 in the other.
    RelationTable(const SparseView& sub12, const SparseView& sub21, const RelationSide& side1,
                  const RelationSide& side2, float fallback);

    RelationTableView view(bool source_is_graph1) const;
    int64_t size1() const { return static_cast<int64_t>(default1_.size()); }
    int64_t size2() const { return static_cast<int64_t>(default2_.size()); }

  private:
    void store(int32_t relation1, int32_t relation2, Strength strength);
    void fill_defaults();
    void build_outside();

    std::vector<uint32_t> index1_;
    std::vector<uint32_t> index2_;
    std::vector<float> default1_;
    std::vector<float> default2_;
    std::vector<Strength> corner_;
    std::vector<OutsidePair> outsiders_;  // in the order of storing
    std::vector<OutsidePair> outside_;    // the same as an open-addressing table
};

}  // namespace stea
