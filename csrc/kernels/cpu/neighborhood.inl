// Shared by the row kernels: file a neighbourhood under its believed targets, find what candidates have
// in common with it, and look up how strongly that speaks. Included once per tier, inside the tier's
// namespace.
//
// The inner loops have no unpredictable branch where one can be avoided: whether a target is filed is a
// coin toss to the branch predictor, and a wrong guess costs more than the work it would save.

static inline int32_t number(Numbering& numbering, int32_t value) {
    const int32_t known = numbering.number_of.data[value];
    const int32_t next = static_cast<int32_t>(numbering.size);
    const int32_t is_new = known >> 31;  // all bits set, or none: a choice would be compiled to a jump
    const int32_t result = (next & is_new) | (known & ~is_new);
    numbering.values.data[next] = value;
    numbering.number_of.data[value] = result;
    numbering.size = next - is_new;
    return result;
}

static inline void forget_numbers(Numbering& numbering) {
    for (int64_t i = 0; i < numbering.size; ++i) numbering.number_of.data[numbering.values.data[i]] = -1;
    numbering.size = 0;
}

// Sends for what the next row will read first: the beliefs of its neighbours ...
static void prefetch_beliefs(const GraphView& source, const BeliefsView& beliefs, int64_t row) {
    constexpr int64_t kMostEdges = 32;  // a hub would only push out what is still needed
    const int64_t begin = source.indptr[row];
    const int64_t end = source.indptr[row + 1];
    for (int64_t j = begin; j < end && j < begin + kMostEdges; ++j) {
        const int64_t first = beliefs.indptr[source.edges[j].neighbor];
        const int64_t last = beliefs.indptr[source.edges[j].neighbor + 1] - 1;
        __builtin_prefetch(beliefs.targets + first);
        __builtin_prefetch(beliefs.targets + last);
        __builtin_prefetch(beliefs.weights + first);
        __builtin_prefetch(beliefs.weights + last);
    }
}

// ... and the edges of its candidates.
static void prefetch_edges(const GraphView& target, const int32_t* entities, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (entities[i] >= 0) __builtin_prefetch(target.edges + target.indptr[entities[i]]);
    }
}

// The number of nodes that the edges file.
static int64_t count_beliefs(const BeliefsView& beliefs, const Edge* begin, const Edge* end) {
    int64_t total = 0;
    for (const Edge* edge = begin; edge < end; ++edge) {
        total += beliefs.indptr[edge->neighbor + 1] - beliefs.indptr[edge->neighbor];
    }
    return total;
}

// Files one node per belief of `neighbor`. reserve_nodes() has made room.
static inline void file_beliefs(NeighborhoodScratch& scratch, const BeliefsView& beliefs, int32_t neighbor,
                                int32_t label, uint32_t shift) {
    uint8_t* __restrict present = scratch.present.data;
    NodeList* __restrict lists = scratch.lists.data;
    int32_t* __restrict filed = scratch.filed.data + scratch.num_filed;
    Node* __restrict nodes = scratch.nodes.data;
    const int32_t* __restrict target_of = beliefs.targets;
    const float* __restrict weight_of = beliefs.weights;
    int64_t new_targets = 0;
    int64_t n = scratch.num_nodes;
    const int64_t end = beliefs.indptr[neighbor + 1];
    for (int64_t i = beliefs.indptr[neighbor]; i < end; ++i, ++n) {
        const auto target = static_cast<uint32_t>(target_of[i]);
        const NodeList list = lists[target];
        nodes[n].weight = weight_of[i];
        nodes[n].label = label;
        nodes[n].next = list.first;
        nodes[n].shift = shift;
        lists[target] = NodeList{static_cast<int32_t>(n), list.length + 1};
        filed[new_targets] = static_cast<int32_t>(target);
        new_targets += list.length == 0;
        present[target] = 1;
    }
    scratch.num_filed += new_targets;
    scratch.num_nodes = n;
}

static void forget_row(NeighborhoodScratch& scratch) {
    for (int64_t i = 0; i < scratch.num_filed; ++i) {
        const int32_t target = scratch.filed.data[i];
        scratch.present.data[target] = 0;
        scratch.lists.data[target] = NodeList{0, 0};
    }
    scratch.num_filed = 0;
    scratch.num_nodes = 0;
    scratch.num_hits = 0;
    scratch.num_searched = 0;
}

static inline int64_t lower_bound(const Edge* edges, int64_t begin, int64_t end, int32_t neighbor) {
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if (edges[middle].neighbor < neighbor) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

static inline int64_t scan_edges(const Edge* __restrict edges, int64_t begin, int64_t end,
                                 const uint8_t* __restrict present, Edge* __restrict hits) {
    int64_t found = 0;
    for (int64_t j = begin; j < end; ++j) {
        const Edge edge = edges[j];
        hits[found] = edge;
        found += present[static_cast<uint32_t>(edge.neighbor)];
    }
    return found;
}

static int64_t search_edges(const Edge* edges, int64_t begin, int64_t end, const NeighborhoodScratch& scratch,
                            Edge* hits) {
    int64_t found = 0;
    for (int64_t i = 0; i < scratch.num_filed; ++i) {
        const int32_t wanted = scratch.filed.data[i];
        for (int64_t j = lower_bound(edges, begin, end, wanted); j < end && edges[j].neighbor == wanted; ++j) {
            hits[found++] = edges[j];
        }
    }
    return found;
}

// Finds the edges of the candidates (-1 = none) that lead to filed targets; hits_end then says where each
// one's hits end. A candidate with many more edges than the row has targets is searched, not scanned: a
// hub among the candidates of a leaf costs a few binary searches instead of its whole degree.
static void find_hits(const GraphView& target, NeighborhoodScratch& scratch, const int32_t* candidates, int64_t count) {
    constexpr int64_t kSearchCost = 32;  // of one binary search, in scanned edges
    scratch.hits_end.reserve(scratch.num_searched + count);
    for (int64_t c = 0; c < count; ++c) {
        const int64_t begin = candidates[c] < 0 ? 0 : target.indptr[candidates[c]];
        const int64_t end = candidates[c] < 0 ? 0 : target.indptr[candidates[c] + 1];
        scratch.reserve_hits(scratch.num_hits + end - begin);
        Edge* hits = scratch.hits.data + scratch.num_hits;
        const bool search = end - begin > scratch.num_filed * kSearchCost;
        scratch.num_hits += search ? search_edges(target.edges, begin, end, scratch, hits)
                                   : scan_edges(target.edges, begin, end, scratch.present.data, hits);
        scratch.hits_end.data[scratch.num_searched++] = scratch.num_hits;
    }
}

// The hits of the candidate searched at position `index`.
struct HitRange {
    int64_t begin;
    int64_t end;
};

static inline HitRange hits_of(const NeighborhoodScratch& scratch, int64_t index) {
    return {index == 0 ? 0 : scratch.hits_end.data[index - 1], scratch.hits_end.data[index]};
}

static inline Strength strength_of(const RelationTableView& table, uint32_t shift, int32_t source_relation,
                                   int32_t target_relation) {
    const PairSlot& slot = table.slots[shift + table.rank[target_relation]];
    if (slot.relation == source_relation) return slot.strength;
    return Strength{table.source_default[source_relation], table.target_default[target_relation]};
}
