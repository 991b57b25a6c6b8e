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

static inline Lanes smaller(Lanes a, Lanes b) {
#ifdef __AVX2__
    return _mm256_min_pd(a, b);
#else
    const Bits of_a = a < b;
    return (Lanes)(((Bits)a & of_a) | ((Bits)b & ~of_a));
#endif
}

static inline Quad larger(Quad a, Quad b) {
#ifdef __SSE2__
    return _mm_max_ps(a, b);
#else
    const Truths of_a = a > b;
    return (Quad)(((Truths)a & of_a) | ((Truths)b & ~of_a));
#endif
}

// The strongest statement of each of four witnesses: the product of its two factors, and the sum of its two x.
struct Strongest {
    Lanes factor = {1.0, 1.0, 1.0, 1.0};
    Quad x = {};

    inline void take(Lanes other_factor, Quad other_x) {
        factor = smaller(factor, other_factor);
        x = larger(x, other_x);
    }

    inline void take(const Block& block) {
#ifdef __SSE2__
        const Quad source = _mm_shuffle_ps(block.even, block.odd, _MM_SHUFFLE(2, 0, 2, 0));
        const Quad target = _mm_shuffle_ps(block.even, block.odd, _MM_SHUFFLE(3, 1, 3, 1));
#else
        const Quad source = {block.even[0], block.even[2], block.odd[0], block.odd[2]};
        const Quad target = {block.even[1], block.even[3], block.odd[1], block.odd[3]};
#endif
        take(factors(source) * factors(target), source + target);
    }

    // Where all four speak of the same witness.
    inline Strongest of_one_witness() const {
        const auto least = [](double a, double b) { return a < b ? a : b; };
        const auto most = [](float a, float b) { return a > b ? a : b; };
        Strongest one;
        one.factor[0] = least(least(factor[0], factor[1]), least(factor[2], factor[3]));
        one.x[0] = most(most(x[0], x[1]), most(x[2], x[3]));
        return one;
    }
};

constexpr double kLogOf2 = 0.693147180559945309;

// The factors of one pair: their product and the sum of the x, in lanes, and -log of what was taken out of the
// product before it could underflow.
struct Product {
    static constexpr int32_t kMostBlocks = 8;  // no factor is below 1e-4: all lanes together are at least 1e-256
    Lanes even = {1.0, 1.0, 1.0, 1.0};
    Lanes odd = {1.0, 1.0, 1.0, 1.0};
    Quad sum = {};
    Truths minus_count = {};  // of the witnesses
    double taken_out = 0.0;

    inline void add(const Strongest& strongest) {
        minus_count += strongest.x > 0.0f;  // true is -1
        sum += strongest.x;
        even *= strongest.factor;
    }

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

