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

static void count_denominators(const CountArgs& args, CountScratch& scratch, int64_t row) {
    const BeliefsView& beliefs = args.beliefs;
    const int64_t first = beliefs.indptr[row];
    const int64_t count = beliefs.indptr[row + 1] - first;
    const int64_t padded = (count + kLanes - 1) / kLanes * kLanes;
    scratch.row_weights.reserve(padded);
    double* row_weights = scratch.row_weights.data;
    for (int64_t i = 0; i < padded; ++i) row_weights[i] = i < count ? beliefs.weights[first + i] : 0.0;
    for (int64_t j = args.source.indptr[row]; j < args.source.indptr[row + 1]; ++j) {
        prefetch_beliefs(args.source, beliefs, j);
        const Edge edge = args.source.edges[j];
        if (edge.relation >= args.num_source_relations) continue;
        const int64_t begin = beliefs.indptr[edge.neighbor];
        const double product =
            product_of_all(row_weights, padded, beliefs.weights + begin, beliefs.indptr[edge.neighbor + 1] - begin);
        scratch.den.data[edge.relation] += fixed_point(1.0 - product, args.scale);
    }
}

// Files the triples among the edges [begin, end), numbered from 0 (the nodes' label), and returns their number.
static int32_t file_triples(const CountArgs& args, CountScratch& scratch, int64_t begin, int64_t end) {
    const Edge* edges = args.source.edges;
    scratch.neighborhood.reserve_nodes(count_beliefs(args.beliefs, edges + begin, edges + end));
    scratch.relations.reserve(end - begin);
    int32_t triples = 0;
    for (int64_t j = begin; j < end; ++j) {
        if (edges[j].relation >= args.num_source_relations) continue;
        scratch.relations.data[triples] = edges[j].relation;
        file_beliefs(scratch.neighborhood, args.beliefs, edges[j].neighbor, static_cast<uint32_t>(triples++));
    }
    return triples;
}

// Replaces the relations of the hits by columns, and sets one product per (column, triple) to 1.
static void number_columns(CountScratch& scratch, int64_t triples) {
    int32_t* relations = scratch.neighborhood.hit_relations.data;
    for (int64_t i = 0; i < scratch.neighborhood.num_hits; ++i) {
        relations[i] = number(scratch.columns, relations[i]);
    }
    const int64_t cells = triples * scratch.columns.size;
    scratch.products.reserve(cells);
    for (int64_t i = 0; i < cells; ++i) scratch.products.data[i] = 1.0;
}

// Multiplies all the ways in which one statement is matched by one r' into their product.
static void multiply_statements(const CountArgs& args, CountScratch& scratch, int64_t row, int64_t triples) {
    const NeighborhoodScratch& neighborhood = scratch.neighborhood;
    double* products = scratch.products.data;
    for (int64_t b = 0; b < neighborhood.num_searched; ++b) {
        const double weight = args.beliefs.weights[args.beliefs.indptr[row] + b];
        const HitRange hits = hits_of(neighborhood, b);
        for (int64_t i = hits.begin; i < hits.end; ++i) {
            double* column = products + neighborhood.hit_relations.data[i] * triples;
            for (uint32_t place = neighborhood.hit_places.data[i]; place > 0;
                 place = neighborhood.heads.data[block_before(place)].earlier) {
                for (uint32_t n = block_before(place) * kBlock; n < place; ++n) {
                    const Node& node = neighborhood.nodes.data[n];
                    column[node.key] *= 1.0 - weight * static_cast<double>(node.weight);
                }
            }
        }
    }
}

static void add_products(const CountArgs& args, CountScratch& scratch, int64_t triples) {
    KeyCounter& num = scratch.num;
    const double* product = scratch.products.data;
    for (int64_t column = 0; column < scratch.columns.size; ++column) {
        const int32_t target_relation = scratch.columns.values.data[column];
        for (int64_t i = 0; i < triples; ++i, ++product) {
            num.pending[num.num_pending] = KeyCount{relation_key(scratch.relations.data[i], target_relation),
                                                    fixed_point(1.0 - *product, args.scale)};
            num.num_pending += *product < 1.0;
            if (num.num_pending == KeyCounter::kPending) num.flush();
        }
    }
}

void count_row(const CountArgs& args, CountScratch& scratch, int64_t row) {
    const int64_t first = args.beliefs.indptr[row];
    const int64_t count = args.beliefs.indptr[row + 1] - first;
    if (row + 1 < args.rows.end) {
        const int64_t next = args.beliefs.indptr[row + 1];
        prefetch_edges(args.target, args.beliefs.targets + next, args.beliefs.indptr[row + 2] - next);
    }
    if (count == 0) return;
    count_denominators(args, scratch, row);
    // Hubs come in blocks of edges, so that the products stay small.
    constexpr int64_t kMostCells = int64_t{1} << 20;
    const int64_t fitting = kMostCells / (2 * static_cast<int64_t>(args.num_target_relations));
    const int64_t block = fitting > 16 ? fitting : 16;
    const int64_t end = args.source.indptr[row + 1];
    for (int64_t begin = args.source.indptr[row]; begin < end; begin += block) {
        const int32_t triples = file_triples(args, scratch, begin, begin + block < end ? begin + block : end);
        if (triples > 0) {
            find_hits(args.target, scratch.neighborhood, args.beliefs.targets + first, count);
            number_columns(scratch, triples);
            multiply_statements(args, scratch, row, triples);
            add_products(args, scratch, triples);
        }
        forget_numbers(scratch.columns);
        forget_row(scratch.neighborhood);
    }
}
