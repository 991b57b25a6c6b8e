#include "check.cuh"
#include "launch.cuh"
#include "relation_counts.h"
#include "search.cuh"
#include "warp.cuh"

namespace stea::cuda {
namespace {

constexpr int64_t kEdgesPerWarp = 32;
constexpr int32_t kNoRelation = 0x7fffffff;
constexpr CountKey kFreeKey = 0;
constexpr int64_t kMostProbes = 128;  // long before that, the table is too full

// The beliefs about the two ends of a statement, as pairs (x', y') numbered row by row.
struct BeliefPairs {
    const BeliefsView& beliefs;
    int64_t head_begin;
    int64_t tail_begin;
    int64_t tails;
    int64_t size;

    __device__ BeliefPairs(const BeliefsView& all, int64_t head, int32_t tail)
        : beliefs(all),
          head_begin(all.indptr[head]),
          tail_begin(all.indptr[tail]),
          tails(all.indptr[tail + 1] - all.indptr[tail]),
          size(tails * (all.indptr[head + 1] - all.indptr[head])) {}

    __device__ int64_t head(int64_t pair) const { return head_begin + pair / tails; }
    __device__ int64_t tail(int64_t pair) const { return tail_begin + pair % tails; }

    // 1 - w(x, x') w(y, y')
    __device__ double factor(int64_t pair) const {
        const double product =
            static_cast<double>(beliefs.weights[head(pair)]) * static_cast<double>(beliefs.weights[tail(pair)]);
        return 1.0 - product;
    }
};

// 1 - product in units of 1 / scale.
__device__ CountSum rounded_term(double product, double scale) {
    return static_cast<CountSum>((1.0 - product) * scale + 0.5);
}

__device__ void add_to_table(const CountArgs& args, CountKey key, CountSum term) {
    const int64_t mask = args.capacity - 1;
    int64_t at = static_cast<int64_t>((key * 0x9E3779B97F4A7C15ull) >> 32) & mask;
    for (int64_t probe = 0; probe < kMostProbes && probe < args.capacity; ++probe) {
        const CountKey before = atomicCAS(&args.keys[at], kFreeKey, key);
        if (before == kFreeKey || before == key) {
            atomicAdd(&args.num[at], term);
            return;
        }
        at = (at + 1) & mask;
    }
    atomicExch(args.overflow, 1);
}

// The smallest r' from `least` on that leads from some x' to some y' of this lane's pairs, and the product of its
// factors over these pairs.
struct NextRelation {
    int32_t relation = kNoRelation;
    double product = 1.0;

    __device__ void look(const CountArgs& args, const BeliefPairs& pairs, int32_t least) {
        for (int64_t pair = lane_id(); pair < pairs.size; pair += kWarp) {
            const int32_t x = args.beliefs.targets[pairs.head(pair)], y = args.beliefs.targets[pairs.tail(pair)];
            const Edge* end = args.target.edges + args.target.indptr[x + 1];
            const Edge* edge = first_edge(args.target.edges + args.target.indptr[x], end, y, least);
            if (edge == end || edge->neighbor != y || edge->relation > relation) continue;
            product = edge->relation < relation ? pairs.factor(pair) : product * pairs.factor(pair);
            relation = edge->relation;
        }
    }
};

__device__ void count_statement(const CountArgs& args, int64_t head, const Edge& statement) {
    const BeliefPairs pairs(args.beliefs, head, statement.neighbor);
    if (pairs.size == 0) return;  // the same for all lanes
    double unmatched = 1.0;
    for (int64_t pair = lane_id(); pair < pairs.size; pair += kWarp) unmatched *= pairs.factor(pair);
    unmatched = warp_product(unmatched);
    if (lane_id() == 0) atomicAdd(&args.den[statement.relation], rounded_term(unmatched, args.scale));
    for (int32_t least = 0;;) {
        NextRelation next;
        next.look(args, pairs, least);
        const int32_t relation = warp_min(next.relation);
        if (relation == kNoRelation) return;
        const double product = warp_product(next.relation == relation ? next.product : 1.0);
        const CountSum term = rounded_term(product, args.scale);
        if (lane_id() == 0 && term > 0) {
            const CountKey row = static_cast<CountKey>(statement.relation) * 2u * args.num_target_relations;
            add_to_table(args, row + relation + 1, term);
        }
        least = relation + 1;
    }
}

// A warp per run of edges; those of the inverse closure are no statements.
__global__ void count_statements(CountArgs args) {
    const int64_t first = args.edges.begin + warp_in_grid() * kEdgesPerWarp;
    if (first >= args.edges.end) return;
    const int64_t last = first + kEdgesPerWarp < args.edges.end ? first + kEdgesPerWarp : args.edges.end;
    int64_t head = row_of_edge(args.source.indptr, args.source.num_entities, first);
    for (int64_t j = first; j < last; ++j) {
        while (args.source.indptr[head + 1] <= j) ++head;
        const Edge statement = args.source.edges[j];
        if (statement.relation < args.num_source_relations) count_statement(args, head, statement);
    }
}

}  // namespace

void run_relation_counts(const CountArgs& args, int block_size, Stream stream) {
    const int64_t per_block = kEdgesPerWarp * (block_size / kWarp);
    const int64_t blocks = (args.edges.end - args.edges.begin + per_block - 1) / per_block;
    if (blocks == 0) return;
    STEA_LAUNCH(count_statements, static_cast<unsigned>(blocks), block_size, 0, as_stream(stream), args);
    check_launch("relation_counts: count_statements");
}

}  // namespace stea::cuda
