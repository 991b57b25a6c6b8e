typedef uint32_t EightWords __attribute__((vector_size(8 * sizeof(uint32_t))));

// splitmix64: the seed of a row.
static inline uint32_t seed_of_row(uint64_t key, uint64_t row) {
    uint64_t bits = key + (row + 1) * 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return static_cast<uint32_t>(bits ^ (bits >> 31));
}

// Words of thirty-two random bits for the counters: low halves for eight columns, high halves for the next eight.
static inline EightWords drawn_words(EightWords counters) {
    EightWords bits = counters;
    bits = (bits ^ (bits >> 16)) * 0x7FEB352Du;
    bits = (bits ^ (bits >> 15)) * 0x846CA68Bu;
    return bits ^ (bits >> 16);
}

static inline void keep_eight(const Dropout& args, EightWords draws, const float* x, float* out, int64_t count) {
    const auto kept = reinterpret_cast<EightBits>(draws >= args.zeroed);
    const Eight scaled = load_some(x, count) * args.scale;
    store_some(out, reinterpret_cast<Eight>(kept & reinterpret_cast<EightBits>(scaled)), count);
}

void dropout_row(const Dropout& args, int64_t row) {
    const float* x = args.x + row * args.width;
    float* out = args.out + row * args.width;
    const EightWords lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    EightWords counters = lanes + seed_of_row(args.key, static_cast<uint64_t>(row));
    for (int64_t c = 0; c < args.width; c += 16, counters += 8) {
        const EightWords words = drawn_words(counters);
        const int64_t left = args.width - c;
        keep_eight(args, words & 0xFFFFu, x + c, out + c, left < 8 ? left : 8);
        if (left > 8) keep_eight(args, words >> 16, x + c + 8, out + c + 8, left < 16 ? left - 8 : 8);
    }
}
