static inline int bit_length(int64_t value) {
    return value > 0 ? 64 - __builtin_clzll(static_cast<uint64_t>(value)) : 0;
}

// The number of edges behind every fact of the row, and the bit lengths that occur.
static uint64_t count_fan_out(const ProposalArgs& args, ProposalScratch& scratch, const Edge* edges, int64_t degree) {
    uint64_t lengths = 0;
    scratch.fan_out.reserve(degree);
    for (int64_t j = 0; j < degree; ++j) {
        int64_t fan_out = 0;
        const int64_t end = args.beliefs.indptr[edges[j].neighbor + 1];
        for (int64_t b = args.beliefs.indptr[edges[j].neighbor]; b < end; ++b) {
            const int32_t target = args.beliefs.targets[b];
            fan_out += args.target.indptr[target + 1] - args.target.indptr[target];
        }
        scratch.fan_out.data[j] = fan_out;
        if (fan_out > 0) lengths |= uint64_t{1} << bit_length(fan_out);
    }
    return lengths;
}

static inline Strength strength_of_relations(const RelationTableView& table, int32_t relation,
                                             int32_t target_relation) {
    const PairSlot& slot = table.slots[table.shift[relation] + table.rank[target_relation]];
    if (slot.relation == target_relation) return slot.strength;  // see RelationTableView: then it is the pair's slot
    if (!table.has_defaults) return Strength{0.0f, 0.0f};
    return Strength{table.source_default[relation], table.target_default[target_relation]};
}

static inline double clamped_factor(double x) { return 1.0 - x > kMinFactor ? 1.0 - x : kMinFactor; }

// What one statement r(e, n) and one r'(e', n') say together.
static inline Support support_of(const ProposalArgs& args, int32_t relation, Edge back, double weight) {
    const int32_t inverse = back.relation < args.num_target_relations ? back.relation + args.num_target_relations
                                                                      : back.relation - args.num_target_relations;
    const Strength strength = strength_of_relations(args.relations, relation, inverse);
    const double x = weight * static_cast<double>(strength.source);
    const double y = weight * static_cast<double>(strength.target);
    return {clamped_factor(x) * clamped_factor(y), x + y};
}

static inline void add_support(ProposalScratch& scratch, int32_t target, const Support& more) {
    constexpr double kLeast = 1e-300;
    if (more.sum <= 0.0) return;
    Support& support = scratch.support.data[target];
    if (support.sum == 0.0) scratch.touched.data[scratch.num_touched++] = target;
    const double product = support.product * more.product;
    support = Support{product > kLeast ? product : kLeast, support.sum + more.sum};
}

// Every target beyond the counterpart n' of a neighbour takes the factors of this fact.
static void follow_statement(const ProposalArgs& args, ProposalScratch& scratch, int32_t relation, int32_t counterpart,
                             double weight) {
    const int64_t end = args.target.indptr[counterpart + 1];
    for (int64_t j = args.target.indptr[counterpart]; j < end; ++j) {
        const Edge back = args.target.edges[j];
        if (!args.open_targets[back.neighbor]) continue;
        add_support(scratch, back.neighbor, support_of(args, relation, back, weight));
    }
}

// Every target beyond the counterpart takes the strongest of what the facts [first, last) about one neighbour say.
static void follow_witness(const ProposalArgs& args, ProposalScratch& scratch, const Edge* first, const Edge* last,
                           int32_t counterpart, double weight) {
    const Edge* const end = args.target.edges + args.target.indptr[counterpart + 1];
    for (const Edge* back = args.target.edges + args.target.indptr[counterpart]; back < end;) {
        const int32_t target = back->neighbor;
        Support strongest{1.0, 0.0};
        for (; back < end && back->neighbor == target; ++back) {
            if (!args.open_targets[target]) continue;
            for (const Edge* fact = first; fact < last; ++fact) {
                const Support support = support_of(args, fact->relation, *back, weight);
                strongest.product = support.product < strongest.product ? support.product : strongest.product;
                strongest.sum = support.sum > strongest.sum ? support.sum : strongest.sum;
            }
        }
        add_support(scratch, target, strongest);
    }
}

