static inline const float* row_of_x(const ReflectionLayer& layer, int64_t entity) {
    return layer.z + entity * layer.width + layer.source;
}

// The row of entity i in an array of the wanted rows, or -1.
static inline int64_t place_of(const int32_t* position, int64_t entity) {
    return position == nullptr ? entity : position[entity];
}

constexpr int64_t kAhead = 4;  // edges: about as many rows are on their way from memory at a time

static inline void activate(Activation activation, float* row, int64_t width) {
    for (int64_t c = 0; c < width; c += 8) {
        const int64_t count = width - c < 8 ? width - c : 8;
        const Eight x = load_some(row + c, count);
        const Eight kept = reinterpret_cast<Eight>(~(x <= 0.0f) & reinterpret_cast<EightBits>(x));  // NaN stays
        store_some(row + c, activation == Activation::kTanh ? tanh_eight(x) : kept, count);
    }
}

// Logits of the edges of row i in `weights`, and their dots; `highest` logit of every head.
static inline void logits_of_row(const ReflectionForward& args, int64_t first, int64_t last, float* highest) {
    const ReflectionLayer& layer = args.layer;
    const int64_t heads = layer.heads;
    for (int64_t h = 0; h < heads; ++h) highest[h] = -__builtin_inff();
    for (int64_t e = first; e < last; ++e) {
        if (e + kAhead < layer.graph.num_edges) {
            prefetch_row(row_of_x(layer, layer.graph.columns[e + kAhead]), heads * layer.dim);
            prefetch_row(layer.unit + layer.graph.sets[e + kAhead] * layer.dim, layer.dim);
        }
        const float* x = row_of_x(layer, layer.graph.columns[e]);
        const int64_t set = layer.graph.sets[e];
        for (int64_t h = 0; h < heads; ++h) {
            const auto [dot, near] =
                two_products(x + h * layer.dim, layer.unit + set * layer.dim, layer.k_y + h * layer.dim, layer.dim);
            const float logit = near - 2.0f * dot * layer.on_y[set * heads + h] + args.on_unit[set * heads + h];
            layer.dots[e * heads + h] = dot;
            layer.weights[e * heads + h] = logit;
            highest[h] = logit > highest[h] ? logit : highest[h];
        }
    }
}

// Logits [edges, heads] become weights that sum to one for every head.
static inline void softmax_of_row(float* weights, int64_t edges, int64_t heads, const float* highest) {
    for (int64_t e = 0; e < edges; ++e) {
        for (int64_t h = 0; h < heads; ++h) weights[e * heads + h] -= highest[h];
    }
    for (int64_t c = 0; c < edges * heads; c += 8) {
        const int64_t count = edges * heads - c < 8 ? edges * heads - c : 8;
        store_some(weights + c, exp_eight(load_some(weights + c, count)), count);
    }
    float totals[kMostHeads] = {};
    for (int64_t e = 0; e < edges; ++e) {
        for (int64_t h = 0; h < heads; ++h) totals[h] += weights[e * heads + h];
    }
    for (int64_t e = 0; e < edges; ++e) {
        for (int64_t h = 0; h < heads; ++h) weights[e * heads + h] /= totals[h];
    }
}

void reflect_forward_row(const ReflectionForward& args, int64_t i) {
    const ReflectionLayer& layer = args.layer;
    if (place_of(layer.position, i) < 0) return;
    const int64_t first = layer.graph.indptr[i];
    const int64_t last = layer.graph.indptr[i + 1];
    const int64_t heads = layer.heads;
    float highest[kMostHeads];
    logits_of_row(args, first, last, highest);
    softmax_of_row(layer.weights + first * heads, last - first, heads, highest);
    float* out = layer.z + i * layer.width + args.target;
    for (int64_t c = 0; c < heads * layer.dim; ++c) out[c] = 0.0f;
    Term terms[kTerms];
    for (int64_t begin = first; begin < last; begin += kTerms) {
        const int64_t count = last - begin < kTerms ? last - begin : kTerms;
        for (int64_t h = 0; h < heads; ++h) {
            for (int64_t t = 0; t < count; ++t) {
                const int64_t e = begin + t;
                const float a = layer.weights[e * heads + h];
                terms[t] = {row_of_x(layer, layer.graph.columns[e]) + h * layer.dim,
                            layer.unit + layer.graph.sets[e] * layer.dim, a, -2.0f * a * layer.dots[e * heads + h]};
            }
            add_terms<true>(out + h * layer.dim, terms, count, layer.dim);
        }
    }
    activate(layer.activation, out, heads * layer.dim);
}

