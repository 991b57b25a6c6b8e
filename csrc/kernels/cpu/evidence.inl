typedef double Two __attribute__((vector_size(2 * sizeof(double))));

static inline Two larger(Two a, Two b) {
#ifdef __SSE2__
    return _mm_max_pd(a, b);  // the compiler does not find this instruction on its own
#else
    return a > b ? a : b;
#endif
}

// The strengths of a stored pair, zeros for one that is not stored. Without a jump: which of the two it is
// cannot be predicted.
static inline Two stored_strengths(const PairSlot& slot, int32_t relation) {
#ifdef __SSE2__
    const __m128i bits = _mm_load_si128(reinterpret_cast<const __m128i*>(&slot));
    const __m128i same = _mm_cmpeq_epi32(bits, _mm_set1_epi32(relation));
    return _mm_cvtps_pd(_mm_castsi128_ps(_mm_and_si128(bits, _mm_unpackhi_epi64(same, same))));
#else
    const bool stored = slot.relation == relation;
    return Two{stored ? slot.strength.source : 0.0, stored ? slot.strength.target : 0.0};
#endif
}

template <bool kDefaults>
static inline Two strengths_of(const RelationTableView& table, const Node& node, const PairSlot* slots,
                               int32_t target_relation) {
    const PairSlot& slot = slots[node.shift];
    if (kDefaults && slot.relation != node.label) {
        return Two{table.source_default[node.label], table.target_default[target_relation]};
    }
    return stored_strengths(slot, node.label);
}

// -sum of log(1 - x) over the visits, without one logarithm per factor: the two factors of a visit go into a
// lane of a product each, and the lanes are taken out before they can underflow.
struct Evidence {
    Two product = {1.0, 1.0};
    Two sum = {0.0, 0.0};  // of the x
    double taken_out = 0.0;

    inline void add(Two x) {
        const Two one = {1.0, 1.0};
        const Two least = {kMinFactor, kMinFactor};
        sum += x;
        product *= larger(one - x, least);
    }

    inline void take_out() {
        if (product[0] * product[1] > 1e-40) return;
        taken_out -= std::log(product[0]) + std::log(product[1]);
        product = Two{1.0, 1.0};
    }

    // Evidence so small that the product has lost its digits is, to as many digits, the sum of the x.
    inline double total() const {
        constexpr double kSmall = 1e-6;
        const double linear = sum[0] + sum[1];
        return linear < kSmall ? linear : taken_out - std::log(product[0] * product[1]);
    }
};

template <bool kDefaults>
static double pair_evidence(const RelationTableView& table, const NeighborhoodScratch& scratch, HitRange hits) {
    // A visit may take 1e-4 off a lane. At most twice this many lie between two looks at the product, and at most
    // this many after the last one: from 1e-40 on, both leave normal numbers.
    constexpr int32_t kVisits = 32;
    const NodeList* lists = scratch.lists.data;
    const Node* nodes = scratch.nodes.data;
    const Edge* const end = scratch.hits.data + hits.end;
    Evidence evidence;
    int32_t budget = kVisits;
    for (const Edge* hit = scratch.hits.data + hits.begin; hit < end; ++hit) {
        const NodeList list = lists[static_cast<uint32_t>(hit->neighbor)];
        const PairSlot* slots = table.slots + table.rank[hit->relation];
        const Node* node = nodes + static_cast<uint32_t>(list.first);
        budget -= list.length;
        for (int32_t left = list.length; left > 0; --left) {
            evidence.add(strengths_of<kDefaults>(table, *node, slots, hit->relation) *
                         static_cast<double>(node->weight));
            if (__builtin_expect(budget < 0, 0)) {
                if (left % kVisits == 0 || left == 1) evidence.take_out();
                if (left == 1) budget = kVisits;
            }
            node = nodes + static_cast<uint32_t>(node->next);
        }
    }
    return evidence.total();
}

void evidence_row(const EvidenceArgs& args, EvidenceScratch& owned, int64_t row) {
    NeighborhoodScratch& scratch = owned.neighborhood;
    const int64_t k = args.candidates.k;
    const int32_t* candidates = args.candidates.indices + (row - args.rows.begin) * k;
    float* evidence = args.evidence + (row - args.rows.begin) * k;
    if (row + 1 < args.rows.end) {
        prefetch_beliefs(args.source, args.beliefs, row + 1);
        prefetch_edges(args.target, candidates + k, k);
    }
    const Edge* edges = args.source.edges + args.source.indptr[row];
    const int64_t degree = args.source.indptr[row + 1] - args.source.indptr[row];
    scratch.reserve_nodes(count_beliefs(args.beliefs, edges, edges + degree));
    for (int64_t j = 0; j < degree; ++j) {
        const int32_t relation = edges[j].relation;
        file_beliefs(scratch, args.beliefs, edges[j].neighbor, relation, args.relations.shift[relation]);
    }
    find_hits(args.target, scratch, candidates, k);
    for (int64_t c = 0; c < k; ++c) {
        const HitRange hits = hits_of(scratch, c);
        evidence[c] =
            static_cast<float>(args.relations.has_defaults ? pair_evidence<true>(args.relations, scratch, hits)
                                                           : pair_evidence<false>(args.relations, scratch, hits));
    }
    forget_row(scratch);
}
