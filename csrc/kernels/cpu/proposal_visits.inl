// The walks of the proposals: what speaks for the targets beyond one counterpart, and in which order these are visited.

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
static inline Support support_by(Strength strength, double weight) {
    const double x = weight * static_cast<double>(strength.source);
    const double y = weight * static_cast<double>(strength.target);
    return {clamped_factor(x) * clamped_factor(y), x + y};
}

static inline Strength strength_of(const ProposalArgs& args, int32_t relation, Edge back) {
    const int32_t inverse = back.relation < args.num_target_relations ? back.relation + args.num_target_relations
                                                                      : back.relation - args.num_target_relations;
    return strength_of_relations(args.relations, relation, inverse);
}

// The supports of a row stand side by side, those of targets first touched last. Whether a target is new cannot be
// predicted: the place after the last is kept ready, and taken without a jump. reserve_support() has made room.
static inline void add_support(ProposalScratch& scratch, int32_t target, const Support& more) {
    constexpr double kLeast = 1e-300;
    if (more.sum <= 0.0) return;
    const int32_t known = scratch.place_of.data[target];
    const int32_t next = scratch.num_touched + 1;
    const int32_t is_new = -(known == 0);  // all bits set, or none
    const int32_t place = (next & is_new) | known;
    scratch.place_of.data[target] = place;
    scratch.touched.data[place] = target;
    scratch.num_touched -= is_new;
    Support* support = scratch.support.data;
    const double product = support[place].product * more.product;
    support[place] = Support{product > kLeast ? product : kLeast, support[place].sum + more.sum};
    support[scratch.num_touched + 1] = Support{1.0, 0.0};
}

// Every target beyond the counterpart n' of a neighbour takes the factors of this fact.
static void follow_statement(const ProposalArgs& args, ProposalScratch& scratch, int32_t relation, int32_t counterpart,
                             double weight) {
    const int64_t end = args.target.indptr[counterpart + 1];
    for (int64_t j = args.target.indptr[counterpart]; j < end; ++j) {
        const Edge back = args.target.edges[j];
        if (!args.open_targets[back.neighbor]) continue;
        add_support(scratch, back.neighbor, support_by(strength_of(args, relation, back), weight));
    }
}

static inline void take_stronger(Support& strongest, const Support& support) {
    strongest.product = support.product < strongest.product ? support.product : strongest.product;
    strongest.sum = support.sum > strongest.sum ? support.sum : strongest.sum;
}

// The strongest of what the facts of a visit and a run of edges to one target say; moves `back` behind the run.
static Support support_of_run(const ProposalArgs& args, const Visit& visit, const Edge*& back, const Edge* end) {
    const int32_t target = back->neighbor;
    Support strongest{1.0, 0.0};
    for (; back < end && back->neighbor == target; ++back) {
        for (const Edge* fact = visit.first; fact < visit.last; ++fact) {
            const Strength strength = strength_of(args, fact->relation, *back);
            if (strength.source + strength.target > 0.0f) take_stronger(strongest, support_by(strength, visit.weight));
        }
    }
    return strongest;
}

constexpr int64_t kEdgesAhead = 12;

// What a target will be asked for: of large graphs it is in no near cache.
static inline void send_ahead(const ProposalArgs& args, const ProposalScratch& scratch, int32_t target) {
    __builtin_prefetch(args.open_targets + target);
    __builtin_prefetch(scratch.place_of.data + target, 1);
}

// The edges of a counterpart that agree with one fact, and lead to open targets; with kTouchedOnly, to targets that
// have support already. Without a jump: whether a pair of relations is stored cannot be predicted.
template <bool kTouchedOnly>
static int64_t find_reached(const ProposalArgs& args, ProposalScratch& scratch, const Visit& visit) {
    const int32_t half = args.num_target_relations;
    const PairSlot* slots = args.relations.slots + args.relations.shift[visit.first->relation];
    const Edge* back = args.target.edges + args.target.indptr[visit.counterpart];
    const Edge* const end = back + visit.edges;
    scratch.reached.reserve(visit.edges + 1);  // one is written ahead
    Reached* reached = scratch.reached.data;
    int64_t count = 0;
    for (; back < end; ++back) {
        send_ahead(args, scratch, back + kEdgesAhead < end ? back[kEdgesAhead].neighbor : back->neighbor);
        const int32_t inverse = back->relation < half ? back->relation + half : back->relation - half;
        const PairSlot& slot = slots[args.relations.rank[inverse]];
        reached[count] = Reached{back->neighbor, slot.strength};
        bool is_reached = (slot.relation == inverse) & (args.open_targets[back->neighbor] != 0);
        if (kTouchedOnly) is_reached &= scratch.place_of.data[back->neighbor] != 0;
        count += is_reached;
    }
    return count;
}

// Every target beyond the counterpart takes the strongest of what one fact says.
template <bool kTouchedOnly>
static void follow_fact(const ProposalArgs& args, ProposalScratch& scratch, const Visit& visit) {
    const int64_t count = find_reached<kTouchedOnly>(args, scratch, visit);
    const Reached* reached = scratch.reached.data;
    for (int64_t i = 0; i < count;) {
        const int32_t target = reached[i].target;
        Support strongest = support_by(reached[i].strength, visit.weight);
        for (++i; i < count && reached[i].target == target; ++i) {
            take_stronger(strongest, support_by(reached[i].strength, visit.weight));
        }
        add_support(scratch, target, strongest);
    }
}