// Adds what edge e = (i, j) gives to the gradient of its rho: to d_on_y and d_on_unit at once, to d_unit by the terms,
// one for every head; `grad` is the row of i.
static inline void terms_of_set(const ReflectionBackward& args, int64_t e, const float* grad, float* d_on_y,
                                float* d_on_unit, Term* terms) {
    const ReflectionLayer& layer = args.layer;
    const float* x = row_of_x(layer, layer.graph.columns[e]);
    for (int64_t h = 0; h < layer.heads; ++h) {
        const int64_t at = e * layer.heads + h;
        d_on_unit[h] += args.d_logits[at];
        d_on_y[h] -= 2.0f * layer.dots[at] * args.d_logits[at];
        terms[h] = {grad + h * layer.dim, x + h * layer.dim, -2.0f * layer.weights[at] * layer.dots[at],
                    args.d_dots[at]};
    }
}

// Adds the edges [first, last) of a row to the sums of the frequent sets.
static inline void add_to_frequent_sets(const ReflectionBackward& args, int64_t first, int64_t last, const float* grad,
                                        float* sums) {
    const ReflectionLayer& layer = args.layer;
    Term terms[kMostHeads];
    for (int64_t e = first; e < last; ++e) {
        const int64_t slot = args.sums.slots[layer.graph.sets[e]];
        if (slot < 0) continue;
        float* d_unit = sums + slot * (layer.dim + 2 * layer.heads);
        float* d_on_y = d_unit + layer.dim;
        terms_of_set(args, e, grad, d_on_y, d_on_y + layer.heads, terms);
        add_terms<true>(d_unit, terms, layer.heads, layer.dim);
    }
}

// Gradients of the logits and of the dots of the edges of row i; adds to the sums of the frequent sets.
void reflect_backward_edges_row(const ReflectionBackward& args, int64_t i, float* sums) {
    const ReflectionLayer& layer = args.layer;
    const int64_t place = place_of(layer.position, i);
    if (place < 0) return;
    const int64_t first = layer.graph.indptr[i];
    const int64_t last = layer.graph.indptr[i + 1];
    const int64_t heads = layer.heads;
    const float* grad = args.grad + place * heads * layer.dim;
    float means[kMostHeads] = {};
    for (int64_t e = first; e < last; ++e) {
        if (e + kAhead < layer.graph.num_edges) {
            prefetch_row(row_of_x(layer, layer.graph.columns[e + kAhead]), heads * layer.dim);
            prefetch_row(layer.unit + layer.graph.sets[e + kAhead] * layer.dim, layer.dim);
        }
        const float* x = row_of_x(layer, layer.graph.columns[e]);
        const float* rho = layer.unit + layer.graph.sets[e] * layer.dim;
        for (int64_t h = 0; h < heads; ++h) {
            const auto [along, near] = two_products(grad + h * layer.dim, rho, x + h * layer.dim, layer.dim);
            const float d_weight = near - 2.0f * layer.dots[e * heads + h] * along;
            args.d_logits[e * heads + h] = d_weight;
            args.d_dots[e * heads + h] = along;
            means[h] += layer.weights[e * heads + h] * d_weight;
        }
    }
    for (int64_t e = first; e < last; ++e) {
        for (int64_t h = 0; h < heads; ++h) {
            const int64_t at = e * heads + h;
            const float on_y = layer.on_y[layer.graph.sets[e] * heads + h];
            const float d_logit = layer.weights[at] * (args.d_logits[at] - means[h]);
            args.d_logits[at] = d_logit;
            args.d_dots[at] = -2.0f * (layer.weights[at] * args.d_dots[at] + on_y * d_logit);
        }
    }
    add_to_frequent_sets(args, first, last, grad, sums);
}

// What z receives besides, as the beginning of the gradient of x_j.
static inline void begin_with_outer(const ReflectionBackward& args, int64_t j, float* out, int64_t width) {
    const int64_t place = place_of(args.outer_position, j);
    const float* outer = args.outer + place * args.outer_width + args.layer.source;
    for (int64_t c = 0; c < width; ++c) out[c] = place < 0 ? 0.0f : outer[c];
}

static inline void before_activation(Activation activation, float* grad, const float* value, int64_t width) {
    for (int64_t c = 0; c < width; c += 8) {
        const int64_t count = width - c < 8 ? width - c : 8;
        const Eight g = load_some(grad + c, count);
        const Eight y = load_some(value + c, count);
        const Eight kept = reinterpret_cast<Eight>(~(y <= 0.0f) & reinterpret_cast<EightBits>(g));
        store_some(grad + c, activation == Activation::kTanh ? g * (1.0f - y * y) : kept, count);
    }
}

