static inline int64_t fixed_point(double value, double scale) { return static_cast<int64_t>(value * scale + 0.5); }

constexpr int64_t kLanes = 4;

static inline Lanes load_lanes(const double* values) {
    Lanes lanes;
    __builtin_memcpy(&lanes, values, sizeof lanes);
    return lanes;
}

// prod over (x', y') of (1 - w(x, x') w(y, y')), in lanes so that every tier multiplies in the same order, and
// in four products, so that one multiplication need not wait for the one before.
static double product_of_all(const double* row_weights, int64_t padded, const float* weights, int64_t count) {
    const Lanes one = {1.0, 1.0, 1.0, 1.0};
    Lanes a = one, b = one, c = one, d = one;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const double w0 = weights[i], w1 = weights[i + 1], w2 = weights[i + 2], w3 = weights[i + 3];
        for (int64_t j = 0; j < padded; j += kLanes) {
            const Lanes row = load_lanes(row_weights + j);
            a *= one - row * w0;
            b *= one - row * w1;
            c *= one - row * w2;
            d *= one - row * w3;
        }
    }
    for (; i < count; ++i) {
        const double weight = weights[i];
        for (int64_t j = 0; j < padded; j += kLanes) a *= one - load_lanes(row_weights + j) * weight;
    }
    const Lanes all = (a * b) * (c * d);
    return (all[0] * all[1]) * (all[2] * all[3]);
}

// The weights of the row's beliefs, padded with zeros; returns their number.
static int64_t load_row_weights(const BeliefsView& beliefs, CountScratch& scratch, int64_t row) {
    const int64_t first = beliefs.indptr[row];
    const int64_t count = beliefs.indptr[row + 1] - first;
    const int64_t padded = (count + kLanes - 1) / kLanes * kLanes;
    scratch.row_weights.reserve(padded);
    for (int64_t i = 0; i < padded; ++i) scratch.row_weights.data[i] = i < count ? beliefs.weights[first + i] : 0.0;
    return padded;
}

static void count_denominators(const CountArgs& args, CountScratch& scratch, int64_t num_weights, int64_t triples) {
    const BeliefsView& beliefs = args.beliefs;
    for (int64_t i = 0; i < triples; ++i) {
        const Edge edge = scratch.triples.data[i];
        const int64_t begin = beliefs.indptr[edge.neighbor];
        const double product = product_of_all(scratch.row_weights.data, num_weights, beliefs.weights + begin,
                                              beliefs.indptr[edge.neighbor + 1] - begin);
        scratch.den.data[edge.relation] += fixed_point(1.0 - product, args.scale);
    }
}

// Collects the triples among the edges [begin, end) and returns their number. Half of the edges are inverses of
// triples, in no order: later loops need not ask.
static int64_t collect_triples(const CountArgs& args, CountScratch& scratch, int64_t begin, int64_t end) {
    scratch.triples.reserve(end - begin + 1);
    int64_t triples = 0;
    for (int64_t j = begin; j < end; ++j) {
        prefetch_beliefs(args.source, args.beliefs, j);
        scratch.triples.data[triples] = args.source.edges[j];
        triples += args.source.edges[j].relation < args.num_source_relations;
    }
    return triples;
}

// Replaces the relations of the hits by columns, and sets the `width` products of every column to 1.
static void number_columns(CountScratch& scratch, int64_t width) {
    Hit* hits = scratch.neighborhood.hits.data;
    for (int64_t i = 0; i < scratch.neighborhood.num_hits; ++i) {
        hits[i].relation = number(scratch.columns, hits[i].relation);
    }
    const int64_t cells = width * scratch.columns.size;
    scratch.products.reserve(cells);
    for (int64_t i = 0; i < cells; ++i) scratch.products.data[i] = 1.0;
}

// Calls visit(weight, place, column) for every hit of every belief of the row, `weight` being that of the belief
// and `column` the products of the hit's r'.
template <typename Visit>
static inline void visit_hits(const CountArgs& args, CountScratch& scratch, int64_t row, int64_t width, Visit&& visit) {
    const NeighborhoodScratch& neighborhood = scratch.neighborhood;
    for (int64_t b = 0; b < neighborhood.num_searched; ++b) {
        const double weight = args.beliefs.weights[args.beliefs.indptr[row] + b];
        for (const Hit& hit : hits_of(neighborhood, b)) {
            visit(weight, hit.place, scratch.products.data + hit.relation * width);
        }
    }
}

// Many triples: the nodes of a target are in a list, and their key is the number of the triple.
static void file_in_lists(const CountArgs& args, CountScratch& scratch, int64_t triples) {
    for (int64_t i = 0; i < triples; ++i) {
        file_beliefs(scratch.neighborhood, args.beliefs, scratch.triples.data[i].neighbor, static_cast<uint32_t>(i));
    }
}

static void multiply_lists(const CountArgs& args, CountScratch& scratch, int64_t row, int64_t triples) {
    const NeighborhoodScratch& neighborhood = scratch.neighborhood;
    visit_hits(args, scratch, row, triples, [&](double weight, uint32_t place, double* column) {
        for (; place > 0; place = neighborhood.heads.data[block_before(place)].earlier) {
            for (uint32_t n = block_before(place) * kBlock; n < place; ++n) {
                const Node& node = neighborhood.nodes.data[n];
                column[node.key] *= 1.0 - weight * static_cast<double>(node.weight);
            }
        }
    });
}

// Few triples: every target has a block of weights with a lane for each of them, and a hit is one product of short
// vectors. The place of a target is that of its block, in units of kBlock whatever the length of the blocks.
constexpr int64_t kMostLanes = 16;

