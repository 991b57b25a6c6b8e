typedef double Two __attribute__((vector_size(2 * sizeof(double))));

// Collects -log of a product of factors without one logarithm per factor: the two factors of a visit go
// into a lane each, and the lanes are brought back into range before they can underflow.
struct LogProduct {
    static constexpr int kVisits = 32;  // each may take 1e-4 off a lane
    Two product = {1.0, 1.0};
    double flushed = 0.0;
    int budget = kVisits;

    inline void multiply(Strength strength, double weight) {
        const Two least = {kMinFactor, kMinFactor};
        const Two strengths = {strength.from1, strength.from2};
        const Two factors = 1.0 - strengths * weight;
        product *= factors < least ? least : factors;
        if (--budget == 0) keep_in_range();
    }

    void keep_in_range() {
        budget = kVisits;
        if (product[0] >= 1e-100 && product[1] >= 1e-100) return;
        flushed -= std::log(product[0]) + std::log(product[1]);
        product = Two{1.0, 1.0};
    }

    inline double minus_log() {
        keep_in_range();
        return flushed - std::log(product[0] * product[1]);
    }
};

// Calls visit(strength, weight) for every node behind the hits. `edges` are those of the row.
template <typename Visit>
static inline void visit_nodes(const RelationTableView& table, const Edge* edges, const NeighborhoodScratch& scratch,
                               HitRange hits, Visit&& visit) {
    const Node* nodes = scratch.nodes.data;
    const Strength* corner = table.corner;
    for (int64_t i = hits.begin; i < hits.end; ++i) {
        const Hit hit = scratch.hits.data[i];
        const uint32_t index = target_index(table, hit.relation);
        for (int32_t n = hit.first_node; n >= 0;) {
            const Node node = nodes[n];
            const uint32_t cell = index + node.index;
            const Strength strength =
                cell < kOutside ? corner[cell] : search_strength(table, edges[node.local].relation, hit.relation);
            visit(strength, static_cast<double>(node.weight));
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

static double pair_evidence(const RelationTableView& table, const Edge* edges, const NeighborhoodScratch& scratch,
                            HitRange hits) {
    if (hits.begin == hits.end) return 0.0;
    LogProduct total;
    visit_nodes(table, edges, scratch, hits,
                [&](Strength strength, double weight) { total.multiply(strength, weight); });
    const double evidence = total.minus_log();
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
