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
    int64_t num_edges;
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

// The same, with as many targets in a row as its offsets say; null offsets: k in every row.
struct CandidateRows {
    const int32_t* indices;
    int64_t k;
    const int64_t* indptr;  // [rows + 1]

    int64_t place(int64_t row) const { return indptr == nullptr ? row * k : indptr[row]; }
    int64_t count(int64_t row) const { return indptr == nullptr ? k : indptr[row + 1] - indptr[row]; }
};

// A half-open range of source rows; outputs hold one row per row of the range.
struct RowRange {
    int64_t begin;
    int64_t end;
};

// What counts as one independent witness for a pair (e, e').
enum class Witnesses {
    kStatement,  // every two statements r(e, n), r'(e', n') that agree: the paper's product
    kNeighbor,   // every pair of neighbours (n, n'): of the statements about it only the strongest counts
};

// How strongly a shared neighbour speaks for a pair when reached by relation r of the source graph and r' of
// the target graph: P(r' in r) * fun^-1(r) and P(r in r') * fun^-1(r').
struct Strength {
    float source;
    float target;
};

// A stored pair (r, r'), or a free slot. Sixteen bytes: the kernels load it as one vector.
struct alignas(16) PairSlot {
    Strength strength;
    int32_t relation;        // r', -1 = free
    int32_t relation_again;  // the same, so that one comparison masks two lanes
};

// Sparse (r, r') -> Strength, seen from one of the graphs.
//
// The rows of the sparse matrix are laid over each other, each shifted so that no two stored pairs meet:
// pair (r, r') is at slots[shift[r] + rank[r']] or nowhere. No two rows have the same shift, so the slot holds (r, r')
// if it holds any pair of r'. One read and one comparison find it, and the table is little larger than the pairs
// it holds, so it stays in a cache near the core.
struct RelationTableView {
    const PairSlot* slots;
    const uint32_t* shift;        // [2R]
    const uint32_t* rank;         // [2R'] by the number of stored pairs
    const int32_t* relation_at;   // [largest shift + 1] r of a shift
    const float* source_default;  // [2R] strength.source of pairs that are not stored
    const float* target_default;  // [2R'] strength.target of pairs that are not stored
    const Strength* strongest;    // [2R] the largest of each strength of the pairs that are stored
    bool has_defaults;            // false: pairs that are not stored say nothing
};

}  // namespace stea
