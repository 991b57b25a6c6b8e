// Exact search by products of 8-bit whole numbers, both directions from one pass.
//
// Every row x of both sides is made a unit vector, turned by one orthogonal transform (which evens out its components
// and leaves inner products alone), and rounded: x / |x| = scale * q + rest, q in [-127, 127]. With Q = <q, q'>,
//
//   | <x, x'> / (|x| |x'|) - scale * scale' * Q |  <=  residual + length * residual'
//
// where residual bounds |rest| and length is |scale * q|. So a product of whole numbers says which pairs can be among
// the best of their row or of their column. These few are scored in double precision from the given numbers, and the
// result is exact.
//
//   score(i, j) = cosine(i, j) * weight1[i] * weight2[j] - offset1[i] - offset2[j]
//
// Who computes what: a thread takes blocks of kBlockRows rows and scans all columns. A tile of Q stays in registers
// while it is compared with the thresholds of its rows and its columns; no block of scores is ever stored. Pairs that
// can matter to a row go to its pool at once, those that can matter to a column after all blocks of a wave, by ranges
// of columns. What a wave does does not depend on the number of threads, nor does any result.
//
// Sums of exp(beta * score) over all pairs are taken from the same tiles. They need the scores themselves, and errors
// that a row makes with all its columns do not cancel: where sums are wanted, q has 16 bits (scale * q is then at most
// 46,000 units long, so that Q fits in 32 bits), which takes twice the time and memory.
#pragma once

#include <cstdint>

namespace stea {

constexpr int64_t kSliverRows = 12;  // rows, and columns, whose components lie side by side
constexpr int64_t kSliverColumns = 32;
constexpr int64_t kStepBytes =
    4;  // of one row that are multiplied by one instruction: four components, or two of 16 bits
constexpr int64_t kBlockRows = 8 * kSliverRows;
constexpr int64_t kMostInt8Width = 1 << 16;  // |Q| <= 127 * 127 * width fits in 31 bits, as does its correction
constexpr float kMostLength16 = 46000.0f;    // of q with 16 bits: its square fits in 31 bits, with room for `reach`

enum class Bits { k8, k16 };

// A matrix of floats or of doubles, row-major; one of the pointers is null.
struct Matrix {
    const float* floats;
    const double* doubles;
    int64_t count;
    int64_t width;
};

enum class Metric { kCosine, kInner, kDistance };

// One side of a search, all arrays [count]. Scores from the given numbers, for a query and a key:
//
//   plain = <x, x'> / (norm * norm'), <x, x'>, or -|x - x'|^2
//   score = plain, or 2 * plain - mean - mean';  rounded to a multiple of the query's quantum
struct SearchSide {
    Matrix values;
    const double* norms;
    const double* weights;  // see score(i, j) above; 0 for a zero vector only
    const double* offsets;
    const double* quanta;
    const double* means;      // null without CSLS
    const double* floors;     // what the k-th best score is known to reach; null if nothing is known
    const uint8_t* excluded;  // 1 for what cannot be among the k best of anything; null if nothing is known
};

// What is found for the lines of one side. Places that stay empty are left as they are.
struct SearchBest {
    int64_t k;
    int32_t* indices;    // [count, k], by decreasing score, then by index
    double* scores;      // [count, k]
    int32_t* sizes;      // [count], 0 at first
    uint8_t* unsettled;  // [count], 0 at first: 1 for lines that must be searched again
    double* sums;        // [count], 0 at first: of exp(beta * score - anchor); null if not wanted
};

// How hard it is tried to settle a line. Likely thresholds spare work, and lines in which one turns out to be wrong
// stay unsettled; certain ones never are. Pairs are scored one by one: where there are too many, other ways are faster.
struct Effort {
    bool certain;
    int32_t most_scored;  // of a line: one with more stays unsettled
};

// The orthogonal transform: signs, Hadamard of the first `block` components, signs, Hadamard of the last `block`.
struct Turn {
    int64_t width;
    int64_t block;       // the largest power of two that is not above the width
    const float* signs;  // [2, width]
};

// A rounded row: see above. The sum of q corrects products of biased numbers.
struct RoundedRow {
    float scale;
    float residual;  // with what single precision may have added to the error of a score
    float length;
    int32_t sum;
};
constexpr float kFuzz = 0x1p-20f;  // of the terms of a score, for rounding where it is compared in single precision
constexpr RoundedRow kZeroRow = {1.0f, kFuzz, 0.0f, 0};

// Where the components of one row go: four bytes at a time, `stride` bytes apart; 8 bits with `bias` added.
struct SliverPlace {
    uint8_t* bytes;
    int64_t stride;
    uint8_t bias;
    Bits bits;
};

// A block of rows, or a sliver of columns, as `scan` compares it: a pair is a hit if
//
//   Q + reach[j] + reach[i] >= threshold[i] * inverse[j] + offset[j] * inverse[i]    or
//   Q + reach[j] + reach[i] >= threshold[j] * inverse[i] + offset[i] * inverse[j]
//
// in units of one Q: inverse is 1 / (weight * scale), and threshold and offset are divided by the same.
struct ScanRows {
    const uint8_t* slivers;  // [count / kSliverRows, steps, kSliverRows, kStepBytes], 8 bits biased by 128
    Bits bits;
    int64_t count;  // a multiple of kSliverRows
    int64_t steps;
    const float* inverse;  // [count], as are the others
    const float* threshold;
    const float* offset;
    const float* reach;
    bool has_offsets;  // of rows or columns; without, they are not looked at
};

struct ScanColumns {
    const uint8_t* sliver;      // [steps, kSliverColumns, kStepBytes]
    const int32_t* correction;  // [kSliverColumns], as are the others: -128 * sum of q with 8 bits
    const int32_t* reach;
    const float* inverse;
    const float* threshold;
    const float* offset;
};

// exp(Q * row_factor * column_factor - row_shift - column_shift), added up by rows and by columns. Null pointers if
// not wanted; if wanted, the slivers have 16 bits.
struct ScanSums {
    const float* row_factor;  // [count]
    const float* row_shift;
    const float* column_factor;  // [kSliverColumns]
    const float* column_shift;
    float* row_lanes;    // [count, kSumLanes]: the sum over a row is that of its lanes
    float* column_sums;  // [kSliverColumns]
};
constexpr int64_t kSumLanes = 16;

// Room for the hits of a scan: kBlockRows * kSliverColumns and kSumLanes more of each.
struct ScanHits {
    int32_t* rows;     // within the block
    int32_t* columns;  // within the sliver
    int32_t* sums;     // Q + reach[column]
};

}  // namespace stea
