// The k rows of one sparse matrix that are nearest to every row of another, by cosine.
//
//   score(q, t) = Σ_c query(q, c) * target(t, c), in double precision by increasing columns, rounded to float
//
// Rows have unit length (or less, where columns that the other side lacks were left out), and positive weights. Columns
// are numbered from rare to frequent, which is what makes this fast: for every target, the products of the rare columns
// are added up in 16 bits, rounded up. The norm of the frequent columns bounds what is missing, and those that may
// still be among the k best are scored exactly. The result is that of comparing all pairs, unless a row would spend
// more than `budget` list entries: then its candidates are the best of the most promising, which share its rarest
// columns. Ties: the lower target is better.
//
// Parallel decomposition: a thread takes some queries. Queries are independent, so threads do not change a result.
#pragma once

#include <cstdint>

namespace stea {

struct WeightedRows {
    const int64_t* indptr;   // [rows + 1]
    const int32_t* columns;  // [nnz], increasing in every row
    const float* weights;    // [nnz], at least kLeastWeight
    int64_t rows;
};

// Smaller weights are no use, and their squares would vanish.
constexpr float kLeastWeight = 1e-15F;

struct CosineArgs {
    WeightedRows queries;
    WeightedRows targets;
    int64_t num_columns;
    int64_t k;
    float min_score;  // what is below is no candidate
    int64_t budget;
    int32_t* indices;  // [queries, k], best first, -1 = none
    float* scores;     // [queries, k], 0 where none
};

}  // namespace stea
