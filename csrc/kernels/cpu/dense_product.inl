// Some rows times one panel. Sixteen sums of each row stay in registers.
template <int kRows>
static void multiply_rows(const DenseProduct& args, int64_t row, const float* panel, int64_t column) {
    Eight sums[kRows][2] = {};
    const float* const a = args.a + row * args.depth;
    for (int64_t k = 0; k < args.depth; ++k) {
        const Eight low = load_eight(panel + k * kPanelWidth);
        const Eight high = load_eight(panel + k * kPanelWidth + 8);
        for (int i = 0; i < kRows; ++i) {
            const float factor = a[i * args.depth + k];
            sums[i][0] += factor * low;
            sums[i][1] += factor * high;
        }
    }
    const int64_t count = args.columns - column < kPanelWidth ? args.columns - column : kPanelWidth;
    for (int i = 0; i < kRows; ++i) {
        float* const out = args.out + (row + i) * args.columns + column;
        store_some(out, sums[i][0], count < 8 ? count : 8);
        if (count > 8) store_some(out + 8, sums[i][1], count - 8);
    }
}

void dense_product_rows(const DenseProduct& args, int64_t begin, int64_t end) {
    constexpr int kTogether = 6;  // with two loads of the panel, as many as sixteen registers hold
    for (int64_t column = 0; column < args.columns; column += kPanelWidth) {
        const float* const panel = args.panels + column * args.depth;
        int64_t row = begin;
        for (; row + kTogether <= end; row += kTogether) multiply_rows<kTogether>(args, row, panel, column);
        for (; row < end; ++row) multiply_rows<1>(args, row, panel, column);
    }
}
