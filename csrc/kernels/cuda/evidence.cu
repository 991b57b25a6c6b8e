#include "../evidence.h"
#include "check.cuh"
#include "evidence.h"
#include "launch.cuh"
#include "meetings.cuh"
#include "search.cuh"
#include "warp.cuh"

namespace stea::cuda {
namespace {

struct EdgeSpan {
    const Edge* begin;
    int32_t size;

    __device__ bool is_first_of_run(int32_t at) const {
        return at == 0 || begin[at - 1].neighbor != begin[at].neighbor;
    }
};

__device__ EdgeSpan edges_of(const GraphView& graph, int64_t entity) {
    const int64_t begin = graph.indptr[entity];
    return {graph.edges + begin, static_cast<int32_t>(graph.indptr[entity + 1] - begin)};
}

// The edges of both sides of a pair.
struct Sides {
    EdgeSpan source;
    EdgeSpan target;

    __device__ bool walks_source() const { return source.size <= target.size; }
    __device__ int32_t walked_edges() const { return source.size <= target.size ? source.size : target.size; }
};

__device__ Sides sides_of(const EvidenceArgs& args, int64_t pair) {
    const CandidateRows& rows = args.candidates;
    const int32_t candidate = pair < args.num_pairs ? rows.indices[pair] : -1;
    if (candidate < 0) return {{nullptr, 0}, {nullptr, 0}};
    const int64_t count = args.rows.end - args.rows.begin;
    const int64_t row = rows.indptr == nullptr ? pair / rows.k : row_of_edge(rows.indptr, count, pair);
    return {edges_of(args.source, args.rows.begin + row), edges_of(args.target, candidate)};
}

// What a warp keeps in shared memory.
struct Workspace {
    Sides sides[kWarp];
    Meeting ring[kQueuePlaces];
};

// -log((1 - x) (1 - y)) with x = strength.source * weight and y = strength.target * weight. Near 0 log1p keeps the
// digits; near 1 the fused product does.
__device__ float fact_evidence(const Strength& strength, float weight) {
    const float x = strength.source * weight, y = strength.target * weight;
    if (x < 0.5f && y < 0.5f) return -log1pf(-fmaf(-x, y, x + y));
    const float least = static_cast<float>(kMinFactor);
    return -logf(fmaxf(fmaf(-strength.source, weight, 1.0f), least) *
                 fmaxf(fmaf(-strength.target, weight, 1.0f), least));
}

// The share of a pair of neighbours, given the first edges to them on both sides.
__device__ float share_of(const EvidenceArgs& args, const Sides& sides, const Meeting& meeting) {
    const int32_t neighbor = sides.source.begin[meeting.edge].neighbor;
    const int32_t target_neighbor = sides.target.begin[meeting.target_edge].neighbor;
    TwoFloats sum;
    float strongest = 0.0f;
    for (int32_t i = meeting.edge; i < sides.source.size && sides.source.begin[i].neighbor == neighbor; ++i) {
        for (int32_t j = meeting.target_edge; j < sides.target.size; ++j) {
            const Edge target_fact = sides.target.begin[j];
            if (target_fact.neighbor != target_neighbor) break;
            const Strength strength =
                find_strength(args.strengths, sides.source.begin[i].relation, target_fact.relation);
            const float share = fact_evidence(strength, meeting.weight);
            sum.add(share);
            strongest = fmaxf(strongest, share);
        }
    }
    return args.witnesses == Witnesses::kNeighbor ? strongest : sum.rounded();
}

// Evidence and number of witnesses of the pair with the lane's number.
struct Tally {
    TwoFloats sum;
    int32_t count = 0;

    // Every lane evaluates one of the `size` meetings in front of the queue; each lane then adds what is its own.
    __device__ void evaluate(const EvidenceArgs& args, const Workspace& space, MeetingQueue& queue, int size) {
        const Meeting meeting = queue.take(size);
        const float share = lane_id() < size ? share_of(args, space.sides[meeting.pair], meeting) : 0.0f;
        for (int i = 0; i < size; ++i) {
            const int owner = __shfl_sync(kAllLanes, meeting.pair, i);
            const float added = __shfl_sync(kAllLanes, share, i);
            if (owner != lane_id() || !(added > 0.0f)) continue;
            sum.add(added);
            ++count;
        }
    }
};

// A walked edge, and what is left of the beliefs of its neighbour.
struct Walk {
    int pair = 0;
    int32_t edge = 0;
    bool by_source = false;
    int64_t belief = 0;
    int64_t end = 0;

