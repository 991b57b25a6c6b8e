// x of four visits, source and target side: those of visits 0 and 2, then those of 1 and 3.
struct Block {
    Quad even;
    Quad odd;
};

// The key of a node is twice its shift: the place of a slot in units of eight bytes, which an address can hold.
static inline const PairSlot* slot_of(const PairSlot* slots, const Node& node) {
    return reinterpret_cast<const PairSlot*>(reinterpret_cast<const uint64_t*>(slots) + node.key);
}

// Without a jump: whether a pair is stored cannot be predicted.
static inline Block block_of(const PairSlot* slots, const Node* nodes, int32_t relation) {
#ifdef __SSE2__
    const auto slot = [&](int i) { return _mm_load_si128(reinterpret_cast<const __m128i*>(slot_of(slots, nodes[i]))); };
#endif
#ifdef __AVX2__
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(slot(0)), slot(1), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(slot(2)), slot(3), 1);
    const __m256i wanted = _mm256_set1_epi32(relation);
    const __m256i same = _mm256_cmpeq_epi32(_mm256_unpackhi_epi64(low, high), wanted);
    const __m256 strengths = _mm256_castsi256_ps(_mm256_and_si256(_mm256_unpacklo_epi64(low, high), same));
    const __m256 weights = _mm256_permutevar8x32_ps(_mm256_loadu_ps(reinterpret_cast<const float*>(nodes)),
                                                    _mm256_setr_epi32(1, 1, 5, 5, 3, 3, 7, 7));
    const __m256 x = _mm256_mul_ps(strengths, weights);
    return {_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)};
#elif defined(__SSE2__)
    const auto x_of = [](__m128i low, __m128i high, __m128i wanted, __m128 weights) {
        const __m128i same = _mm_cmpeq_epi32(_mm_unpackhi_epi64(low, high), wanted);
        return _mm_mul_ps(_mm_castsi128_ps(_mm_and_si128(_mm_unpacklo_epi64(low, high), same)), weights);
    };
    const __m128i wanted = _mm_set1_epi32(relation);
    const __m128 first = _mm_loadu_ps(reinterpret_cast<const float*>(nodes));
    const __m128 second = _mm_loadu_ps(reinterpret_cast<const float*>(nodes + 2));
    return {x_of(slot(0), slot(2), wanted, _mm_shuffle_ps(first, second, _MM_SHUFFLE(1, 1, 1, 1))),
            x_of(slot(1), slot(3), wanted, _mm_shuffle_ps(first, second, _MM_SHUFFLE(3, 3, 3, 3)))};
#else
    Block block;
    for (int i = 0; i < 4; ++i) {
        const PairSlot& slot = *slot_of(slots, nodes[i]);
        const float weight = slot.relation == relation ? nodes[i].weight : 0.0f;
        Quad& half = i % 2 == 0 ? block.even : block.odd;
        half[i / 2 * 2] = slot.strength.source * weight;
        half[i / 2 * 2 + 1] = slot.strength.target * weight;
    }
    return block;
#endif
}

static inline Block block_with_defaults(const RelationTableView& table, const Node* nodes, int32_t relation) {
    Block block = {};
    for (uint32_t i = 0; i < kBlock; ++i) {
        if (nodes[i].weight == 0.0f) continue;
        const Strength strength = strength_at_shift(table, nodes[i].key / 2, relation);
        Quad& half = i % 2 == 0 ? block.even : block.odd;
        half[i / 2 * 2] = strength.source * nodes[i].weight;
        half[i / 2 * 2 + 1] = strength.target * nodes[i].weight;
    }
    return block;
}

static inline Lanes factors(Quad x) {
#ifdef __AVX2__
    return _mm256_max_pd(_mm256_set1_pd(1.0) - _mm256_cvtps_pd(x), _mm256_set1_pd(kMinFactor));
#elif defined(__SSE2__)
    const __m128d one = _mm_set1_pd(1.0);
    const __m128d least = _mm_set1_pd(kMinFactor);
    const __m128d low = _mm_max_pd(one - _mm_cvtps_pd(x), least);
    const __m128d high = _mm_max_pd(one - _mm_cvtps_pd(_mm_movehl_ps(x, x)), least);
    return Lanes{low[0], low[1], high[0], high[1]};
#else
    Lanes out;
    for (int i = 0; i < 4; ++i) {
        const double factor = 1.0 - static_cast<double>(x[i]);
        out[i] = factor < kMinFactor ? kMinFactor : factor;
    }
    return out;
#endif
}

constexpr double kLogOf2 = 0.693147180559945309;

// The factors of one pair: their product and the sum of the x, in lanes, and -log of what was taken out of the
// product before it could underflow.
struct Product {
    static constexpr int32_t kMostBlocks = 8;  // no factor is below 1e-4: all lanes together are at least 1e-256
    Lanes even = {1.0, 1.0, 1.0, 1.0};
    Lanes odd = {1.0, 1.0, 1.0, 1.0};
    Quad sum = {};
    double taken_out = 0.0;

    inline void add(const Block& x) {
        sum += x.even + x.odd;
        even *= factors(x.even);
        odd *= factors(x.odd);
    }