// The same for any number of facts about the neighbour.
template <bool kTouchedOnly>
static void follow_witness(const ProposalArgs& args, ProposalScratch& scratch, const Visit& visit) {
    if (visit.last - visit.first == 1 && !args.relations.has_defaults) {
        return follow_fact<kTouchedOnly>(args, scratch, visit);
    }
    const Edge* back = args.target.edges + args.target.indptr[visit.counterpart];
    const Edge* const end = back + visit.edges;
    while (back < end) {
        const int32_t target = back->neighbor;
        if (!args.open_targets[target] || (kTouchedOnly && scratch.place_of.data[target] == 0)) {
            while (back < end && back->neighbor == target) ++back;
        } else {
            add_support(scratch, target, support_of_run(args, visit, back, end));
        }
    }
}

// What a visit says for one target, which is searched among the edges of the counterpart.
static Support support_for(const ProposalArgs& args, const Visit& visit, int32_t target) {
    const int64_t begin = args.target.indptr[visit.counterpart];
    const int64_t end = args.target.indptr[visit.counterpart + 1];
    const int64_t found = lower_bound(args.target.edges, begin, end, target);
    if (found == end || args.target.edges[found].neighbor != target) return Support{1.0, 0.0};
    const Edge* back = args.target.edges + found;
    return support_of_run(args, visit, back, args.target.edges + end);
}

// One visit, in the way of the witnesses; one fact where those are statements.
static void follow(const ProposalArgs& args, ProposalScratch& scratch, const Visit& visit) {
    if (args.witnesses == Witnesses::kNeighbor) {
        follow_witness<false>(args, scratch, visit);
    } else {
        follow_statement(args, scratch, visit.first->relation, visit.counterpart, visit.weight);
    }
}

// Notes the visits to the counterparts of one neighbour, of which the facts [first, last) speak.
static void plan_neighbor(const ProposalArgs& args, ProposalScratch& scratch, const Edge* first, const Edge* last) {
    const int64_t end = args.beliefs.indptr[first->neighbor + 1];
    for (int64_t b = args.beliefs.indptr[first->neighbor]; b < end; ++b) {
        const int32_t counterpart = args.beliefs.targets[b];
        const int64_t edges = args.target.indptr[counterpart + 1] - args.target.indptr[counterpart];
        const auto weight = static_cast<double>(args.beliefs.weights[b]);
        __builtin_prefetch(args.target.edges + args.target.indptr[counterpart]);
        __builtin_prefetch(args.target.edges + args.target.indptr[counterpart] + 8);
        scratch.visits.reserve(scratch.num_visits + 1);
        scratch.visits.data[scratch.num_visits++] = Visit{first, last, counterpart, weight, edges, 1.0};
    }
}

// Notes all visits of a row in their order. The facts about one neighbour have the same fan-out and stand beside each
// other: the order keeps them together, and only the budget can part them.
static void plan_visits(const ProposalArgs& args, ProposalScratch& scratch, const Edge* edges, int64_t degree) {
    const bool by_neighbor = args.witnesses == Witnesses::kNeighbor;
    const int64_t enough = args.budget / kShareThatIsEnough;
    int64_t walked = 0, facts = 0;
    for (uint64_t lengths = count_fan_out(args, scratch, edges, degree); lengths != 0; lengths &= lengths - 1) {
        const int length = __builtin_ctzll(lengths);
        for (int64_t j = 0, next = 0; j < degree; j = next) {
            next = j + 1;
            const int64_t fan_out = scratch.fan_out.data[j];
            if (bit_length(fan_out) != length) continue;
            while (by_neighbor && next < degree && edges[next].neighbor == edges[j].neighbor) ++next;
            const int64_t first = facts;
            while (facts - first < next - j && fan_out <= args.budget - walked &&
                   (facts < kFactsThatAreEnough || walked < enough)) {
                walked += fan_out;
                ++facts;
            }
            if (facts > first) plan_neighbor(args, scratch, edges + j, edges + j + (facts - first));
            if (facts - first < next - j) return;
        }
    }
}

// What this visit and all later ones can multiply into the product of one target, at least; returns the edges of all.
static int64_t bound_visits(const ProposalArgs& args, ProposalScratch& scratch) {
    int64_t edges = 0;
    double least = 1.0;
    for (int64_t v = scratch.num_visits - 1; v >= 0; --v) {
        Visit& visit = scratch.visits.data[v];
        double factor = 1.0;
        for (const Edge* fact = visit.first; fact < visit.last; ++fact) {
            const Strength most = args.relations.strongest[fact->relation];
            const double of_fact = clamped_factor(visit.weight * static_cast<double>(most.source)) *
                                   clamped_factor(visit.weight * static_cast<double>(most.target));
            factor = of_fact < factor ? of_fact : factor;
        }
        least *= factor;
        visit.least_factor = least;
        edges += visit.edges;
    }
    return edges;
}
