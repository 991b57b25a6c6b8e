void triple_view_row(const TripleView& args, int64_t row) {
    constexpr int64_t kEdgesAhead = 8;
    const int64_t width = kFeatures * args.dimensions;
    float* out = args.out + row * args.out_stride;
    for (int64_t c = 0; c < width; ++c) out[c] = 0.0f;
    for (int64_t e = args.indptr[row]; e < args.indptr[row + 1]; ++e) {
        if (e + kEdgesAhead < args.num_edges) prefetch_row(args.x + args.columns[e + kEdgesAhead] * width, width);
        const float* x = args.x + args.columns[e] * width;
        const float* strengths = args.strengths + args.relations[e] * args.dimensions;
        for (int64_t k = 0; k < args.dimensions; ++k) {
            float* part = out + kFeatures * k;
            const float* features = x + kFeatures * k;
            store_eight(part, load_eight(part) + strengths[k] * load_eight(features));
            store_eight(part + 8, load_eight(part + 8) + strengths[k] * load_eight(features + 8));
        }
    }
    args.squares[row] += static_cast<double>(product(out, out, width));
}
