// Blocks of similarities into pools and partition sums, with threads.
#pragma once

#include "../topk.h"
#include "tier.h"

namespace stea {

struct TopkOptions {
    const Tier& tier;
    int n_threads;
};

// Offers every score of the block to its row and its column.
void merge_block(const ScoreBlock& block, const PoolView& rows, const PoolView& columns, const TopkOptions& options);

// Adds the block to the partition sums. The block must have been merged before: the best scores of the pools
// become the anchors.
void add_to_partition(const ScoreBlock& block, const PoolView& row_pool, const PoolView& column_pool,
                      const PartitionView& rows, const PartitionView& columns, double beta, const TopkOptions& options);

// Cuts every pool back to the `keep` best and orders it, best first.
void sort_pools(const PoolView& pools, int64_t lines, int n_threads);

// Products of queries [rows, width] with keys [*, width] at indices [rows, k]: inner products, or squared distances.
template <typename Number>
void exact_products(const Number* queries, const Number* keys, int64_t rows, int64_t width, const int32_t* indices,
                    int64_t k, bool distance, double* out, const TopkOptions& options);

}  // namespace stea
