#include "check.cuh"
#include "evidence.h"
#include "factors.cuh"
#include "filed_beliefs.cuh"
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
    __device__ EdgeSpan walked() const { return walks_source() ? source : target; }
    __device__ EdgeSpan other() const { return walks_source() ? target : source; }
};

constexpr int32_t kMostScanned = 32;  // edges of a candidate per edge of the row

// What a warp keeps in shared memory.
struct Workspace {
    Sides sides[kWarp];
    Meeting ring[kQueuePlaces];
    union {  // first one, then the other
        BeliefTable table;
        NeighborFilter filters[kWarp];
    };
};

// The beliefs in or of an entity: where they begin, and their number.
struct BeliefSpan {
    int64_t begin = 0;
    int32_t size = 0;
};

__device__ BeliefSpan beliefs_of(const BeliefsView& beliefs, int32_t entity) {
    const int64_t begin = beliefs.indptr[entity];
    return {begin, static_cast<int32_t>(beliefs.indptr[entity + 1] - begin)};
}

// An edge of a meeting, which may have to be searched; -1 if there is none.
__device__ int32_t edge_of(const EdgeSpan& span, int32_t edge) {
    if (edge >= 0) return edge;
    const int32_t place = first_of_neighbor(span.begin, span.size, ~edge);
    return place < span.size && span.begin[place].neighbor == ~edge ? place : -1;
}

constexpr float kLeastProduct = 1e-20f;  // one more factor of 1e-8 does not underflow

// The share of a pair of neighbours: of all statements about it, or of the strongest.
__device__ float share_of(const EvidenceArgs& args, const Sides& sides, const Meeting& meeting) {
    const int32_t edge = edge_of(sides.source, meeting.edge), target_edge = edge_of(sides.target, meeting.target_edge);
    if (edge < 0 || target_edge < 0) return 0.0f;
    const Edge *fact = sides.source.begin + edge, *end = sides.source.begin + sides.source.size;
    const Edge *first = sides.target.begin + target_edge, *target_end = sides.target.begin + sides.target.size;
    const int32_t neighbor = fact->neighbor, target_neighbor = first->neighbor;
    const Edge* target_fact = first;
    Factors all;
    float share = 0.0f;
    for (bool goes_on = true; goes_on;) {
        const Factors factors(find_strength(args.strengths, fact->relation, target_fact->relation), meeting.weight);
        if (args.witnesses == Witnesses::kNeighbor) {
            all.take_smaller(factors);
        } else {
            all.multiply(factors);
        }
        if (all.product < kLeastProduct) {
            share += all.evidence();
            all = Factors();
        }
        ++target_fact;
        if (target_fact != target_end && target_fact->neighbor == target_neighbor) continue;
        target_fact = first;
        ++fact;
        goes_on = fact != end && fact->neighbor == neighbor;
    }
    return share + all.evidence();
}

// Evidence and number of witnesses of the pair with the lane's number.
struct Tally {
    TwoFloats sum;
    int32_t count = 0;

    // Adds the meetings of the lanes that have one to the queue, and evaluates it where it is long enough.
    __device__ void take(const EvidenceArgs& args, const Workspace& space, MeetingQueue& queue, bool has_one,
                         const Meeting& meeting) {
        queue.push(has_one, meeting);
        if (queue.size() >= kWarp) evaluate(args, space, queue, kWarp);
    }

    // Every lane evaluates one of the `size` meetings in front of the queue; each lane then adds what is its own.
    __device__ void evaluate(const EvidenceArgs& args, const Workspace& space, MeetingQueue& queue, int size) {
        const Meeting meeting = queue.take(size);
        const float share = lane_id() < size ? share_of(args, space.sides[meeting.pair], meeting) : 0.0f;
        const unsigned shares = __ballot_sync(kAllLanes, share > 0.0f);
        unsigned own = lanes_with<5>(static_cast<unsigned>(meeting.pair), static_cast<unsigned>(lane_id()), shares);
        count += __popc(own);
        while (__any_sync(kAllLanes, own != 0)) {
            const float next = __shfl_sync(kAllLanes, share, __ffs(static_cast<int>(own)) - 1);
            sum.add(own != 0 ? next : 0.0f);
            own &= own - 1;
        }
    }
};

