// Plain views of caller-owned arrays. Kernels read and write through these and own nothing.
#pragma once

#include <cstdint>

namespace stea {

struct Edge {
    int32_t neighbor;  // n
    int32_t relation;  // r, in [0, 2R)
};

// Adjacency of the inverse closure: row e holds the edges (r, n) of N(e), ordered by (n, r).
struct GraphView {
    const int64_t* indptr;  // [num_entities + 1]
    const Edge* edges;      // [num_edges]
    int64_t num_entities;
};

// Sparse rows of beliefs w(n, n'): row n holds its believed targets, no target twice.
struct BeliefsView {
    const int64_t* indptr;   // [num_entities of the source graph + 1]
    const int32_t* targets;  // [nnz] n'
    const float* weights;    // [nnz] in [0, 1]
};

// Candidate targets of every source row; -1 means "none".
struct CandidatesView {
    const int32_t* indices;  // [rows, k], row-major, first row = row_begin
    int64_t k;
};

// A half-open range of source rows; outputs hold one row per row of the range.
struct RowRange {
    int64_t begin;
    int64_t end;
};

// How strongly a shared neighbour speaks for a pair when reached by relations r of graph 1 and r' of
// graph 2: from1 = P(r' in r) * fun^-1(r), from2 = P(r in r') * fun^-1(r').
struct Strength {
    float from1;
    float from2;
};

// A stored pair with a relation outside the corner.
struct OutsidePair {
    int64_t key;  // relation_key(r, r'), -1 = empty slot
    Strength strength;
};

// Sparse (r, r') -> Strength. Evidence is symmetric, so one table serves both directions.
//
// The most frequent relations of both graphs, ranked by frequency, have a dense corner of the table to
// themselves: nearly every look-up is one read at corner[index1[r] + index2[r']], and the pairs read most
// lie next to each other. Pairs with a relation outside the corner are in an open-addressing table.
struct RelationTableView {
    const Strength* corner;
    const uint32_t* index1;  // [2R] rank of r times the width of the corner, or kOutside
    const uint32_t* index2;  // [2R'] rank of r', or kOutside
    const OutsidePair* outside;
    uint64_t outside_mask;
    const float* default1;  // [2R] from1 of pairs that are not stored
    const float* default2;  // [2R'] from2 of pairs that are not stored
    bool source_is_graph1;  // false: the source rows are entities of graph 2
};

// Any sum of two indices with an outsider among them is at least this.
constexpr uint32_t kOutside = uint32_t{1} << 30;

// Static: every translation unit has its own.
static inline int64_t relation_key(int32_t relation1, int32_t relation2) {
    return (static_cast<int64_t>(relation1) << 32) | relation2;
}

static inline uint64_t outside_slot(int64_t key, uint64_t mask) {
    return ((static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15ull) >> 32) & mask;
}

}  // namespace stea