// The gradient of x_j, over the edges that lead to j.
void reflect_backward_entity_row(const ReflectionBackward& args, int64_t j) {
    const ReflectionLayer& layer = args.layer;
    const ReflectionGraph& graph = layer.graph;
    const int64_t heads = layer.heads;
    const int64_t width = heads * layer.dim;
    float* out = args.d_x + j * width;
    begin_with_outer(args, j, out, width);
    float* d_near = args.d_near + j * heads;
    for (int64_t h = 0; h < heads; ++h) d_near[h] = 0.0f;
    int64_t wanted[kTerms];
    Term terms[kTerms];
    for (int64_t own = graph.indptr[j]; own < graph.indptr[j + 1];) {
        int64_t count = 0;
        for (; own < graph.indptr[j + 1] && count < kTerms; ++own) {
            if (own + kAhead < graph.num_edges) {
                const int64_t ahead = place_of(layer.position, graph.columns[own + kAhead]);
                if (ahead >= 0) prefetch_row(args.grad + ahead * width, width);
            }
            wanted[count] = own;
            count += place_of(layer.position, graph.columns[own]) >= 0;
        }
        for (int64_t h = 0; h < heads; ++h) {
            for (int64_t t = 0; t < count; ++t) {
                const int64_t e = graph.reverse[wanted[t]];
                const int64_t place = place_of(layer.position, graph.columns[wanted[t]]);
                d_near[h] += args.d_logits[e * heads + h];
                terms[t] = {args.grad + place * width + h * layer.dim, layer.unit + graph.sets[e] * layer.dim,
                            layer.weights[e * heads + h], args.d_dots[e * heads + h]};
            }
            add_terms<true>(out + h * layer.dim, terms, count, layer.dim);
        }
    }
    for (int64_t h = 0; h < heads; ++h) {
        const Term through{layer.k_y + h * layer.dim, nullptr, d_near[h], 0.0f};
        add_terms<false>(out + h * layer.dim, &through, 1, layer.dim);
    }
    if (layer.activation != Activation::kNone) before_activation(layer.activation, out, row_of_x(layer, j), width);
}

// Adds the edges of a rare set.
static inline void add_rare_set(const ReflectionBackward& args, int64_t set, float* d_unit, float* d_on_y,
                                float* d_on_unit) {
    const ReflectionLayer& layer = args.layer;
    const ReflectionGraph& graph = layer.graph;
    const int64_t width = layer.heads * layer.dim;
    Term terms[kMostHeads];
    for (int64_t at = graph.set_indptr[set]; at < graph.set_indptr[set + 1]; ++at) {
        if (at + kAhead < graph.num_edges) {
            const int64_t ahead = graph.set_edges[at + kAhead];
            const int64_t place = place_of(layer.position, graph.rows[ahead]);
            if (place >= 0) {
                prefetch_row(args.grad + place * width, width);
                prefetch_row(row_of_x(layer, graph.columns[ahead]), width);
            }
        }
        const int64_t e = graph.set_edges[at];
        const int64_t place = place_of(layer.position, graph.rows[e]);
        if (place < 0) continue;
        terms_of_set(args, e, args.grad + place * width, d_on_y, d_on_unit, terms);
        add_terms<true>(d_unit, terms, layer.heads, layer.dim);
    }
}

// The gradient of rho of one set.
void reflect_backward_set_row(const ReflectionBackward& args, int64_t set) {
    const ReflectionLayer& layer = args.layer;
    const int64_t heads = layer.heads;
    const int64_t size = layer.dim + 2 * heads;
    float* out = args.d_unit + set * layer.dim;
    float* d_on_y = args.d_on_y + set * heads;
    float* d_on_unit = args.d_on_unit + set * heads;
    for (int64_t h = 0; h < heads; ++h) d_on_y[h] = d_on_unit[h] = 0.0f;
    const int64_t slot = args.sums.slots[set];
    if (slot < 0) {
        add_rare_set(args, set, out, d_on_y, d_on_unit);
    } else {
        for (int64_t slice = 0; slice < args.sums.slices; ++slice) {
            const float* sums = args.sums.values + (slice * args.sums.count + slot) * size;
            for (int64_t c = 0; c < layer.dim; ++c) out[c] += sums[c];
            for (int64_t h = 0; h < heads; ++h) {
                d_on_y[h] += sums[layer.dim + h];
                d_on_unit[h] += sums[layer.dim + heads + h];
            }
        }
    }
    for (int64_t h = 0; h < heads; ++h) {
        const Term through{layer.k_y + h * layer.dim, args.k_unit + h * layer.dim, d_on_y[h], d_on_unit[h]};
        add_terms<true>(out, &through, 1, layer.dim);
    }
}

// sums[heads, dim] = sum over the rows j of [begin, end) of d_near[j] x_j
void reflect_backward_attention(const ReflectionBackward& args, int64_t begin, int64_t end, float* sums) {
    const ReflectionLayer& layer = args.layer;
    Term terms[kTerms];
    for (int64_t c = 0; c < layer.heads * layer.dim; ++c) sums[c] = 0.0f;
    for (int64_t row = begin; row < end; row += kTerms) {
        const int64_t count = end - row < kTerms ? end - row : kTerms;
        for (int64_t h = 0; h < layer.heads; ++h) {
            for (int64_t t = 0; t < count; ++t) {
                terms[t] = {row_of_x(layer, row + t) + h * layer.dim, nullptr, args.d_near[(row + t) * layer.heads + h],
                            0.0f};
            }
            add_terms<false>(sums + h * layer.dim, terms, count, layer.dim);
        }
    }
}
