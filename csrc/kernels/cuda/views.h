// What the CUDA kernels read beside the views of ../views.h. All pointers are device pointers.
#pragma once

#include "../views.h"

namespace stea::cuda {

// (r, r') -> Strength as sorted rows: row r holds its stored r' in increasing order.
struct StrengthsView {
    const int64_t* indptr;        // [2R + 1]
    const int32_t* columns;       // [nnz] r'
    const Strength* values;       // [nnz]
    const float* source_default;  // [2R] strength.source of pairs that are not stored
    const float* target_default;  // [2R'] strength.target of pairs that are not stored
};

}  // namespace stea::cuda
