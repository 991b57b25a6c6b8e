static inline int64_t fixed_point(double value, double scale) { return static_cast<int64_t>(value * scale + 0.5); }

constexpr int64_t kLanes = 4;

// prod over (x', y') of (1 - w(x, x') w(y, y')), in lanes so that every tier multiplies in the same order.
static double product_of_all(const double* row_weights, int64_t padded, const float* weights, int64_t count) {
    double lanes[kLanes] = {1.0, 1.0, 1.0, 1.0};
    for (int64_t i = 0; i < count; ++i) {
        const double weight = weights[i];
        for (int64_t j = 0; j < padded; j += kLanes) {
            for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] *= 1.0 - row_weights[j + lane] * weight;
        }
    }
    return (lanes[0] * lanes[1]) * (lanes[2] * lanes[3]);
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
        file_beliefs(scratch.neighborhood, args.beliefs, edges[j].neighbor, triples++, 0);
    }
    return triples;
}

// Replaces the relations of the hits by columns, and sets one product per (column, triple) to 1.
static void number_columns(CountScratch& scratch, int64_t triples) {
    Edge* hits = scratch.neighborhood.hits.data;
    for (int64_t i = 0; i < scratch.neighborhood.num_hits; ++i) {
        hits[i].relation = number(scratch.columns, hits[i].relation);
    }
    const int64_t cells = triples * scratch.columns.size;
    scratch.products.reserve(cells);
    for (int64_t i = 0; i < cells; ++i) scratch.products.data[i] = 1.0;
}

// Multiplies all the ways in which one statement is matched by one r' into their product.
static void multiply_statements(const CountArgs& args, CountScratch& scratch, int64_t row, int64_t triples) {
    const NeighborhoodScratch& neighborhood = scratch.neighborhood;
    const Node* nodes = neighborhood.nodes.data;
    for (int64_t b = 0; b < neighborhood.num_searched; ++b) {
        const double weight = args.beliefs.weights[args.beliefs.indptr[row] + b];
        const HitRange hits = hits_of(neighborhood, b);
        for (int64_t i = hits.begin; i < hits.end; ++i) {
            const Edge hit = neighborhood.hits.data[i];
            const NodeList list = neighborhood.lists.data[hit.neighbor];
            double* column = scratch.products.data + hit.relation * triples;
            int32_t n = list.first;
            for (int32_t left = list.length; left > 0; --left, n = nodes[n].next) {
                column[nodes[n].label] *= 1.0 - weight * static_cast<double>(nodes[n].weight);
            }
        }
    }
}

static void add_products(const CountArgs& args, CountScratch& scratch, int64_t triples) {
    const int64_t width = 2 * static_cast<int64_t>(args.num_target_relations);
    KeyCounter& num = scratch.num;
    const double* product = scratch.products.data;
    for (int64_t column = 0; column < scratch.columns.size; ++column) {
        const int64_t target_relation = scratch.columns.values.data[column];
        for (int64_t i = 0; i < triples; ++i, ++product) {
            num.pending[num.num_pending] =
                KeyCount{scratch.relations.data[i] * width + target_relation, fixed_point(1.0 - *product, args.scale)};
            num.num_pending += *product < 1.0;
            if (num.num_pending == KeyCounter::kPending) num.flush();
        }
    }
}

void count_row(const CountArgs& args, CountScratch& scratch, int64_t row) {
    const int64_t first = args.beliefs.indptr[row];
    const int64_t count = args.beliefs.indptr[row + 1] - first;
    if (row + 1 < args.rows.end) prefetch_beliefs(args.source, args.beliefs, row + 1);
    if (count == 0) return;
    prefetch_edges(args.target, args.beliefs.targets + first, count);
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
