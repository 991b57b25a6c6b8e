// How often every token occurs in every row of two sides, with tokens numbered from rare to frequent.
//
// A token is a key of 64 bits. Its number is its place among all tokens by (rows of both sides that have it, key).
//
// Parallel decomposition: a thread takes the tokens whose hash falls into one part, and reads all rows for it; numbers
// are given to all parts at once. Then a thread takes some rows. Neither changes a result.
#pragma once

#include <cstdint>

namespace stea {

struct TokenRows {
    const uint64_t* keys;    // [offsets[rows]]
    const int64_t* offsets;  // [rows + 1]
    int64_t rows;
};

// A row's distinct tokens stand at its offset, by increasing number; behind them is room for those that are repeated.
struct CountedRows {
    int32_t* tokens;   // [offsets[rows]]
    float* counts;     // [offsets[rows]]
    int64_t* lengths;  // [rows]
};

}  // namespace stea