// Files what is believed of the neighbours of the rows of which the lanes have this many edges. Returns the lane with
// the first row for which there is no room, or 32.
__device__ int file_rows(const EvidenceArgs& args, Workspace& space, int32_t edges) {
    space.table.clear();
    const int32_t ends = warp_inclusive_sum(edges), all = __shfl_sync(kAllLanes, ends, kWarp - 1);
    int filed = 0;
    for (int32_t first = 0; first < all; first += kWarp) {
        const Place place(first + lane_id(), ends);
        const EdgeSpan& source = space.sides[place.lane].source;
        BeliefSpan held;
        if (first + lane_id() < all && source.is_first_of_run(place.number)) {
            held = beliefs_of(args.beliefs, source.begin[place.number].neighbor);
        }
        const int32_t belief_ends = warp_inclusive_sum(held.size);
        const int32_t beliefs = __shfl_sync(kAllLanes, belief_ends, kWarp - 1);
        for (int32_t i = 0; i < beliefs; i += kWarp) {
            const Place from(i + lane_id(), belief_ends);
            const int row = __shfl_sync(kAllLanes, place.lane, from.lane);
            const int32_t edge = __shfl_sync(kAllLanes, place.number, from.lane);
            const int64_t at = __shfl_sync(kAllLanes, held.begin, from.lane) + from.number;
            const bool has_one = i + lane_id() < beliefs, fits = filed + lane_id() < kFiledPlaces;
            FiledBelief belief{};
            if (has_one && fits) {
                belief = {args.beliefs.targets[at], args.beliefs.weights[at], edge, 0};
            }
            space.table.file(has_one && fits, filed, row, belief);
            const unsigned too_many = __ballot_sync(kAllLanes, has_one && !fits);
            if (too_many != 0) return __shfl_sync(kAllLanes, row, __ffs(static_cast<int>(too_many)) - 1);
            filed += beliefs - i < kWarp ? beliefs - i : kWarp;
        }
    }
    return kWarp;
}

// Looks up the neighbours of the targets of which the lanes have this many edges; `row` is that of the lane's pair.
__device__ void look_up(const EvidenceArgs& args, Workspace& space, int32_t edges, int row, MeetingQueue& queue,
                        Tally& tally) {
    const int32_t ends = warp_inclusive_sum(edges), all = __shfl_sync(kAllLanes, ends, kWarp - 1);
    for (int32_t first = 0; first < all; first += kWarp) {
        const Place place(first + lane_id(), ends);
        const EdgeSpan& target = space.sides[place.lane].target;
        const int row_there = __shfl_sync(kAllLanes, row, place.lane);
        int32_t wanted = 0;
        int next = BeliefTable::kNone;
        if (first + lane_id() < all && target.is_first_of_run(place.number)) {
            wanted = target.begin[place.number].neighbor;
            next = space.table.first_of(row_there, wanted);
        }
        while (__any_sync(kAllLanes, next != BeliefTable::kNone)) {
            Meeting meeting{};
            bool meets = false;
            if (next != BeliefTable::kNone) {
                const FiledBelief belief = space.table[next];
                meets = belief.target == wanted;
                meeting = {place.lane, belief.edge, place.number, belief.weight};
                next = belief.next;
            }
            tally.take(args, space, queue, meets, meeting);
        }
    }
}

// Evaluates the pairs whose rows can be filed, as many rows at a time as there is room for, unless a candidate has so
// many more edges than the row that a search is shorter. Returns whether the lane's pair is left.
__device__ bool look_up_pairs(const EvidenceArgs& args, Workspace& space, const Sides& mine, int32_t row,
                              MeetingQueue& queue, Tally& tally) {
    const int32_t row_before = __shfl_up_sync(kAllLanes, row, 1);
    const bool is_first = lane_id() == 0 || row != row_before;
    const unsigned firsts = __ballot_sync(kAllLanes, is_first);
    const int own_first = last_lane(firsts & (lanes_before() | 1u << lane_id()));
    const bool is_small = mine.source.size <= kFiledPlaces;
    bool is_left = !is_small || mine.target.size > kMostScanned * mine.source.size;
    for (int begin = 0; begin < kWarp;) {
        int end = file_rows(args, space, is_first && is_small && lane_id() >= begin ? mine.source.size : 0);
        const unsigned later = firsts & ~((2u << begin) - 1u);
        const bool has_no_room = end == begin;
        if (has_no_room) end = later == 0 ? kWarp : __ffs(static_cast<int>(later)) - 1;
        const bool is_filed = begin <= own_first && own_first < end;
        if (has_no_room) {
            is_left |= is_filed;
        } else {
            look_up(args, space, is_filed && !is_left ? mine.target.size : 0, own_first, queue, tally);
        }
        begin = end;
    }
    return is_left;
}

// Notes the neighbours of every pair on the side that is searched, of which the lane's pair has this many edges. Where
// they are too many for a filter, it lets all pass.
__device__ void fill_filters(Workspace& space, int32_t edges) {
    const bool fits = edges <= kMostFiltered;
    __syncwarp(kAllLanes);  // nobody reads the table, which was in their place
    space.filters[lane_id()].set_all(!fits);
    __syncwarp(kAllLanes);
    const int32_t ends = warp_inclusive_sum(fits ? edges : 0);
    const int32_t all = __shfl_sync(kAllLanes, ends, kWarp - 1);
    for (int32_t first = 0; first < all; first += kWarp) {
        const Place place(first + lane_id(), ends);
        if (first + lane_id() >= all) continue;
        space.filters[place.lane].note(space.sides[place.lane].other().begin[place.number].neighbor);
    }
    __syncwarp(kAllLanes);
}

