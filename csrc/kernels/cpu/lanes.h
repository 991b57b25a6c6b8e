// The vectors of the row kernels. Their width is the same on every instruction set: so is the order of all sums.
#pragma once

#include <cstdint>

namespace stea {

typedef float Quad __attribute__((vector_size(4 * sizeof(float))));
typedef double Lanes __attribute__((vector_size(4 * sizeof(double))));
typedef int64_t Bits __attribute__((vector_size(sizeof(Lanes))));
typedef int32_t Truths __attribute__((vector_size(sizeof(Quad))));

}  // namespace stea
