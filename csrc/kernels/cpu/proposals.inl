// The targets that can still be among the best take what the visit says; those of a hub are searched, not scanned.
static void follow_contenders(const ProposalArgs& args, ProposalScratch& scratch, const Visit& visit) {
    constexpr int64_t kSearchCost = 16;  // of one binary search, in scanned edges
    if (scratch.num_contenders * kSearchCost > visit.edges) return follow_witness<true>(args, scratch, visit);
    for (int64_t i = 0; i < scratch.num_contenders; ++i) {
        const int32_t target = scratch.touched.data[scratch.contenders.data[i]];
        add_support(scratch, target, support_for(args, visit, target));
    }
}

// Products that differ by this factor are different evidence even as float32: evidence is below 700, and e^(700 *
// 2^-22) is less.
constexpr double kMargin = 1.0002;

static inline bool is_beaten(double product, double by) { return product > by * kMargin; }

// The place of the i-th contender, or of the i-th touched target while all of these contend.
static inline int32_t contender(const ProposalScratch& scratch, int64_t i) {
    return scratch.has_contenders ? scratch.contenders.data[i] : static_cast<int32_t>(i + 1);
}

static inline int64_t num_contenders(const ProposalScratch& scratch) {
    return scratch.has_contenders ? scratch.num_contenders : scratch.num_touched;
}

// Inserts into an increasing list, which has room for one more.
static inline void insert_product(RankedPlace* list, int64_t size, RankedPlace item) {
    int64_t at = size;
    for (; at > 0 && list[at - 1].product > item.product; --at) list[at] = list[at - 1];
    list[at] = item;
}

// The best contenders so far, at most `most` > 0 of them. Few get into a list that is full: one comparison each.
static int64_t rank_contenders(ProposalScratch& scratch, int64_t most) {
    scratch.ranked.reserve(most);
    RankedPlace* const list = scratch.ranked.data;
    const Support* const support = scratch.support.data;
    const int64_t count = num_contenders(scratch);
    int64_t size = 0;
    for (; size < most && size < count; ++size) {
        const int32_t place = contender(scratch, size);
        insert_product(list, size, {support[place].product, place});
    }
    if (size < most) return size;
    double worst = list[most - 1].product;
    for (int64_t i = size; i < count; ++i) {
        const int32_t place = contender(scratch, i);
        if (support[place].product >= worst) continue;
        insert_product(list, most - 1, {support[place].product, place});
        worst = list[most - 1].product;
    }
    return size;
}

// The product that a target will have after the visits from `visit` on, or 1 as soon as it is known to stay above
// `limit`.
static double completed_product(const ProposalArgs& args, const ProposalScratch& scratch, RankedPlace item,
                                int64_t visit, double limit) {
    const int32_t target = scratch.touched.data[item.place];
    for (int64_t v = visit; v < scratch.num_visits; ++v) {
        if (item.product * scratch.visits.data[v].least_factor > limit) return 1.0;
        item.product *= support_for(args, scratch.visits.data[v], target).product;
    }
    return item.product;
}

// A product that k > 0 targets will not exceed after the visits from `visit` on, below what an untouched target can
// come to; 2 if none is known. If the products so far do not say so, the best are looked up in these visits, where that
// is less work than the visits are.
static double settled_product(const ProposalArgs& args, ProposalScratch& scratch, int64_t visit, int64_t edges_left) {
    constexpr int64_t kSearchCost = 32;  // of one target in one visit, in edges that are walked
    constexpr double kNone = 2.0;
    const double limit = scratch.visits.data[visit].least_factor / kMargin;
    const int64_t size = rank_contenders(scratch, 2 * args.k);
    if ((scratch.num_visits - visit) * size * kSearchCost > edges_left) {
        const double kth = scratch.ranked.data[args.k - 1].product;
        return kth < limit ? kth : kNone;
    }
    int64_t better = 0;
    double largest = 0.0;
    for (int64_t i = 0; i < size && better < args.k; ++i) {
        if (better + size - i < args.k) return kNone;
        const double product = completed_product(args, scratch, scratch.ranked.data[i], visit, limit);
        if (product >= limit) continue;
        ++better;
        largest = product > largest ? product : largest;
    }
    return better == args.k ? largest : kNone;
}

// Leaves as contenders those that the visits from `visit` on can lead below the product that k targets reach.
static void drop_beaten(ProposalScratch& scratch, double reached, int64_t visit) {
    const double least_factor = scratch.visits.data[visit].least_factor;
    const int64_t count = num_contenders(scratch);
    scratch.contenders.reserve(count);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t place = contender(scratch, i);
        scratch.contenders.data[kept] = place;
        kept += !is_beaten(scratch.support.data[place].product * least_factor, reached);
    }
    scratch.num_contenders = kept;
    scratch.has_contenders = true;
}