    // The `item`-th of all walked edges of the warp's pairs; `ends` is where those of the lane's pair end in that line.
    __device__ void begin(const EvidenceArgs& args, const Workspace& space, int64_t item, int64_t ends) {
        for (int step = kWarp / 2; step > 0; step /= 2) {
            if (__shfl_sync(kAllLanes, ends, pair + step - 1) <= item) pair += step;
        }
        const int64_t before = __shfl_sync(kAllLanes, ends, pair == 0 ? 0 : pair - 1);
        const int64_t all = __shfl_sync(kAllLanes, ends, kWarp - 1);
        if (item >= all) return;
        const Sides& sides = space.sides[pair];
        edge = static_cast<int32_t>(item - (pair == 0 ? 0 : before));
        by_source = sides.walks_source();
        const EdgeSpan& walked = by_source ? sides.source : sides.target;
        if (!walked.is_first_of_run(edge)) return;
        const BeliefsView& beliefs = by_source ? args.beliefs : args.believers;
        const int32_t neighbor = walked.begin[edge].neighbor;
        belief = beliefs.indptr[neighbor];
        end = beliefs.indptr[neighbor + 1];
    }

    // Searches the next belief on the other side; true if it leads there.
    __device__ bool next(const EvidenceArgs& args, const Workspace& space, Meeting* meeting) {
        if (belief == end) return false;
        const BeliefsView& beliefs = by_source ? args.beliefs : args.believers;
        const EdgeSpan& other = by_source ? space.sides[pair].target : space.sides[pair].source;
        const int32_t wanted = beliefs.targets[belief];
        const int32_t place =
            static_cast<int32_t>(first_edge(other.begin, other.begin + other.size, wanted, 0) - other.begin);
        const float weight = beliefs.weights[belief++];
        if (place == other.size || other.begin[place].neighbor != wanted) return false;
        *meeting = {pair, by_source ? edge : place, by_source ? place : edge, weight};
        return true;
    }
};

// A warp per 32 pairs.
__global__ void evidence_of_pairs(EvidenceArgs args) {
    STEA_DYNAMIC_SHARED(Workspace, spaces);
    const int64_t first = warp_in_grid() * kWarp;
    if (first >= args.num_pairs) return;  // the whole warp leaves
    Workspace& space = spaces[warp_in_block()];
    const Sides mine = sides_of(args, first + lane_id());
    space.sides[lane_id()] = mine;
    __syncwarp(kAllLanes);
    const int64_t ends = warp_inclusive_sum(static_cast<int64_t>(mine.walked_edges()));
    const int64_t all = __shfl_sync(kAllLanes, ends, kWarp - 1);
    MeetingQueue queue(space.ring);
    Tally tally;
    for (int64_t item = lane_id(); item - lane_id() < all; item += kWarp) {
        Walk walk;
        walk.begin(args, space, item, ends);
        while (__any_sync(kAllLanes, walk.belief < walk.end)) {
            Meeting meeting{};
            const bool meets = walk.next(args, space, &meeting);
            queue.push(meets, meeting);
            if (queue.size() >= kWarp) tally.evaluate(args, space, queue, kWarp);
        }
    }
    if (queue.size() > 0) tally.evaluate(args, space, queue, queue.size());
    if (first + lane_id() >= args.num_pairs) return;
    args.evidence[first + lane_id()] = tally.sum.rounded();
    if (args.witness_count != nullptr) args.witness_count[first + lane_id()] = tally.count;
}

}  // namespace

void run_evidence(const EvidenceArgs& args, int block_size, Stream stream) {
    if (args.num_pairs == 0) return;
    const int64_t warps = block_size / kWarp, pairs = warps * kWarp;
    const int64_t blocks = (args.num_pairs + pairs - 1) / pairs;
    STEA_LAUNCH(evidence_of_pairs, static_cast<unsigned>(blocks), block_size, warps * sizeof(Workspace),
                as_stream(stream), args);
    check_launch("evidence");
}

}  // namespace stea::cuda