static void file_in_lanes(const CountArgs& args, CountScratch& scratch, int64_t triples, int64_t width) {
    NeighborhoodScratch& neighborhood = scratch.neighborhood;
    uint32_t* __restrict place_of = neighborhood.place_of.data;
    BlockHead* __restrict heads = neighborhood.heads.data;
    const int64_t stride = width / kBlock;
    uint32_t top = neighborhood.num_places;
    for (int64_t lane = 0; lane < triples; ++lane) {
        float* __restrict lanes = scratch.lane_weights.data + lane;
        const int32_t neighbor = scratch.triples.data[lane].neighbor;
        for (int64_t i = args.beliefs.indptr[neighbor]; i < args.beliefs.indptr[neighbor + 1]; ++i) {
            const auto target = static_cast<uint32_t>(args.beliefs.targets[i]);
            const uint32_t known = place_of[target];
            const uint32_t is_new = 0u - (known == 0);  // all bits set, or none: a choice would be a jump
            const uint32_t place = known | (top & is_new);
            heads[top / kBlock] = BlockHead{0, target};
            top += kBlock & is_new;
            lanes[place * stride] = args.beliefs.weights[i];
            place_of[target] = place;
        }
    }
    neighborhood.num_places = top;
}

template <int64_t kWidth>
static void multiply_lanes(const CountArgs& args, CountScratch& scratch, int64_t row) {
    const float* weights = scratch.lane_weights.data;
    visit_hits(args, scratch, row, kWidth, [&](double weight, uint32_t place, double* column) {
        for (int64_t lane = 0; lane < kWidth; lane += kLanes) {
            Quad lanes;
            __builtin_memcpy(&lanes, weights + place * (kWidth / kBlock) + lane, sizeof lanes);
            const Lanes product = load_lanes(column + lane) * (1.0 - weight * __builtin_convertvector(lanes, Lanes));
            __builtin_memcpy(column + lane, &product, sizeof product);
        }
    });
}

static void multiply_lanes(const CountArgs& args, CountScratch& scratch, int64_t row, int64_t width) {
    if (width == 4) return multiply_lanes<4>(args, scratch, row);
    if (width == 8) return multiply_lanes<8>(args, scratch, row);
    if (width == 12) return multiply_lanes<12>(args, scratch, row);
    multiply_lanes<16>(args, scratch, row);
}

static void add_products(const CountArgs& args, CountScratch& scratch, int64_t triples, int64_t width) {
    KeyCounter& num = scratch.num;
    for (int64_t column = 0; column < scratch.columns.size; ++column) {
        const int32_t target_relation = scratch.columns.values.data[column];
        const double* products = scratch.products.data + column * width;
        for (int64_t i = 0; i < triples; ++i) {
            num.pending[num.num_pending] = KeyCount{relation_key(scratch.triples.data[i].relation, target_relation),
                                                    fixed_point(1.0 - products[i], args.scale)};
            num.num_pending += products[i] < 1.0;
            if (num.num_pending == KeyCounter::kPending) num.flush();
        }
    }
}

// Multiplies all the ways in which one statement is matched by one r' into their product, and adds up the products.
static void count_numerators(const CountArgs& args, CountScratch& scratch, int64_t row, int64_t triples) {
    const bool in_lanes = triples <= kMostLanes;
    const int64_t width = in_lanes ? (triples + kLanes - 1) / kLanes * kLanes : triples;
    NeighborhoodScratch& neighborhood = scratch.neighborhood;
    const Edge* edges = scratch.triples.data;
    const int64_t beliefs = count_beliefs(args.beliefs, edges, edges + triples);
    neighborhood.reserve_nodes(beliefs);
    if (in_lanes) {
        scratch.reserve_lanes((beliefs + 1) * width);
        file_in_lanes(args, scratch, triples, width);
    } else {
        file_in_lists(args, scratch, triples);
    }
    const int64_t first = args.beliefs.indptr[row];
    find_hits(args.target, neighborhood, args.beliefs.targets + first, args.beliefs.indptr[row + 1] - first);
    number_columns(scratch, width);
    if (in_lanes) {
        multiply_lanes(args, scratch, row, width);
        const auto used = static_cast<size_t>(neighborhood.num_places / kBlock * width);
        __builtin_memset(scratch.lane_weights.data, 0, used * sizeof(float));
    } else {
        multiply_lists(args, scratch, row, triples);
    }
    add_products(args, scratch, triples, width);
    forget_numbers(scratch.columns);
    forget_row(neighborhood);
}

void count_row(const CountArgs& args, CountScratch& scratch, int64_t row) {
    const int64_t next = args.beliefs.indptr[row + 1];
    if (row + 1 < args.rows.end) {
        prefetch_edges(args.target, args.beliefs.targets + next, args.beliefs.indptr[row + 2] - next);
    }
    if (next == args.beliefs.indptr[row]) return;
    const int64_t num_weights = load_row_weights(args.beliefs, scratch, row);
    // Hubs come in blocks of edges, so that the products stay small.
    constexpr int64_t kMostCells = int64_t{1} << 20;
    const int64_t fitting = kMostCells / (2 * static_cast<int64_t>(args.num_target_relations));
    const int64_t block = fitting > 16 ? fitting : 16;
    const int64_t end = args.source.indptr[row + 1];
    for (int64_t begin = args.source.indptr[row]; begin < end; begin += block) {
        const int64_t triples = collect_triples(args, scratch, begin, begin + block < end ? begin + block : end);
        if (triples == 0) continue;
        count_denominators(args, scratch, num_weights, triples);
        count_numerators(args, scratch, row, triples);
    }
}