// The first targets that a visit reaches; find_reached sends the others.
static void send_targets_ahead(const ProposalArgs& args, const ProposalScratch& scratch, const Visit& visit) {
    const Edge* edges = args.target.edges + args.target.indptr[visit.counterpart];
    const int64_t count = visit.edges < kEdgesAhead ? visit.edges : kEdgesAhead;
    for (int64_t i = 0; i < count; ++i) send_ahead(args, scratch, edges[i].neighbor);
}

// Follows the visits of a row until those that are left could not lead a new target among the best k; from then on only
// targets that still can be among these are looked up. The others may lack support, but are never the best.
static void follow_visits(const ProposalArgs& args, ProposalScratch& scratch) {
    constexpr int64_t kFewEdges = 256;
    const bool can_bound = args.witnesses == Witnesses::kNeighbor && !args.relations.has_defaults && args.k > 0;
    int64_t left = can_bound ? bound_visits(args, scratch) : 0;
    int64_t walked = 0;  // since the contenders were chosen
    for (int64_t v = 0; v < scratch.num_visits; ++v) {
        const Visit& visit = scratch.visits.data[v];
        const int64_t count = num_contenders(scratch);
        if (left > kFewEdges && count > 2 * args.k && 2 * walked >= count) {
            const double reached = settled_product(args, scratch, v, left);
            if (reached < 1.0) drop_beaten(scratch, reached, v);
            walked = 0;
        }
        scratch.reserve_support(visit.edges);
        if (v + 1 < scratch.num_visits) send_targets_ahead(args, scratch, scratch.visits.data[v + 1]);
        if (scratch.has_contenders) {
            follow_contenders(args, scratch, visit);
        } else {
            follow(args, scratch, visit);
        }
        walked += visit.edges;
        left -= visit.edges;
    }
    scratch.num_visits = 0;
}

// Evidence so small that the product has lost its digits is, to as many digits, the sum of the x.
static inline float evidence_of(const Support& support) {
    constexpr double kSmall = 1e-6;
    return static_cast<float>(support.sum < kSmall ? support.sum : -std::log(support.product));
}

// Inserts a target into the row's list of the k best.
static void insert_best(const ProposalArgs& args, int32_t target, float value, int32_t* indices, float* evidence) {
    int64_t place = args.k;
    while (place > 0 && (value > evidence[place - 1] ||
                         (value == evidence[place - 1] && (indices[place - 1] < 0 || target < indices[place - 1])))) {
        --place;
    }
    if (place == args.k || value <= 0.0f) return;
    for (int64_t c = args.k - 1; c > place; --c) {
        indices[c] = indices[c - 1];
        evidence[c] = evidence[c - 1];
    }
    indices[place] = target;
    evidence[place] = value;
}

// Finds the k best of the contenders, and forgets all that was touched.
static void keep_best(const ProposalArgs& args, ProposalScratch& scratch, int32_t* indices, float* evidence) {
    for (int64_t c = 0; c < args.k; ++c) {
        indices[c] = -1;
        evidence[c] = 0.0f;
    }
    // Few need a logarithm: those that the k-th best product does not beat.
    const bool is_full = args.k > 0 && rank_contenders(scratch, args.k) == args.k;
    const double kth = is_full ? scratch.ranked.data[args.k - 1].product : 1.0;
    for (int64_t i = 0; i < num_contenders(scratch); ++i) {
        const int32_t place = contender(scratch, i);
        const Support& support = scratch.support.data[place];
        if (!is_beaten(support.product, kth)) {
            insert_best(args, scratch.touched.data[place], evidence_of(support), indices, evidence);
        }
    }
    for (int32_t place = 1; place <= scratch.num_touched; ++place) {
        scratch.place_of.data[scratch.touched.data[place]] = 0;
    }
    scratch.num_touched = 0;
    scratch.support.data[1] = Support{1.0, 0.0};
    scratch.has_contenders = false;
}

void proposal_row(const ProposalArgs& args, ProposalScratch& scratch, int64_t row) {
    const Edge* edges = args.source.edges + args.source.indptr[row];
    const int64_t degree = args.source.indptr[row + 1] - args.source.indptr[row];
    if (args.open_rows[row]) {
        plan_visits(args, scratch, edges, degree);
        follow_visits(args, scratch);
    }
    const int64_t place = (row - args.rows.begin) * args.k;
    keep_best(args, scratch, args.indices + place, args.evidence + place);
}
