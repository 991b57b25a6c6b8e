// Shared by the row kernels: file a neighbourhood under its believed targets, find what candidates have
// in common with it, and look up how strongly that speaks. Included once per tier, inside the tier's
// namespace.
//
// The inner loops have no unpredictable branch where one can be avoided: whether a target is filed is a
// coin toss to the branch predictor, and a wrong guess costs more than the work it would save.

// The compiler takes a function that only prefetches for one without effect, and leaves its calls out.
#define PREFETCHING __attribute__((always_inline)) static inline

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

// Sends for the beliefs of the neighbour that comes some edges later, in this row or in one of the next.
PREFETCHING void prefetch_beliefs(const GraphView& source, const BeliefsView& beliefs, int64_t edge) {
    constexpr int64_t kAhead = 12;
    if (edge + 2 * kAhead >= source.num_edges) return;
    __builtin_prefetch(beliefs.indptr + source.edges[edge + 2 * kAhead].neighbor);
    const int64_t first = beliefs.indptr[source.edges[edge + kAhead].neighbor];
    __builtin_prefetch(beliefs.targets + first);
    __builtin_prefetch(beliefs.targets + first + 9);
    __builtin_prefetch(beliefs.weights + first);
    __builtin_prefetch(beliefs.weights + first + 9);
}

// The number of nodes that the edges file.
static int64_t count_beliefs(const BeliefsView& beliefs, const Edge* begin, const Edge* end) {
    int64_t total = 0;
    for (const Edge* edge = begin; edge < end; ++edge) {
        total += beliefs.indptr[edge->neighbor + 1] - beliefs.indptr[edge->neighbor];
    }
    return total;
}

typedef uint64_t BlockWords __attribute__((vector_size(kBlock * sizeof(Node))));

// The place of the next node of a list: `next`, or `top` if a block begins there, and then `top` moves on. Without a
// jump, which could not be predicted: compilers make one of a choice, and of masks three times the instructions.
static inline uint64_t take_place(uint64_t next, uint64_t& top) {
    const uint64_t above = top + kBlock;
#ifdef __x86_64__
    static_assert(kBlock == 4, "3 is the mask of a place in its block");
    __asm__("testb $3, %b[place]\n\tcmovz %[top], %[place]\n\tcmovz %[above], %[top]"
            : [place] "+&r"(next), [top] "+r"(top)
            : [above] "r"(above)
            : "cc");
    return next;
#else
    const uint64_t is_new = uint64_t{0} - (next % kBlock == 0);  // all bits set, or none
    const uint64_t place = next ^ ((next ^ top) & is_new);
    top ^= (top ^ above) & is_new;
    return place;
#endif
}

// Files one node per belief of `neighbor`, the first with the key `key` and each further one with kStep more.
// reserve_nodes() has made room.
template <uint32_t kStep = 0>
static inline void file_beliefs(NeighborhoodScratch& scratch, const BeliefsView& beliefs, int32_t neighbor,
                                uint32_t key) {
    uint32_t* __restrict place_of = scratch.place_of.data;
    Node* __restrict nodes = scratch.nodes.data;
    BlockHead* __restrict heads = scratch.heads.data;
    const auto* __restrict targets = reinterpret_cast<const uint32_t*>(beliefs.targets);
    const float* __restrict weights = beliefs.weights;
    uint64_t top = scratch.num_places;
    const int64_t end = beliefs.indptr[neighbor + 1];
    for (int64_t i = beliefs.indptr[neighbor]; i < end; ++i, key += kStep) {
        const uint32_t target = targets[i];
        const uint32_t next = place_of[target];
        const BlockWords empty = {};
        __builtin_memcpy(nodes + top, &empty, sizeof empty);
        heads[top / kBlock] = BlockHead{next, target};
        const uint64_t place = take_place(next, top);
        nodes[place] = Node{key, weights[i]};
        place_of[target] = static_cast<uint32_t>(place) + 1;
    }
    scratch.num_places = static_cast<uint32_t>(top);
}

// Files the beliefs of one neighbour to which several edges lead, so that the nodes of each pair (n, n') have blocks of
// their own: a place that ends a block makes the next node begin one. The keys are twice the shifts of the relations.
static void file_groups_of_neighbor(NeighborhoodScratch& scratch, const BeliefsView& beliefs, const Edge* first,
                                    const Edge* last, const uint32_t* shift) {
    const auto end_of_block = [](uint32_t place) { return (place + kBlock - 1) / kBlock * kBlock; };
    uint32_t top = scratch.num_places;
    for (int64_t b = beliefs.indptr[first->neighbor]; b < beliefs.indptr[first->neighbor + 1]; ++b) {
        const auto target = static_cast<uint32_t>(beliefs.targets[b]);
        uint32_t earlier = end_of_block(scratch.place_of.data[target]) | kGroup;
        for (const Edge* edge = first; edge < last; top += kBlock) {
            scratch.heads.data[top / kBlock] = BlockHead{earlier, target};
            for (uint32_t i = 0; i < kBlock; ++i) {
                scratch.nodes.data[top + i] =
                    edge < last ? Node{2 * shift[edge->relation], beliefs.weights[b]} : Node{0, 0.0f};
                edge += edge < last;
            }
            earlier = (top + kBlock) | kGroup | kGroupGoesOn;
        }
        scratch.place_of.data[target] = top;
    }
    scratch.num_places = top;
}