// A walked edge, and what is left of the beliefs of its neighbour.
struct Walk {
    Place place;
    const NeighborFilter& filter;
    bool by_source = false;
    const int32_t* targets = nullptr;
    const float* weights = nullptr;
    int32_t left = 0;

    __device__ Walk(const EvidenceArgs& args, const Workspace& space, int32_t item, int32_t ends, int32_t all)
        : place(item, ends), filter(space.filters[place.lane]) {
        if (item >= all) return;
        const Sides& sides = space.sides[place.lane];
        const EdgeSpan walked = sides.walked();
        if (!walked.is_first_of_run(place.number)) return;
        by_source = sides.walks_source();
        const BeliefsView& beliefs = by_source ? args.beliefs : args.believers;
        const BeliefSpan held = beliefs_of(beliefs, walked.begin[place.number].neighbor);
        targets = beliefs.targets + held.begin;
        weights = beliefs.weights + held.begin;
        left = held.size;
    }

    // Takes the next belief; true if it may lead to a neighbour on the other side.
    __device__ bool next(Meeting* meeting) {
        if (left == 0) return false;
        --left;
        const int32_t wanted = *targets++;
        const float* weight = weights++;
        if (!filter.may_hold(wanted)) return false;
        *meeting = {place.lane, by_source ? place.number : ~wanted, by_source ? ~wanted : place.number, *weight};
        return true;
    }
};

// The pairs that are left: walks the edges of the side that has fewer, and searches the beliefs among the others.
__device__ void search_pairs(const EvidenceArgs& args, Workspace& space, const Sides& mine, bool is_left,
                             MeetingQueue& queue, Tally& tally) {
    fill_filters(space, is_left ? mine.other().size : 0);
    const int32_t ends = warp_inclusive_sum(is_left ? mine.walked().size : 0);
    const int32_t all = __shfl_sync(kAllLanes, ends, kWarp - 1);
    for (int32_t first = 0; first < all; first += kWarp) {
        Walk walk(args, space, first + lane_id(), ends, all);
        while (__any_sync(kAllLanes, walk.left > 0)) {
            Meeting meeting{};
            const bool meets = walk.next(&meeting);
            tally.take(args, space, queue, meets, meeting);
        }
    }
}

// The number of a pair's row in the range; -1 beyond the last pair.
__device__ int32_t row_of_pair(const EvidenceArgs& args, int64_t pair) {
    if (pair >= args.num_pairs) return -1;
    const CandidateRows& rows = args.candidates;
    const int64_t count = args.rows.end - args.rows.begin;
    return static_cast<int32_t>(rows.indptr == nullptr ? pair / rows.k : row_of_edge(rows.indptr, count, pair));
}

// The edges of a pair; without a candidate only those of its row.
__device__ Sides sides_of(const EvidenceArgs& args, int32_t row, int64_t pair) {
    Sides sides{{nullptr, 0}, {nullptr, 0}};
    if (row < 0) return sides;
    sides.source = edges_of(args.source, args.rows.begin + row);
    const int32_t candidate = args.candidates.indices[pair];
    if (candidate >= 0) sides.target = edges_of(args.target, candidate);
    return sides;
}

// A warp per 32 pairs. Four of the largest blocks have the registers of a multiprocessor: 64 for each thread.
__global__ void __launch_bounds__(kMostEvidenceThreads, 4) evidence_of_pairs(EvidenceArgs args) {
    STEA_DYNAMIC_SHARED(Workspace, spaces);
    const int64_t first = warp_in_grid() * kWarp, pair = first + lane_id();
    if (first >= args.num_pairs) return;  // the whole warp leaves
    Workspace& space = spaces[warp_in_block()];
    const int32_t row = row_of_pair(args, pair);
    const Sides mine = sides_of(args, row, pair);
    space.sides[lane_id()] = mine;
    MeetingQueue queue(space.ring);
    Tally tally;
    const bool is_left = look_up_pairs(args, space, mine, row, queue, tally);
    if (__any_sync(kAllLanes, is_left)) search_pairs(args, space, mine, is_left, queue, tally);
    if (queue.size() > 0) tally.evaluate(args, space, queue, queue.size());
    if (pair >= args.num_pairs) return;
    args.evidence[pair] = tally.sum.rounded();
    if (args.witness_count != nullptr) args.witness_count[pair] = tally.count;
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
