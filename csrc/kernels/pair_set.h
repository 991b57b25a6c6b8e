// The pair set of the joint refinement: candidates and proposals as sparse rows, and what is computed over them.
//
// Pairs stand in the order of (row, column): a row holds distinct columns, increasing. The same pairs seen from their
// columns are groups of positions in that order. A shard that owns a range of rows calls these kernels with its own
// rows.
//
// Parallel decomposition: a thread takes whole rows or groups, and each is reduced in one fixed order. `scale_rows`
// adds up columns by slices of rows, in the order of the slices, which depend on the pairs alone. So no result depends
// on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace stea {

struct PairOptions {
    int n_threads;
    std::function<bool()> poll;  // true = stop; called from the calling thread only
};

struct PairRows {
    const int64_t* indptr;   // [rows + 1]
    const int32_t* columns;  // [pairs]
    int64_t rows;
    int64_t num_columns;

    int64_t size() const { return indptr[rows]; }
};

// Group g has the values at order[indptr[g]] < ... < order[indptr[g + 1] - 1], or at those places themselves.
struct Groups {
    const int64_t* indptr;  // [count + 1]
    const int32_t* order;   // null: the values of a group stand side by side
    int64_t count;

    int64_t size() const { return indptr[count]; }
    int64_t place(int64_t i) const { return order == nullptr ? i : order[i]; }
};

// What neighbours propose: targets of every row, and pairs that columns propose, in increasing order of the column.
struct Proposed {
    const int32_t* of_rows;  // [rows, k], no target twice in a row, -1 = none
    int64_t k;
    const int32_t* back_rows;     // [back], the row that a column proposes
    const int32_t* back_columns;  // [back], the column
    int64_t back;
};

// The positions of the pairs by column, in increasing order within one: out indptr [num_columns + 1], order [pairs].
void transpose_pairs(const PairRows& pairs, int64_t* indptr, int32_t* order);

// Rows of columns, or groups of places, not yet in one piece: row i is numbers[begin[i]], ..., numbers[begin[i] +
// indptr[i + 1] - indptr[i] - 1].
struct LooseRows {
    std::vector<int64_t> indptr;
    std::vector<int64_t> begin;
    std::vector<int32_t> numbers;
};

// Puts the rows together. Out [indptr.back()].
void write_rows(const LooseRows& rows, int32_t* numbers, const PairOptions& options);

// The union of the pairs and the proposals, row by row: both are merged, nothing is sorted beyond a row's proposals.
LooseRows unite_rows(const PairRows& pairs, const Proposed& proposed, const PairOptions& options);

// The position of every pair in `other`, which has the same rows; -1 = not there. Out [pairs].
void find_positions(const PairRows& pairs, const PairRows& other, int32_t* positions, const PairOptions& options);

// The values that pairs have in `other`, which has the same rows; those that are not there, or have a number already,
// keep what they have. In and out [pairs], NaN = none yet.
void take_values(const PairRows& pairs, const PairRows& other, const double* values_of_other, double* values,
                 const PairOptions& options);

// The places of the k largest values above `least` of every group, best first, the earlier of equal ones first.
LooseRows best_places(const Groups& groups, const double* values, int64_t k, double least, const PairOptions& options);

// log of the sum of exp(value) of every group; -inf for an empty one. Out [count].
void log_sum_exp(const Groups& groups, const double* values, double* sums, const PairOptions& options);

// p = sqrt(p_row * p_column), where p_row = exp(value - row_sums[row]) and p_column likewise, and at most 1. Out
// [pairs].
void joint_probabilities(const PairRows& pairs, const double* values, const double* row_sums, const double* column_sums,
                         double* probs, const PairOptions& options);

// The largest value of every group; -inf for an empty one. Out [count].
void largest_values(const Groups& groups, const double* values, double* largest, const PairOptions& options);

// 1 for every pair with the largest value of its row that is also that of its column, else 0. Out [pairs].
void mutual_best(const PairRows& pairs, const double* values, const double* largest_of_columns, uint8_t* best,
                 const PairOptions& options);

// Half an iteration of Sinkhorn's, in which the pairs v(i, j) become a(i) v(i, j) b(j): out the factors of the rows
// and, for whoever computes those of the columns, the sums of the columns,
//
//   a(i) = 1 / (sum over j of v(i, j) b(j) + tail(i)),   sums(j) = sum over i of a(i) v(i, j).
//
// Values below kLeastValue are raised to it; a row in which all has underflowed has a = 1.
constexpr double kLeastValue = 1e-200;  // no value is 0: a row of nothing else could not be scaled
void scale_rows(const PairRows& pairs, const double* values, const double* tails, const double* column_factors,
                double* row_factors, double* sums, const PairOptions& options);

// a(i) v(i, j) b(j), within [kLeastValue, 1]. Out [pairs].
void scale_pairs(const PairRows& pairs, const double* values, const double* row_factors, const double* column_factors,
                 double* scaled, const PairOptions& options);

// What the encoder and the evidence say together of pair i: logits[i] + weight evidence[i], of which `lone` is left
// where there is a single witness. Out [count].
struct EvidenceWeights {
    double weight;
    double lone;
};
void weigh_pairs(const float* evidence, const int32_t* witnesses, const double* logits, int64_t count,
                 EvidenceWeights weights, double* totals, const PairOptions& options);

// Between what pair i has and what it had before, which is earlier[places[i]], or 0 where that place is -1: the latter
// has the given share. Out [count].
void damp_pairs(const double* values, int64_t count, const double* earlier, const int32_t* places, double share,
                double* damped, const PairOptions& options);

}  // namespace stea
