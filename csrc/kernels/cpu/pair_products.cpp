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

}  // namespace

template <typename Number>
void pair_products(const PairProducts<Number>& args, const Tier& tier, int n_threads) {
    constexpr int64_t kChunk = 256;
    parallel_tasks((args.count + kChunk - 1) / kChunk, n_threads, [&](int, int64_t chunk) {
        const int64_t last = std::min((chunk + 1) * kChunk, args.count);
        for (int64_t begin = chunk * kChunk, end = begin; begin < last; begin = end) {
            while (end < last && args.rows[end] == args.rows[begin]) ++end;
            products_of_row(tier, args.queries + args.rows[begin] * args.width, args, begin, end);
        }
    });
}

template void pair_products<float>(const PairProducts<float>&, const Tier&, int);
template void pair_products<double>(const PairProducts<double>&, const Tier&, int);

}  // namespace stea
