// Products of rows that were rounded to whole numbers of 8 bits, for what need not be exact.
//
// Every row x is rounded to x = scale * q, q in [-127, 127], scale = the largest magnitude / 127. Then
//
//   <x, x'>  is about  scale * scale' * <q, q'>
//
// with an error whose deviation is sqrt(|x|^2 scale'^2 + |x'|^2 scale^2) / sqrt(12). Unlike `int8_search.h` nothing is
// turned and no bound is kept: who needs the product of a pair exactly takes it again.
//
// Parallel decomposition: of the caller. A block of rows is multiplied by a sliver of columns, one tile of sums in
// registers after the other, in the layouts of `int8_search.h`.
#pragma once

#include <cstdint>

namespace stea {

struct ByteRow {
    float scale;
    int32_t sum;  // of q: corrects products of biased numbers
};

struct ByteRows {
    const uint8_t* slivers;  // [count / kSliverRows, steps, kSliverRows, kStepBytes], biased by 128
    int64_t count;           // a multiple of kSliverRows
    int64_t steps;
    const float* scales;  // [count]
};

struct ByteColumns {
    const uint8_t* sliver;      // [steps, kSliverColumns, kStepBytes]
    const int32_t* correction;  // [kSliverColumns]: -128 * sum
    const float* scales;        // [kSliverColumns]
};

}  // namespace stea
