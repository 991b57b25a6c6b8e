#include "../containment.h"

#include <algorithm>

namespace stea {

void fill_containment(const ContainmentArgs& args, const ContainmentOut& out) {
    const int64_t inverse = args.num_target_relations;
    const double assumed = args.smoothing * args.prior;
    out.indptr[0] = 0;
    int64_t end = 0;
    for (int64_t r = 0; r < args.num_source_relations; ++r) {
        const double den = std::max(static_cast<double>(args.den[r]) * args.unit + args.smoothing, 1e-300);
        const int64_t first_key = r * 2 * inverse;
        const int64_t begin = end;
        for (; end < args.count && args.keys[end] < first_key + 2 * inverse; ++end) {
            out.columns[end] = static_cast<int32_t>(args.keys[end] - first_key);
            const double ratio = (static_cast<double>(args.num[end]) * args.unit + assumed) / den;
            out.probs[end] = static_cast<float>(std::min(ratio, 1.0));
        }
        // Pairs with r'^-1 follow those with r'; their inverses precede them.
        const int64_t middle = std::lower_bound(out.columns + begin, out.columns + end, inverse) - out.columns;
        int32_t* columns = out.columns + args.count + begin;
        for (int64_t i = middle; i < end; ++i) *columns++ = out.columns[i] - static_cast<int32_t>(inverse);
        for (int64_t i = begin; i < middle; ++i) *columns++ = out.columns[i] + static_cast<int32_t>(inverse);
        float* probs = std::copy(out.probs + middle, out.probs + end, out.probs + args.count + begin);
        std::copy(out.probs + begin, out.probs + middle, probs);
        out.indptr[r + 1] = end;
        out.indptr[args.num_source_relations + r + 1] = args.count + end;
    }
}

}  // namespace stea
