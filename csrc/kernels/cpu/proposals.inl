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

// Every target beyond the counterpart n' of a neighbour takes the factors of this fact.
static void follow_belief(const ProposalArgs& args, ProposalScratch& scratch, int32_t relation, int32_t counterpart,
                          double weight) {
    constexpr double kLeast = 1e-300;
    const int64_t end = args.target.indptr[counterpart + 1];
    for (int64_t j = args.target.indptr[counterpart]; j < end; ++j) {
        const Edge back = args.target.edges[j];
        if (!args.open_targets[back.neighbor]) continue;
        const int32_t inverse = back.relation < args.num_target_relations ? back.relation + args.num_target_relations
                                                                          : back.relation - args.num_target_relations;
        const Strength strength = strength_of_relations(args.relations, relation, inverse);
        const double x = weight * static_cast<double>(strength.source);
        const double y = weight * static_cast<double>(strength.target);
        if (x + y <= 0.0) continue;
        Support& support = scratch.support.data[back.neighbor];
        if (support.sum == 0.0) scratch.touched.data[scratch.num_touched++] = back.neighbor;
        const double product = support.product * (clamped_factor(x) * clamped_factor(y));
        support = Support{product > kLeast ? product : kLeast, support.sum + (x + y)};
    }
}

static void follow_facts(const ProposalArgs& args, ProposalScratch& scratch, const Edge* edges, int64_t degree) {
    int64_t budget = args.budget;
    for (uint64_t lengths = count_fan_out(args, scratch, edges, degree); lengths != 0; lengths &= lengths - 1) {
        const int length = __builtin_ctzll(lengths);
        for (int64_t j = 0; j < degree; ++j) {
            if (bit_length(scratch.fan_out.data[j]) != length) continue;
            budget -= scratch.fan_out.data[j];
            if (budget < 0) return;
            const int64_t end = args.beliefs.indptr[edges[j].neighbor + 1];
            for (int64_t b = args.beliefs.indptr[edges[j].neighbor]; b < end; ++b) {
                follow_belief(args, scratch, edges[j].relation, args.beliefs.targets[b],
                              static_cast<double>(args.beliefs.weights[b]));
            }
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