    // Powers of two: no logarithm, and nothing is rounded.
    inline void take_out() {
        constexpr int64_t kMantissa = 0x000fffffffffffff;
        constexpr int64_t kExponentOf1 = 1023;
        const Bits exponents = ((Bits)even >> 52) + ((Bits)odd >> 52) - 2 * kExponentOf1;
        taken_out -= kLogOf2 * static_cast<double>((exponents[0] + exponents[1]) + (exponents[2] + exponents[3]));
        even = (Lanes)(((Bits)even & kMantissa) | (kExponentOf1 << 52));
        odd = (Lanes)(((Bits)odd & kMantissa) | (kExponentOf1 << 52));
    }

    inline double all() const {
        const Lanes both = even * odd;
        return (both[0] * both[1]) * (both[2] * both[3]);
    }

    inline double sum_of_all() const { return static_cast<double>((sum[0] + sum[1]) + (sum[2] + sum[3])); }
};

template <bool kDefaults>
static inline void multiply_hits(const RelationTableView& table, const NeighborhoodScratch& scratch, HitRange hits,
                                 Product& product) {
    int32_t left = Product::kMostBlocks;
    for (const Hit& hit : hits) {
        const PairSlot* slots = table.slots + table.rank[hit.relation];
        uint32_t place = hit.place;
        do {
            const uint32_t block = block_before(place);
            const Node* nodes = scratch.nodes.data + block * kBlock;
            place = scratch.heads.data[block].earlier;
            product.add(kDefaults ? block_with_defaults(table, nodes, hit.relation)
                                  : block_of(slots, nodes, hit.relation));
            if (__builtin_expect(--left == 0, 0)) product.take_out(), left = Product::kMostBlocks;
        } while (place > 0);
    }
}

// Of four numbers in [1e-256, 1e256] at a time.
static inline Lanes logarithm(Lanes value) {
    constexpr int64_t kHalfRange = 0x3fe6a09e667f3bcd;  // sqrt(1/2): mantissas are brought to [sqrt(1/2), sqrt(2))
    const Bits exponent = ((Bits)value - kHalfRange) >> 52;
    const Lanes m = (Lanes)((Bits)value - (exponent << 52));
    const Lanes s = (m - 1.0) / (m + 1.0);
    const Lanes z = s * s;
    const Lanes series =
        z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13)))))) + 1.0;
    return __builtin_convertvector(exponent, Lanes) * kLogOf2 + 2.0 * s * series;
}

// Evidence so small that the product has lost its digits is, to as many digits, the sum of the x.
static void total(const EvidenceScratch& scratch, int64_t k, float* evidence) {
    constexpr double kSmall = 1e-6;
    for (int64_t c = 0; c < k; c += kBlock) {
        Lanes product, sum, taken_out;
        __builtin_memcpy(&product, scratch.products.data + c, sizeof product);
        __builtin_memcpy(&sum, scratch.sums.data + c, sizeof sum);
        __builtin_memcpy(&taken_out, scratch.taken_out.data + c, sizeof taken_out);
        const Lanes result = taken_out - logarithm(product);
        const Bits small = sum < kSmall;
        const Lanes chosen = (Lanes)(((Bits)sum & small) | ((Bits)result & ~small));
        for (uint32_t i = 0; i < kBlock && c + i < k; ++i) evidence[c + i] = static_cast<float>(chosen[i]);
    }
}

template <bool kDefaults>
static void evidence_of_candidates(const RelationTableView& table, EvidenceScratch& scratch, int64_t k,
                                   float* evidence) {
    const int64_t padded = (k + kBlock - 1) / kBlock * kBlock;
    scratch.products.reserve(padded);
    scratch.taken_out.reserve(padded);
    scratch.sums.reserve(padded);
    for (int64_t c = 0; c < padded; ++c) {
        Product product;
        if (c < k) multiply_hits<kDefaults>(table, scratch.neighborhood, hits_of(scratch.neighborhood, c), product);
        scratch.products.data[c] = product.all();
        scratch.sums.data[c] = product.sum_of_all();
        scratch.taken_out.data[c] = product.taken_out;
    }
    total(scratch, k, evidence);
}

void evidence_row(const EvidenceArgs& args, EvidenceScratch& owned, int64_t row) {
    NeighborhoodScratch& scratch = owned.neighborhood;
    const int64_t k = args.candidates.k;
    const int32_t* candidates = args.candidates.indices + (row - args.rows.begin) * k;
    float* evidence = args.evidence + (row - args.rows.begin) * k;
    if (row + 1 < args.rows.end) prefetch_edges(args.target, candidates + k, k);
    const int64_t begin = args.source.indptr[row];
    const int64_t end = args.source.indptr[row + 1];
    const Edge* edges = args.source.edges;
    scratch.reserve_nodes(count_beliefs(args.beliefs, edges + begin, edges + end));
    for (int64_t j = begin; j < end; ++j) {
        prefetch_beliefs(args.source, args.beliefs, j);
        file_beliefs(scratch, args.beliefs, edges[j].neighbor, 2 * args.relations.shift[edges[j].relation]);
    }
    find_hits(args.target, scratch, candidates, k);
    if (args.relations.has_defaults) {
        evidence_of_candidates<true>(args.relations, owned, k, evidence);
    } else {
        evidence_of_candidates<false>(args.relations, owned, k, evidence);
    }
    forget_row(scratch);
}
