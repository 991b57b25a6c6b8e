// 2 q . z_j - norms[j] - centre[q] for eight entities, of which `count` are there.
static inline Eight values_at(const NegativeBlock& block, int64_t query, int64_t j, int64_t count) {
    const Eight products = load_some(block.products + query * block.stride + j, count);
    return 2.0f * products - load_some(block.norms + j, count) - block.centre[query];
}

static inline float value_again(const NegativeBlock& block, int64_t query, int64_t j) {
    const float again = product(block.queries + query * block.width, block.z + j * block.width, block.width);
    return 2.0f * again - block.norms[j] - block.centre[query];
}

static inline EightBits lanes_below(int64_t count) {
    EightBits mask;
    for (int32_t lane = 0; lane < 8; ++lane) mask[lane] = lane < count ? -1 : 0;
    return mask;
}

struct Moments {
    double total;
    double squares;
    float top;
};

// Adds the entities [begin, end).
static inline void add_moments(const NegativeBlock& block, int64_t query, int64_t begin, int64_t end,
                               Moments* moments) {
    constexpr int64_t kShort = 1024;  // entities between two additions in double precision
    for (int64_t start = begin; start < end; start += kShort) {
        const int64_t stop = end - start < kShort ? end : start + kShort;
        Eight sums = {};
        Eight squares = {};
        Eight tops = Eight{} + moments->top;
        for (int64_t j = start; j < stop; j += 8) {
            const int64_t count = stop - j < 8 ? stop - j : 8;
            Eight values = values_at(block, query, j, count);
            if (count < 8) values = reinterpret_cast<Eight>(lanes_below(count) & reinterpret_cast<EightBits>(values));
            sums += values;
            squares += values * values;
            if (count < 8) {  // the lanes beyond the end are 0, which may be above all that is there
                for (int64_t lane = 0; lane < count; ++lane) tops[0] = values[lane] > tops[0] ? values[lane] : tops[0];
            } else {
                tops = values > tops ? values : tops;
            }
        }
        moments->total += static_cast<double>(sum_of(sums));
        moments->squares += static_cast<double>(sum_of(squares));
        for (int lane = 0; lane < 8; ++lane) moments->top = tops[lane] > moments->top ? tops[lane] : moments->top;
    }
}

struct Softmax {
    float top;
    float steep;    // scale / deviation
    float least;    // value from which on an entity counts
    float hardest;  // value from which on it is a hit
};

// Collects the hits among the entities [begin, end), with their values, behind the `found` first; returns the sum over
// all others.
static inline double add_exponentials_and_hits(const NegativeBlock& block, int64_t query, int64_t begin, int64_t end,
                                               const Softmax& softmax, Negative* hits, int64_t* found) {
    Eight sums = {};
    for (int64_t j = begin; j < end; j += 8) {
        const int64_t count = end - j < 8 ? end - j : 8;
        const Eight values = values_at(block, query, j, count);
        EightBits counts = values >= softmax.least;
        if (count < 8) counts &= lanes_below(count);
        if (lanes_set(counts) == 0) continue;
        const EightBits is_hit = counts & (values >= softmax.hardest);
        const Eight parts = exp_eight((values - softmax.top) * softmax.steep);
        sums += reinterpret_cast<Eight>(counts & ~is_hit & reinterpret_cast<EightBits>(parts));
        for (uint32_t bits = lanes_set(is_hit); bits != 0; bits &= bits - 1) {
            const int lane = __builtin_ctz(bits);
            hits[(*found)++] = Negative{static_cast<int32_t>(j + lane), values[lane]};
        }
    }
    return static_cast<double>(sum_of(sums));
}

