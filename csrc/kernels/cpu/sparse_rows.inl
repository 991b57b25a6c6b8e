void sparse_row(const SparseRows& args, int64_t row) {
    constexpr int64_t kAheadOfRow = 8;
    float* out = args.out + row * args.out_stride;
    for (int64_t c = 0; c < args.width; ++c) out[c] = 0.0f;
    Term terms[kTerms];
    const int64_t last = args.indptr[row + 1];
    for (int64_t begin = args.indptr[row]; begin < last; begin += kTerms) {
        const int64_t count = last - begin < kTerms ? last - begin : kTerms;
        for (int64_t t = 0; t < count; ++t) {
            const int64_t e = begin + t;
            if (e + kAheadOfRow < args.num_entries) {
                prefetch_row(args.x + args.columns[e + kAheadOfRow] * args.x_stride, args.width);
            }
            terms[t] = {args.x + args.columns[e] * args.x_stride, nullptr, args.values[e], 0.0f};
        }
        add_terms<false>(out, terms, count, args.width);
    }
}
