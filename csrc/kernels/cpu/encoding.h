// The kernels of the encoders over all their rows, with threads. Denormal numbers count as zero on every thread: a
// training step is full of them, and each costs a hundred cycles.
#pragma once

#include "int8_tier.h"
#include "run.h"

namespace stea {

// out [rows, columns] = a [rows, depth] * b [depth, columns]
void run_dense_product(const float* a, const float* b, float* out, int64_t rows, int64_t depth, int64_t columns,
                       const RunOptions& options);
void run_sparse_rows(const SparseRows& args, const RunOptions& options);
void run_triple_view(const TripleView& args, const RunOptions& options);
void run_dropout(const Dropout& args, const RunOptions& options);
void run_reflection_forward(const ReflectionForward& args, const RunOptions& options);
void run_reflection_backward(const ReflectionBackward& args, const RunOptions& options);
void run_negatives(const NegativeBlock& block, const RunOptions& options);
// The same without products: rough ones are made by 8-bit numbers, for some queries at a time.
void run_byte_negatives(const NegativeBlock& block, const Int8Tier& bytes, const RunOptions& options);

}  // namespace stea
