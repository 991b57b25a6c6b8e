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
    __device__ const EdgeSpan& walked() const { return walks_source() ? source : target; }
    __device__ const EdgeSpan& other() const { return walks_source() ? target : source; }
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
    NeighborFilter filters[kWarp];
    Meeting ring[kQueuePlaces];
};

// The pair that has the `item`-th of all edges that the warp's pairs have in one line, and the edge's number in the
// pair. `ends` is where the edges of the lane's pair end in that line.
struct Place {
    int pair = 0;
    int32_t edge = 0;

    __device__ Place(int32_t item, int32_t ends) {
        for (int step = kWarp / 2; step > 0; step /= 2) {
            if (__shfl_sync(kAllLanes, ends, pair + step - 1) <= item) pair += step;
        }
        const int32_t before = __shfl_sync(kAllLanes, ends, pair == 0 ? 0 : pair - 1);
        edge = item - (pair == 0 ? 0 : before);
    }
};

// Notes the neighbours of every pair on the side that is searched, a lane per edge. Where they are too many for a
// filter, it lets all pass.
__device__ void fill_filters(Workspace& space, const Sides& mine) {
    const bool fits = mine.other().size <= kMostFiltered;
    space.filters[lane_id()].set_all(!fits);
    __syncwarp(kAllLanes);
    const int32_t ends = warp_inclusive_sum(fits ? mine.other().size : 0);
    const int32_t all = __shfl_sync(kAllLanes, ends, kWarp - 1);
    for (int32_t first = 0; first < all; first += kWarp) {
        const Place place(first + lane_id(), ends);
        if (first + lane_id() >= all) continue;
        space.filters[place.pair].note(space.sides[place.pair].other().begin[place.edge].neighbor);
    }
    __syncwarp(kAllLanes);
}

// -log((1 - x) (1 - y)) with x = strength.source * weight and y = strength.target * weight. Near 0 log1p keeps the
// digits; near 1 the fused product does.
__device__ float fact_evidence(const Strength& strength, float weight) {
    const float x = strength.source * weight, y = strength.target * weight;
    if (x < 0.5f && y < 0.5f) return -log1pf(-fmaf(-x, y, x + y));
    const float least = static_cast<float>(kMinFactor);
    return -logf(fmaxf(fmaf(-strength.source, weight, 1.0f), least) *
                 fmaxf(fmaf(-strength.target, weight, 1.0f), least));
}

// The share of a pair of neighbours that may meet: an edge of the walked side and a neighbour of the other one.
__device__ float share_of(const EvidenceArgs& args, const Sides& sides, const Meeting& meeting) {
    const EdgeSpan& other = sides.other();
    const int32_t place = first_of_neighbor(other.begin, other.size, meeting.wanted);
    if (place == other.size || other.begin[place].neighbor != meeting.wanted) return 0.0f;
    const bool by_source = sides.walks_source();
    const int32_t edge = by_source ? meeting.edge : place, target_edge = by_source ? place : meeting.edge;
    const int32_t neighbor = sides.source.begin[edge].neighbor;
    const int32_t target_neighbor = sides.target.begin[target_edge].neighbor;
    TwoFloats sum;
    float strongest = 0.0f;
    for (int32_t i = edge; i < sides.source.size && sides.source.begin[i].neighbor == neighbor; ++i) {
        for (int32_t j = target_edge; j < sides.target.size; ++j) {
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
        for (unsigned left = __ballot_sync(kAllLanes, share > 0.0f); left != 0; left &= left - 1) {
            const int i = __ffs(static_cast<int>(left)) - 1;
            const int owner = __shfl_sync(kAllLanes, meeting.pair, i);
            const float added = __shfl_sync(kAllLanes, share, i);
            if (owner != lane_id()) continue;
            sum.add(added);
            ++count;
        }
    }
};

// A walked edge, and what is left of the beliefs of its neighbour.
struct Walk {
    Place place;
    const NeighborFilter& filter;
    const int32_t* targets = nullptr;
    const float* weights = nullptr;
    int32_t left = 0;

    __device__ Walk(const EvidenceArgs& args, const Workspace& space, int32_t item, int32_t ends, int32_t all)
        : place(item, ends), filter(space.filters[place.pair]) {
        if (item >= all) return;
        const Sides& sides = space.sides[place.pair];
        const EdgeSpan& walked = sides.walked();
        if (!walked.is_first_of_run(place.edge)) return;
        const BeliefsView& beliefs = sides.walks_source() ? args.beliefs : args.believers;
        const int32_t neighbor = walked.begin[place.edge].neighbor;
        const int64_t begin = beliefs.indptr[neighbor];
        targets = beliefs.targets + begin;
        weights = beliefs.weights + begin;
        left = static_cast<int32_t>(beliefs.indptr[neighbor + 1] - begin);
    }

    // Takes the next belief; true if it may lead to a neighbour on the other side.
    __device__ bool next(Meeting* meeting) {
        if (left == 0) return false;
        --left;
        const int32_t wanted = *targets++;
        const float* weight = weights++;
        if (!filter.may_hold(wanted)) return false;
        *meeting = {place.pair, place.edge, wanted, *weight};
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
    fill_filters(space, mine);
    const int32_t ends = warp_inclusive_sum(mine.walked().size);
    const int32_t all = __shfl_sync(kAllLanes, ends, kWarp - 1);
    MeetingQueue queue(space.ring);
    Tally tally;
    for (int32_t first_item = 0; first_item < all; first_item += kWarp) {
        Walk walk(args, space, first_item + lane_id(), ends, all);
        while (__any_sync(kAllLanes, walk.left > 0)) {
            Meeting meeting{};
            const bool meets = walk.next(&meeting);
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