static void forget_row(NeighborhoodScratch& scratch) {
    for (uint32_t block = 1; block < scratch.num_places / kBlock; ++block) {
        scratch.place_of.data[scratch.heads.data[block].target] = 0;
    }
    scratch.num_places = kBlock;
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

static inline int64_t scan_edges(const Edge* __restrict edges, const Edge* end, const uint32_t* __restrict place_of,
                                 Hit* __restrict hits) {
    int64_t found = 0;
    for (; edges < end; ++edges) {
        const uint32_t place = place_of[static_cast<uint32_t>(edges->neighbor)];
        hits[found].place = place;
        hits[found].relation = edges->relation;
        found += place != 0;
    }
    return found;
}

static int64_t search_edges(const Edge* edges, int64_t begin, int64_t end, const NeighborhoodScratch& scratch,
                            Hit* hits) {
    int64_t found = 0;
    for (uint32_t block = 1; block < scratch.num_places / kBlock; ++block) {
        const BlockHead head = scratch.heads.data[block];
        if ((head.earlier & kPlace) != 0) continue;  // not the first of its target
        const auto wanted = static_cast<int32_t>(head.target);
        for (int64_t j = lower_bound(edges, begin, end, wanted); j < end && edges[j].neighbor == wanted; ++j) {
            hits[found++] = Hit{scratch.place_of.data[wanted], edges[j].relation};
        }
    }
    return found;
}

// Finds the edges of the candidates (-1 = none) that lead to filed targets; hits_end then says where each
// one's hits end. A candidate with many more edges than the row has targets is searched, not scanned: a
// hub among the candidates of a leaf costs a few binary searches instead of its whole degree.
static void find_hits(const GraphView& target, NeighborhoodScratch& scratch, const int32_t* candidates, int64_t count) {
    constexpr int64_t kSearchCost = 32;  // of one binary search, in scanned edges
    const int64_t most_scanned = static_cast<int64_t>(scratch.num_places / kBlock - 1) * kSearchCost;
    scratch.hits_end.reserve(scratch.num_searched + count);
    int64_t num_hits = scratch.num_hits;
    for (int64_t c = 0; c < count; ++c) {
        if (candidates[c] >= 0) {
            const int64_t begin = target.indptr[candidates[c]];
            const int64_t end = target.indptr[candidates[c] + 1];
            // Scanning writes one hit ahead before it knows whether it is one.
            if (num_hits + end - begin >= scratch.hits.capacity) scratch.hits.reserve(num_hits + end - begin + 1);
            Hit* hits = scratch.hits.data + num_hits;
            num_hits += __builtin_expect(end - begin > most_scanned, 0)
                            ? search_edges(target.edges, begin, end, scratch, hits)
                            : scan_edges(target.edges + begin, target.edges + end, scratch.place_of.data, hits);
        }
        scratch.hits_end.data[scratch.num_searched + c] = num_hits;
    }
    scratch.num_searched += count;
    scratch.num_hits = num_hits;
}

// Sends for the edges of the candidates of the next row.
PREFETCHING void prefetch_edges(const GraphView& target, const int32_t* entities, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (entities[i] < 0) continue;
        const Edge* edges = target.edges + target.indptr[entities[i]];
        __builtin_prefetch(edges);
        __builtin_prefetch(edges + 8);
    }
}

// The block that ends at, or is filled up to, a place.
static inline uint32_t block_before(uint32_t place) { return (place - 1) / kBlock; }

// The hits of the candidate searched at position `index`.
struct HitRange {
    const Hit* first;
    const Hit* last;

    const Hit* begin() const { return first; }
    const Hit* end() const { return last; }
};

static inline HitRange hits_of(const NeighborhoodScratch& scratch, int64_t index) {
    const Hit* hits = scratch.hits.data;
    return {hits + (index == 0 ? 0 : scratch.hits_end.data[index - 1]), hits + scratch.hits_end.data[index]};
}

static inline Strength strength_at_shift(const RelationTableView& table, uint32_t shift, int32_t target_relation) {
    const PairSlot& slot = table.slots[shift + table.rank[target_relation]];
    if (slot.relation == target_relation) return slot.strength;
    return Strength{table.source_default[table.relation_at[shift]], table.target_default[target_relation]};
}