    inline int32_t count() const { return -((minus_count[0] + minus_count[1]) + (minus_count[2] + minus_count[3])); }

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

// The same for witnesses that are pairs of neighbours: the edges of the candidate that lead to one n' are a run of
// hits, and every block of nodes meets the whole run before its factors are multiplied.
template <bool kDefaults>
static inline Strongest strongest_of_run(const RelationTableView& table, const Node* nodes, HitRange run) {
    Strongest strongest;
    for (const Hit& hit : run) {
        strongest.take(kDefaults ? block_with_defaults(table, nodes, hit.relation)
                                 : block_of(table.slots + table.rank[hit.relation], nodes, hit.relation));
    }
    return strongest;
}

static inline HitRange first_run(HitRange hits) {
    const Hit* end = hits.first + 1;
    while (end < hits.last && end->place == hits.first->place) ++end;
    return {hits.first, end};
}

template <bool kDefaults>
static inline void multiply_witnesses(const RelationTableView& table, const NeighborhoodScratch& scratch, HitRange hits,
                                      Product& product) {
    int32_t left = Product::kMostBlocks;
    while (hits.first < hits.last) {
        const HitRange run = first_run(hits);
        Strongest group;
        uint32_t place = run.first->place;
        do {
            const uint32_t block = block_before(place);
            const uint32_t earlier = scratch.heads.data[block].earlier;
            Strongest four = strongest_of_run<kDefaults>(table, scratch.nodes.data + block * kBlock, run);
            place = earlier & kPlace;
            if (__builtin_expect(earlier & kGroup, 0)) {
                group.take(four.factor, four.x);
                if (earlier & kGroupGoesOn) continue;
                four = group.of_one_witness();
                group = Strongest();
            }
            product.add(four);
            if (__builtin_expect(--left == 0, 0)) product.take_out(), left = Product::kMostBlocks;
        } while (place > 0);
        hits.first = run.last;
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

template <bool kDefaults, bool kByNeighbor>
static void evidence_of_candidates(const EvidenceArgs& args, EvidenceScratch& scratch, int64_t place, int64_t k) {
    const int64_t padded = (k + kBlock - 1) / kBlock * kBlock;
    scratch.products.reserve(padded);
    scratch.taken_out.reserve(padded);
    scratch.sums.reserve(padded);
    for (int64_t c = 0; c < padded; ++c) {
        Product product;
        if (c < k) {
            const HitRange hits = hits_of(scratch.neighborhood, c);
            constexpr auto multiply = kByNeighbor ? multiply_witnesses<kDefaults> : multiply_hits<kDefaults>;
            multiply(args.relations, scratch.neighborhood, hits, product);
            if (kByNeighbor && args.witness_count != nullptr) args.witness_count[place + c] = product.count();
        }
        scratch.products.data[c] = product.all();
        scratch.sums.data[c] = product.sum_of_all();
        scratch.taken_out.data[c] = product.taken_out;
    }
    total(scratch, k, args.evidence + place);
}

// Files the row's neighbourhood; with kByNeighbor, what several edges say of one neighbour in groups.
template <bool kByNeighbor>
static void file_row(const EvidenceArgs& args, NeighborhoodScratch& scratch, int64_t row) {
    const int64_t begin = args.source.indptr[row];
    const int64_t end = args.source.indptr[row + 1];
    const Edge* edges = args.source.edges;
    const uint32_t* shift = args.relations.shift;
    scratch.reserve_nodes(count_beliefs(args.beliefs, edges + begin, edges + end));
    for (int64_t j = begin; j < end; ++j) {
        prefetch_beliefs(args.source, args.beliefs, j);
        if (kByNeighbor && j + 1 < end && edges[j + 1].neighbor == edges[j].neighbor) {
            const int64_t first = j;
            while (j + 1 < end && edges[j + 1].neighbor == edges[j].neighbor) ++j;
            file_groups_of_neighbor(scratch, args.beliefs, edges + first, edges + j + 1, shift);
        } else {
            file_beliefs(scratch, args.beliefs, edges[j].neighbor, 2 * shift[edges[j].relation]);
        }
    }
}

template <bool kByNeighbor>
static void evidence_row_of(const EvidenceArgs& args, EvidenceScratch& scratch, int64_t row) {
    const int64_t number = row - args.rows.begin;
    const int64_t k = args.candidates.count(number);
    const int64_t place = args.candidates.place(number);
    const int32_t* candidates = args.candidates.indices + place;
    if (row + 1 < args.rows.end) prefetch_edges(args.target, candidates + k, args.candidates.count(number + 1));
    file_row<kByNeighbor>(args, scratch.neighborhood, row);
    find_hits(args.target, scratch.neighborhood, candidates, k);
    if (args.relations.has_defaults) {
        evidence_of_candidates<true, kByNeighbor>(args, scratch, place, k);
    } else {
        evidence_of_candidates<false, kByNeighbor>(args, scratch, place, k);
    }
    forget_row(scratch.neighborhood);
}

void evidence_row(const EvidenceArgs& args, EvidenceScratch& scratch, int64_t row) {
    if (args.witnesses == Witnesses::kNeighbor) {
        evidence_row_of<true>(args, scratch, row);
    } else {
        evidence_row_of<false>(args, scratch, row);
    }
}