// The values of the hits become exponentials, of products taken again where these were rough; returns their sum.
static inline double exponentials_of_hits(const NegativeBlock& block, int64_t query, const Softmax& softmax,
                                          Negative* hits, int64_t found) {
    constexpr int64_t kHitsAhead = 2;
    double sum = 0.0;
    for (int64_t first = 0; first < found; first += 8) {
        Eight values = Eight{} + softmax.top;
        const int64_t count = found - first < 8 ? found - first : 8;
        for (int64_t lane = 0; lane < count; ++lane) {
            const int64_t at = first + lane;
            if (!block.rough) {
                values[lane] = hits[at].weight;
                continue;
            }
            if (at + kHitsAhead < found) {
                prefetch_row(block.z + hits[at + kHitsAhead].entity * block.width, block.width);
            }
            values[lane] = value_again(block, query, hits[at].entity);
        }
        const Eight parts = exp_eight((values - softmax.top) * softmax.steep);
        for (int64_t lane = 0; lane < count; ++lane) {
            hits[first + lane].weight = parts[lane];
            sum += static_cast<double>(parts[lane]);
        }
    }
    return sum;
}

// Fills the loss, the push and the pulled row of one query; returns the number of its hits, for which there is room for
// all entities.
int64_t negative_row(const NegativeBlock& block, int64_t query, Negative* hits) {
    const int32_t* ends = block.ends + 2 * query;
    const int64_t low = ends[0] < ends[1] ? ends[0] : ends[1];
    const int64_t high = ends[0] < ends[1] ? ends[1] : ends[0];
    const int64_t bounds[3][2] = {{0, low}, {low + 1, high}, {high + 1, block.num_entities}};
    const float own = -block.base[query] - block.centre[query];  // the value for which u = 0
    Moments moments{2.0 * static_cast<double>(own), 2.0 * static_cast<double>(own) * static_cast<double>(own), own};
    for (const auto& part : bounds) add_moments(block, query, part[0], part[1], &moments);
    const auto n = static_cast<double>(block.num_entities);
    const double mean = moments.total / n;
    const double steep = block.scale / std::sqrt(moments.squares / n - mean * mean);
    const auto least = [&](float cut) { return static_cast<float>(static_cast<double>(moments.top) - cut / steep); };
    const Softmax softmax{moments.top, static_cast<float>(steep), least(kLeast), least(block.cut)};
    const Eight ends_parts = exp_eight((Eight{} + own - softmax.top) * softmax.steep);
    double parts = 2.0 * static_cast<double>(ends_parts[0]);
    int64_t found = 0;
    for (const auto& part : bounds) {
        parts += add_exponentials_and_hits(block, query, part[0], part[1], softmax, hits, &found);
    }
    parts += exponentials_of_hits(block, query, softmax, hits, found);
    block.losses[query] = static_cast<float>(steep * (static_cast<double>(moments.top) - mean) + std::log(parts));
    const auto factor = static_cast<float>(steep / parts);
    float* pulled = block.pulled + query * block.width;
    for (int64_t c = 0; c < block.width; ++c) pulled[c] = 0.0f;
    float push = 0.0f;
    Term terms[kTerms];
    for (int64_t first = 0; first < found; first += kTerms) {
        const int64_t count = found - first < kTerms ? found - first : kTerms;
        for (int64_t t = 0; t < count; ++t) {
            hits[first + t].weight *= factor;
            push += hits[first + t].weight;
            terms[t] = {block.z + hits[first + t].entity * block.width, nullptr, hits[first + t].weight, 0.0f};
        }
        add_terms<false>(pulled, terms, count, block.width);
    }
    block.pushes[query] = push;
    return found;
}

// gradient[entity] += sum over its pushers of c (q - z)
void push_entity(const NegativeBlock& block, int64_t entity, const Pusher* pushers, int64_t count) {
    float* out = block.gradient + entity * block.width;
    Term terms[kTerms];
    float total = 0.0f;
    for (int64_t first = 0; first < count; first += kTerms) {
        const int64_t some = count - first < kTerms ? count - first : kTerms;
        for (int64_t t = 0; t < some; ++t) {
            const Pusher& pusher = pushers[first + t];
            total += pusher.weight;
            terms[t] = {block.queries + pusher.query * block.width, nullptr, pusher.weight, 0.0f};
        }
        add_terms<false>(out, terms, some, block.width);
    }
    const Term own{block.z + entity * block.width, nullptr, -total, 0.0f};
    add_terms<false>(out, &own, 1, block.width);
}
