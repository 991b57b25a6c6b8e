typedef double Two __attribute__((vector_size(2 * sizeof(double))));

static inline Two larger(Two a, Two b) {
#ifdef __SSE2__
    return __builtin_ia32_maxpd(a, b);  // the compiler does not find this instruction on its own
#else
    return a > b ? a : b;
#endif
}

// Calls visit(strength, weight) for every node behind the hits. `edges` are those of the row.
template <typename Visit>
static inline void visit_nodes(const RelationTableView& table, const Edge* edges, const NeighborhoodScratch& scratch,
                               HitRange hits, Visit&& visit) {
    const Node* nodes = scratch.nodes.data;
    const Strength* corner = table.corner;
    for (int64_t i = hits.begin; i < hits.end; ++i) {
        const Hit hit = scratch.hits.data[i];
        const uint32_t index = target_index(table, hit.relation);
        int32_t n = hit.list.first;
        for (int32_t left = hit.list.length; left > 0; --left) {
            const Node& node = nodes[n];
            const uint32_t cell = index + node.index;
            visit(__builtin_expect(cell < kOutside, 1)
                      ? corner[cell]
                      : outside_strength(table, edges[node.local].relation, hit.relation),
                  static_cast<double>(node.weight));
            n = node.next;
        }
    }
}

// -sum of log(1 - x), for evidence so small that a product of factors has lost its digits.
static double small_evidence(const RelationTableView& table, const Edge* edges, const NeighborhoodScratch& scratch,
                             HitRange hits) {
    double total = 0.0;
    visit_nodes(table, edges, scratch, hits, [&](Strength strength, double weight) {
        total -= std::log1p(-strength.from1 * weight) + std::log1p(-strength.from2 * weight);
    });
    return total;
}

// -sum of log of the factors, without one logarithm per factor: the two factors of a visit go into a lane
// of a product each, and the lanes are taken out before they can underflow. The product stays in a
// register: nothing here may take its address.
static double pair_evidence(const RelationTableView& table, const Edge* edges, const NeighborhoodScratch& scratch,
                            HitRange hits) {
    if (hits.begin == hits.end) return 0.0;
    constexpr int kVisits = 32;  // each may take 1e-4 off a lane
    const Two one = {1.0, 1.0};
    const Two least = {kMinFactor, kMinFactor};
    Two product = one;
    double taken_out = 0.0;
    int budget = kVisits;
    visit_nodes(table, edges, scratch, hits, [&](Strength strength, double weight) {
        const Two strengths = {strength.from1, strength.from2};
        product *= larger(one - strengths * weight, least);
        if (--budget == 0) {
            budget = kVisits;
            if (product[0] * product[1] < 1e-40) {
                taken_out -= std::log(product[0]) + std::log(product[1]);
                product = one;
            }
        }
    });
    // At least 1e-40 when last looked at, and at least 1e-8 per visit since: still a normal number.
    const double evidence = taken_out - std::log(product[0] * product[1]);
    constexpr double kSmall = 1e-6;
    return evidence > kSmall ? evidence : small_evidence(table, edges, scratch, hits);
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
    for (int32_t j = 0; j < degree; ++j) {
        file_beliefs(scratch, args.beliefs, edges[j].neighbor, source_index(args.relations, edges[j].relation), j);
    }
    find_hits(args.target, scratch, candidates, k);
    for (int64_t c = 0; c < k; ++c) {
        evidence[c] = static_cast<float>(pair_evidence(args.relations, edges, scratch, hits_of(scratch, c)));
    }
    forget_row(scratch);
}
