// Shared by the row kernels: file a neighbourhood under its believed targets, find what candidates have
// in common with it, and look up how strongly that speaks. Included once per tier, inside the tier's
// namespace.
//
// The inner loops have no unpredictable branch where one can be avoided: whether a target is filed is a
// coin toss to the branch predictor, and a wrong guess costs more than the work it would save.

static inline int32_t number(Numbering& numbering, int32_t value) {
    const int32_t known = numbering.number_of.data[value];
    const int32_t next = static_cast<int32_t>(numbering.size);
    const int32_t result = known < 0 ? next : known;
    numbering.values.data[next] = value;
    numbering.number_of.data[value] = result;
    numbering.size = next + (known < 0);
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
                                uint32_t index, int32_t local) {
    uint64_t* present = scratch.present;
    NodeList* lists = scratch.lists.data;
    int32_t* filed = scratch.filed.data;
    Node* nodes = scratch.nodes.data;
    int64_t num_filed = scratch.num_filed;
    int64_t num_nodes = scratch.num_nodes;
    const int64_t end = beliefs.indptr[neighbor + 1];
    for (int64_t i = beliefs.indptr[neighbor]; i < end; ++i) {
        const int32_t target = beliefs.targets[i];
        const NodeList list = lists[target];
        filed[num_filed] = target;
        num_filed += list.length == 0;
        nodes[num_nodes] = Node{beliefs.weights[i], index, list.first, local};
        lists[target] = NodeList{static_cast<int32_t>(num_nodes++), list.length + 1};
        present[target >> 6] |= uint64_t{1} << (target & 63);
    }
    scratch.num_filed = num_filed;
    scratch.num_nodes = num_nodes;
}

static void forget_row(NeighborhoodScratch& scratch) {
    for (int64_t i = 0; i < scratch.num_filed; ++i) {
        const int32_t target = scratch.filed.data[i];
        scratch.present[target >> 6] = 0;
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

// Both write the target where the first node of the hit's list belongs; find_hits() replaces it.
static inline int64_t scan_edges(const Edge* edges, int64_t begin, int64_t end, const uint64_t* present, Hit* hits) {
    int64_t found = 0;
    for (int64_t j = begin; j < end; ++j) {
        const Edge edge = edges[j];
        hits[found] = Hit{{edge.neighbor, 0}, edge.relation};
        found += static_cast<int64_t>((present[edge.neighbor >> 6] >> (edge.neighbor & 63)) & 1u);
    }
    return found;
}

static int64_t search_edges(const Edge* edges, int64_t begin, int64_t end, const NeighborhoodScratch& scratch,
                            Hit* hits) {
    int64_t found = 0;
    for (int64_t i = 0; i < scratch.num_filed; ++i) {
        const int32_t wanted = scratch.filed.data[i];
        for (int64_t j = lower_bound(edges, begin, end, wanted); j < end && edges[j].neighbor == wanted; ++j) {
            hits[found++] = Hit{{wanted, 0}, edges[j].relation};
        }
    }
    return found;
}

// Finds the edges of the candidates (-1 = none) that lead to filed targets; hits_end then says where each
// one's hits end. A candidate with many more edges than the row has targets is searched, not scanned: a
// hub among the candidates of a leaf costs a few binary searches instead of its whole degree.
static void find_hits(const GraphView& target, NeighborhoodScratch& scratch, const int32_t* candidates, int64_t count) {
    constexpr int64_t kSearchCost = 32;  // of one binary search, in scanned edges
    const int64_t first = scratch.num_hits;
    scratch.hits_end.reserve(scratch.num_searched + count);
    for (int64_t c = 0; c < count; ++c) {
        const int64_t begin = candidates[c] < 0 ? 0 : target.indptr[candidates[c]];
        const int64_t end = candidates[c] < 0 ? 0 : target.indptr[candidates[c] + 1];
        scratch.reserve_hits(scratch.num_hits + end - begin);
        Hit* hits = scratch.hits.data + scratch.num_hits;
        const bool search = end - begin > scratch.num_filed * kSearchCost;
        scratch.num_hits += search ? search_edges(target.edges, begin, end, scratch, hits)
                                   : scan_edges(target.edges, begin, end, scratch.present, hits);
        scratch.hits_end.data[scratch.num_searched++] = scratch.num_hits;
    }
    for (int64_t i = first; i < scratch.num_hits; ++i) {
        Hit& hit = scratch.hits.data[i];
        hit.list = scratch.lists.data[hit.list.first];
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

// Strength of a pair with a relation outside the corner.
static Strength outside_strength(const RelationTableView& table, int32_t source_relation, int32_t target_relation) {
    const int32_t relation1 = table.source_is_graph1 ? source_relation : target_relation;
    const int32_t relation2 = table.source_is_graph1 ? target_relation : source_relation;
    const int64_t key = relation_key(relation1, relation2);
    for (uint64_t at = outside_slot(key, table.outside_mask);; at = (at + 1) & table.outside_mask) {
        const OutsidePair& pair = table.outside[at];
        if (pair.key == key) return pair.strength;
        if (pair.key < 0) return Strength{table.default1[relation1], table.default2[relation2]};
    }
}

static inline uint32_t source_index(const RelationTableView& table, int32_t relation) {
    return table.source_is_graph1 ? table.index1[relation] : table.index2[relation];
}

static inline uint32_t target_index(const RelationTableView& table, int32_t relation) {
    return table.source_is_graph1 ? table.index2[relation] : table.index1[relation];
}
