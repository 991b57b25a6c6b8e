// Inner products of single pairs of vectors.
#include "pair_products.h"

#include <algorithm>

#include "parallel_tasks.h"

namespace stea {
namespace {

double product_of(const Tier& tier, const PairProducts<float>& args, int64_t pair) {
    double out;
    tier.exact_products_float(args.queries + args.rows[pair] * args.width, args.keys, args.width, args.columns + pair,
                              1, false, &out);
    return out;
}

double product_of(const Tier& tier, const PairProducts<double>& args, int64_t pair) {
    double out;
    tier.exact_products_double(args.queries + args.rows[pair] * args.width, args.keys, args.width, args.columns + pair,
                               1, false, &out);
    return out;
}

template <typename Number>
void prefetch_vector(const Number* vector, int64_t width) {
    constexpr int64_t kLine = 64 / sizeof(Number);
    for (int64_t i = 0; i < width; i += kLine) __builtin_prefetch(vector + i, 0, 2);
}

// The vectors of a pair, which lie anywhere: reading them takes longer than multiplying. Pairs stand by row.
template <typename Number>
void prefetch_pair(const PairProducts<Number>& args, int64_t pair) {
    prefetch_vector(args.keys + args.columns[pair] * args.width, args.width);
    if (args.rows[pair] != args.rows[pair - 1])
        prefetch_vector(args.queries + args.rows[pair] * args.width, args.width);
}

}  // namespace

template <typename Number>
void pair_products(const PairProducts<Number>& args, const Tier& tier, int n_threads) {
    constexpr int64_t kChunk = 256;
    constexpr int64_t kAhead = 3;
    parallel_tasks((args.count + kChunk - 1) / kChunk, n_threads, [&](int, int64_t chunk) {
        const int64_t last = std::min((chunk + 1) * kChunk, args.count);
        for (int64_t pair = chunk * kChunk; pair < last; ++pair) {
            if (pair + kAhead < last) prefetch_pair(args, pair + kAhead);
            args.out[pair] = product_of(tier, args, pair);
        }
    });
}

template void pair_products<float>(const PairProducts<float>&, const Tier&, int);
template void pair_products<double>(const PairProducts<double>&, const Tier&, int);

}  // namespace stea
