// Inner products of single pairs of vectors.
#include "pair_products.h"

#include <algorithm>

#include "parallel_tasks.h"

namespace stea {
namespace {

void products_of_row(const Tier& tier, const float* query, const PairProducts<float>& args, int64_t begin,
                     int64_t end) {
    tier.exact_products_float(query, args.keys, args.width, args.columns + begin, end - begin, false, args.out + begin);
}

void products_of_row(const Tier& tier, const double* query, const PairProducts<double>& args, int64_t begin,
                     int64_t end) {
    tier.exact_products_double(query, args.keys, args.width, args.columns + begin, end - begin, false,
                               args.out + begin);
}

// Fetches a key while those before it are multiplied: rows have few pairs each, and reading takes longer.
template <typename Number>
void prefetch_key(const PairProducts<Number>& args, int64_t pair) {
    if (pair >= args.count) return;
    const auto* key = reinterpret_cast<const char*>(args.keys + args.columns[pair] * args.width);
    const int64_t bytes = args.width * static_cast<int64_t>(sizeof(Number));
    for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(key + line, 0, 2);
}

}  // namespace

template <typename Number>
void pair_products(const PairProducts<Number>& args, const Tier& tier, int n_threads) {
    constexpr int64_t kChunk = 256;
    parallel_tasks((args.count + kChunk - 1) / kChunk, n_threads, [&](int, int64_t chunk) {
        const int64_t last = std::min((chunk + 1) * kChunk, args.count);
        for (int64_t begin = chunk * kChunk, end = begin; begin < last; begin = end) {
            while (end < last && args.rows[end] == args.rows[begin]) ++end;
            prefetch_key(args, end);
            prefetch_key(args, end + 1);
            products_of_row(tier, args.queries + args.rows[begin] * args.width, args, begin, end);
        }
    });
}

template void pair_products<float>(const PairProducts<float>&, const Tier&, int);
template void pair_products<double>(const PairProducts<double>&, const Tier&, int);

}  // namespace stea