// The facts [first, last) about one neighbour, in the way of the witnesses; one fact where those are statements.
static void follow_neighbor(const ProposalArgs& args, ProposalScratch& scratch, const Edge* first, const Edge* last) {
    const int64_t end = args.beliefs.indptr[first->neighbor + 1];
    for (int64_t b = args.beliefs.indptr[first->neighbor]; b < end; ++b) {
        const int32_t counterpart = args.beliefs.targets[b];
        const auto weight = static_cast<double>(args.beliefs.weights[b]);
        if (args.witnesses == Witnesses::kNeighbor) {
            follow_witness(args, scratch, first, last, counterpart, weight);
        } else {
            follow_statement(args, scratch, first->relation, counterpart, weight);
        }
    }
}

// The facts about one neighbour have the same fan-out and stand beside each other: the order of the walk keeps them
// together, and only the budget can part them.
static void follow_facts(const ProposalArgs& args, ProposalScratch& scratch, const Edge* edges, int64_t degree) {
    const bool by_neighbor = args.witnesses == Witnesses::kNeighbor;
    int64_t budget = args.budget;
    for (uint64_t lengths = count_fan_out(args, scratch, edges, degree); lengths != 0; lengths &= lengths - 1) {
        const int length = __builtin_ctzll(lengths);
        for (int64_t j = 0, next = 0; j < degree; j = next) {
            next = j + 1;
            const int64_t fan_out = scratch.fan_out.data[j];
            if (bit_length(fan_out) != length) continue;
            while (by_neighbor && next < degree && edges[next].neighbor == edges[j].neighbor) ++next;
            const int64_t within = budget / fan_out < next - j ? budget / fan_out : next - j;
            if (within > 0) follow_neighbor(args, scratch, edges + j, edges + j + within);
            if (within < next - j) return;
            budget -= within * fan_out;
        }
    }
}

// Evidence so small that the product has lost its digits is, to as many digits, the sum of the x.
static inline float evidence_of(const Support& support) {
    constexpr double kSmall = 1e-6;
    return static_cast<float>(support.sum < kSmall ? support.sum : -std::log(support.product));
}

// Inserts the touched targets into the row's list of the k best, and forgets them.
static void keep_best(const ProposalArgs& args, ProposalScratch& scratch, int32_t* indices, float* evidence) {
    for (int64_t c = 0; c < args.k; ++c) {
        indices[c] = -1;
        evidence[c] = 0.0f;
    }
    for (int64_t t = 0; t < scratch.num_touched; ++t) {
        const int32_t target = scratch.touched.data[t];
        const float value = evidence_of(scratch.support.data[target]);
        scratch.support.data[target] = Support{1.0, 0.0};
        int64_t place = args.k;
        while (place > 0 &&
               (value > evidence[place - 1] ||
                (value == evidence[place - 1] && (indices[place - 1] < 0 || target < indices[place - 1])))) {
            --place;
        }
        if (place == args.k || value <= 0.0f) continue;
        for (int64_t c = args.k - 1; c > place; --c) {
            indices[c] = indices[c - 1];
            evidence[c] = evidence[c - 1];
        }
        indices[place] = target;
        evidence[place] = value;
    }
    scratch.num_touched = 0;
}

void proposal_row(const ProposalArgs& args, ProposalScratch& scratch, int64_t row) {
    const Edge* edges = args.source.edges + args.source.indptr[row];
    const int64_t degree = args.source.indptr[row + 1] - args.source.indptr[row];
    if (args.open_rows[row]) follow_facts(args, scratch, edges, degree);
    const int64_t place = (row - args.rows.begin) * args.k;
    keep_best(args, scratch, args.indices + place, args.evidence + place);
}
