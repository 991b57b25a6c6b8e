// Whether arrays from outside can be walked without leaving them: what is false here would be a crash in a kernel.
//
// One pass each, on the calling thread, without a branch in the loop, so that the compiler makes vectors of it.
#pragma once

#include <cstdint>

#include "views.h"

namespace stea {

// 0 = offsets[0] <= offsets[1] <= ... <= offsets[rows] = size
bool are_offsets(const int64_t* offsets, int64_t rows, int64_t size);

// 0 <= value < end
bool all_within(const int32_t* values, int64_t count, int64_t end);

// value < end; what is negative stands for "none"
bool all_below(const int32_t* values, int64_t count, int64_t end);

// 0 <= value <= 1, and what rounding may have added
bool are_probabilities(const float* values, int64_t count);

// least <= value, and finite
bool are_finite_from(double least, const double* values, int64_t count);

// The least number that is above all relations, or -1 if an edge has a negative one or leaves the graph.
int64_t relations_of(const GraphView& graph);

}  // namespace stea
