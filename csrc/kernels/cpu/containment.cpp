#include "../containment.h"

#include <algorithm>

namespace stea {

bool fill_containment(const ContainmentArgs& args, const ContainmentOut& out) {
    const int64_t inverse = args.num_target_relations;
    const double assumed = args.smoothing * args.prior;
    out.indptr[0] = 0;
    int64_t end = 0;
    for (int64_t r = 0; r < args.num_source_relations; ++r) {
        const double den = std::max(static_cast<double>(args.den[r]) * args.unit + args.smoothing, 1e-300);
        const int64_t first_key = r * 2 * inverse;
        const int64_t begin = end;
        uint64_t signs = 0;  // of keys that are not of this row
        for (; end < args.count && args.keys[end] < first_key + 2 * inverse; ++end) {
            const auto key = static_cast<uint64_t>(args.keys[end]);
            const uint64_t column = key - static_cast<uint64_t>(first_key);
            signs |= key | column;
            out.columns[end] = static_cast<int32_t>(column);
            const double ratio = (static_cast<double>(args.num[end]) * args.unit + assumed) / den;
            out.probs[end] = static_cast<float>(std::min(ratio, 1.0));
        }
        if ((signs >> 63) != 0) return false;
        // Pairs with r'^-1 follow those with r'; their inverses precede them.
        const int64_t middle = std::lower_bound(out.columns + begin, out.columns + end, inverse) - out.columns;
        int32_t* columns = out.columns + args.count + begin;
        for (int64_t i = middle; i < end; ++i) *columns++ = static_cast<int32_t>(out.columns[i] - inverse);
        for (int64_t i = begin; i < middle; ++i) *columns++ = static_cast<int32_t>(out.columns[i] + inverse);
        float* probs = std::copy(out.probs + middle, out.probs + end, out.probs + args.count + begin);
        std::copy(out.probs + begin, out.probs + middle, probs);
        out.indptr[r + 1] = end;
        out.indptr[args.num_source_relations + r + 1] = args.count + end;
    }
    return end == args.count;
}

}  // namespace stea
