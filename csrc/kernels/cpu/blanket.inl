// 1 - x, clamped like the factors of the evidence.
static inline double factor(float strength, double weight) {
    const double value = 1.0 - static_cast<double>(strength) * weight;
    return value < kMinFactor ? kMinFactor : value;
}

static inline int32_t inverse(int32_t relation, int32_t num_relations) {
    return relation < num_relations ? relation + num_relations : relation - num_relations;
}

static void reserve_groups(BlanketScratch& scratch, int64_t bound) {
    scratch.neighborhood.reserve_nodes(bound);
    scratch.weight.reserve(bound);
    scratch.rest.reserve(bound);
    scratch.product.reserve(bound);
    scratch.reached.reserve(bound);
    scratch.group_of.reserve(bound);
    scratch.shift.reserve(bound);
}

// Files every belief of every neighbour but the row itself as a group, once per edge to the neighbour:
// edges to one neighbour are adjacent in the row and share its groups. Returns the number of groups.
// Seen from the neighbour, the edge runs the other way: nodes carry the inverse relation.
static int64_t file_groups(const BlanketArgs& args, const Edge* edges, int64_t degree, int64_t row,
                           BlanketScratch& scratch) {
    int64_t nodes = 0;
    int64_t groups = 0;
    int64_t first_group = 0;
    for (int32_t j = 0; j < degree; ++j) {
        const int32_t neighbor = edges[j].neighbor;
        if (neighbor == row) continue;
        const int64_t first = args.beliefs.indptr[neighbor];
        const int64_t count = args.beliefs.indptr[neighbor + 1] - first;
        if (j == 0 || edges[j - 1].neighbor != neighbor) {
            first_group = groups;
            groups += count;
        }
        const int32_t relation = inverse(edges[j].relation, args.num_source_relations);
        file_beliefs<1>(scratch.neighborhood, args.beliefs, neighbor, static_cast<uint32_t>(nodes));
        for (int64_t b = 0; b < count; ++b, ++nodes) {
            scratch.shift.data[nodes] = args.relations.shift[relation];
            scratch.group_of.data[nodes] = static_cast<int32_t>(first_group + b);
            scratch.weight.data[first_group + b] = args.beliefs.weights[first + b];
            scratch.rest.data[first_group + b] = args.belief_evidence[first + b];
            scratch.product.data[first_group + b] = 1.0;
        }
    }
    return groups;
}

// Calls visit(group, strength) for every node behind the hits of the candidate searched at `position`.
template <typename Visit>
static inline void visit_groups(const BlanketArgs& args, const BlanketScratch& scratch, int64_t position,
                                Visit&& visit) {
    const NeighborhoodScratch& neighborhood = scratch.neighborhood;
    for (const Hit& hit : hits_of(neighborhood, position)) {
        const int32_t relation = inverse(hit.relation, args.num_target_relations);
        for (uint32_t place = hit.place; place > 0; place = neighborhood.heads.data[block_before(place)].earlier) {
            for (uint32_t n = block_before(place) * kBlock; n < place; ++n) {
                const uint32_t node = neighborhood.nodes.data[n].key;
                visit(scratch.group_of.data[node],
                      strength_at_shift(args.relations, scratch.shift.data[node], relation));
            }
        }
    }
}

// Collects in product[group] what "e is the candidate, with this weight" says, of every group that it reaches: all
// statements, or the strongest. Returns the number of groups.
static int64_t reach_groups(const BlanketArgs& args, BlanketScratch& scratch, int64_t position, double weight) {
    const bool by_neighbor = args.witnesses == Witnesses::kNeighbor;
    int64_t num_reached = 0;
    visit_groups(args, scratch, position, [&](int32_t group, Strength strength) {
        const double both = factor(strength.source, weight) * factor(strength.target, weight);
        if (both == 1.0) return;  // no evidence: an untouched product must mean an unlisted group
        double& product = scratch.product.data[group];
        if (product == 1.0) scratch.reached.data[num_reached++] = group;
        product = !by_neighbor ? product * both : both < product ? both : product;
    });
    return num_reached;
}

// The share of one of the row's beliefs in the evidence of its neighbours.
static void remove_share(const BlanketArgs& args, BlanketScratch& scratch, int64_t position, double weight) {
    if (args.witnesses == Witnesses::kStatement) {
        visit_groups(args, scratch, position, [&](int32_t group, Strength strength) {
            scratch.rest.data[group] += std::log(factor(strength.source, weight) * factor(strength.target, weight));
        });
        return;
    }
    const int64_t num_reached = reach_groups(args, scratch, position, weight);
    for (int64_t i = 0; i < num_reached; ++i) {
        const int32_t group = scratch.reached.data[i];
        scratch.rest.data[group] += std::log(scratch.product.data[group]);
        scratch.product.data[group] = 1.0;
    }
}

// Takes what the row's own beliefs lent to its neighbours out of the neighbours' evidence, and returns
// the blanket of a candidate that shares nothing.
static double remove_own_share(const BlanketArgs& args, int64_t row, int64_t groups, BlanketScratch& scratch) {
    const int64_t first = args.beliefs.indptr[row];
    for (int64_t b = 0; b < args.beliefs.indptr[row + 1] - first; ++b) {
        remove_share(args, scratch, b, args.beliefs.weights[first + b]);
    }
    double base = 0.0;
    for (int64_t g = 0; g < groups; ++g) {
        const double rest = scratch.rest.data[g];
        scratch.rest.data[g] = rest > 0.0 ? std::exp(-rest) : 1.0;
        base += scratch.weight.data[g] * (1.0 - scratch.rest.data[g]);
    }
    return base;
}

// What "e is the candidate" adds to the compatibility of the neighbours.
static double candidate_gain(const BlanketArgs& args, int64_t position, BlanketScratch& scratch) {
    const int64_t num_reached = reach_groups(args, scratch, position, 1.0);
    double gain = 0.0;
    for (int64_t i = 0; i < num_reached; ++i) {
        const int32_t group = scratch.reached.data[i];
        double& product = scratch.product.data[group];
        gain += scratch.weight.data[group] * scratch.rest.data[group] * (1.0 - product);
        product = 1.0;
    }
    return gain;
}

void blanket_row(const BlanketArgs& args, BlanketScratch& scratch, int64_t row) {
    const int64_t k = args.candidates.k;
    const int32_t* candidates = args.candidates.indices + (row - args.rows.begin) * k;
    float* blanket = args.blanket + (row - args.rows.begin) * k;
    const Edge* edges = args.source.edges + args.source.indptr[row];
    const int64_t degree = args.source.indptr[row + 1] - args.source.indptr[row];
    reserve_groups(scratch, count_beliefs(args.beliefs, edges, edges + degree));
    const int64_t groups = file_groups(args, edges, degree, row, scratch);
    const int64_t own = args.beliefs.indptr[row + 1] - args.beliefs.indptr[row];
    find_hits(args.target, scratch.neighborhood, args.beliefs.targets + args.beliefs.indptr[row], own);
    find_hits(args.target, scratch.neighborhood, candidates, k);
    const double base = remove_own_share(args, row, groups, scratch);
    for (int64_t c = 0; c < k; ++c) {
        blanket[c] = candidates[c] < 0 ? 0.0f : static_cast<float>(base + candidate_gain(args, own + c, scratch));
    }
    forget_row(scratch.neighborhood);
}
