#include "../evidence.h"
#include "belief_table.cuh"
#include "check.cuh"
#include "evidence.h"
#include "launch.cuh"
#include "search.cuh"
#include "warp.cuh"

namespace stea::cuda {
namespace {

constexpr int kHubFilingBlocks = 8;     // blocks that share the filing of one hub
constexpr int64_t kSearchInstead = 32;  // edges per node above which a candidate's edges are searched, not walked

struct Hub {
    int64_t row;
    Slot first_slot;
    Slot mask;
};

struct HubTotals {
    Slot hubs;
    Slot slots;
};

struct EdgeSpan {
    const Edge* begin;
    int64_t size;
};

__device__ EdgeSpan edges_of(const GraphView& graph, int64_t entity) {
    const int64_t begin = graph.indptr[entity];
    return {graph.edges + begin, graph.indptr[entity + 1] - begin};
}

// -log(1 - x), x = strength * weight. Near 1 the fused product keeps the digits of 1 - x, near 0 log1p does.
__device__ float minus_log_factor(float strength, float weight) {
    const float x = strength * weight;
    if (x < 0.5f) return -log1pf(-x);
    return -logf(fmaxf(fmaf(-strength, weight, 1.0f), static_cast<float>(kMinFactor)));
}

// The share of one pair of facts that meet: (r, n) of the row and (r', n') of the candidate.
__device__ double fact_evidence(const EvidenceArgs& args, const Edge& fact, const Edge& target_fact) {
    const float weight = belief_weight(args.beliefs, fact.neighbor, target_fact.neighbor);
    const Strength strength = find_strength(args.strengths, fact.relation, target_fact.relation);
    return static_cast<double>(minus_log_factor(strength.source, weight)) +
           static_cast<double>(minus_log_factor(strength.target, weight));
}

// Evidence and number of witnesses.
struct Tally {
    double sum = 0.0;
    int32_t count = 0;

    __device__ void add(double share) {
        sum += share;
        count += share > 0.0 ? 1 : 0;
    }
};

__device__ bool is_first_of_run(const EdgeSpan& edges, int64_t at) {
    return at == 0 || edges.begin[at - 1].neighbor != edges.begin[at].neighbor;
}

// The edge after the last one that leads where the edge `at` does.
__device__ int64_t end_of_run(const EdgeSpan& edges, int64_t at) {
    int64_t end = at + 1;
    while (end < edges.size && edges.begin[end].neighbor == edges.begin[at].neighbor) ++end;
    return end;
}

// The strongest of the statements about one pair of neighbours, given the first edges of both runs.
__device__ double witness_evidence(const EvidenceArgs& args, EdgeSpan row, EdgeSpan candidate, int64_t fact,
                                   int64_t target_fact) {
    const int64_t end = end_of_run(row, fact), target_end = end_of_run(candidate, target_fact);
    double strongest = 0.0;
    for (int64_t i = fact; i < end; ++i) {
        for (int64_t j = target_fact; j < target_end; ++j) {
            strongest = fmax(strongest, fact_evidence(args, row.begin[i], candidate.begin[j]));
        }
    }
    return strongest;
}

// What edge `fact` of the row and edge `target_fact` of the candidate add, which meet.
__device__ void add_facts(const EvidenceArgs& args, EdgeSpan row, EdgeSpan candidate, int64_t fact, int64_t target_fact,
                          Tally& tally) {
    if (args.witnesses == Witnesses::kStatement) {
        tally.add(fact_evidence(args, row.begin[fact], candidate.begin[target_fact]));
    } else if (is_first_of_run(row, fact) && is_first_of_run(candidate, target_fact)) {
        tally.add(witness_evidence(args, row, candidate, fact, target_fact));
    }
}

// Threads `first`, `first + stride`, ... each take edges of the candidate and look up whom they lead to.
__device__ Tally walk_candidate(const EvidenceArgs& args, const BeliefTable& table, EdgeSpan row, EdgeSpan candidate,
                                int64_t first, int64_t stride) {
    Tally tally;
    for (int64_t j = first; j < candidate.size; j += stride) {
        table.for_each(candidate.begin[j].neighbor,
                       [&](uint32_t fact) { add_facts(args, row, candidate, fact, j, tally); });
    }
    return tally;
}

// Each thread takes slots of the table and searches the candidate's edges for their targets.
__device__ Tally search_candidate(const EvidenceArgs& args, const BeliefTable& table, EdgeSpan row, EdgeSpan candidate,
                                  int64_t first, int64_t stride) {
    Tally tally;
    const Edge* end = candidate.begin + candidate.size;
    for (int64_t at = first; at <= static_cast<int64_t>(table.mask); at += stride) {
        const Slot slot = table.slots[at];
        if (slot == kFree) continue;
        const Edge* edge = first_edge(candidate.begin, end, target_in(slot), 0);
        for (; edge < end && edge->neighbor == target_in(slot); ++edge) {
            add_facts(args, row, candidate, edge_in(slot), edge - candidate.begin, tally);
        }
    }
    return tally;
}

__device__ void write_tally(const EvidenceArgs& args, int64_t place, const Tally& tally) {
    args.evidence[place] = static_cast<float>(tally.sum);
    if (args.witness_count != nullptr) args.witness_count[place] = tally.count;
}

// A warp per row: counts its nodes, and puts it on the list of hubs if they are too many for shared memory.
__global__ void count_nodes(EvidenceArgs args, Slot most_nodes, int64_t* row_nodes, Hub* hubs, HubTotals* totals) {
    const int64_t position = warp_in_grid();
    const int64_t row = args.rows.begin + position;
    if (row >= args.rows.end) return;
    const EdgeSpan edges = edges_of(args.source, row);
    int64_t count = 0;
    for (int64_t j = lane_id(); j < edges.size; j += kWarp) {
        const int32_t neighbor = edges.begin[j].neighbor;
        count += args.beliefs.indptr[neighbor + 1] - args.beliefs.indptr[neighbor];
    }
    const Slot nodes = static_cast<Slot>(warp_sum(count));
    if (lane_id() != 0) return;
    row_nodes[position] = static_cast<int64_t>(nodes);
    if (nodes <= most_nodes) return;
    const Slot slots = slots_for(nodes);
    hubs[atomicAdd(&totals->hubs, Slot{1})] = {row, atomicAdd(&totals->slots, slots), slots - 1};
}

// A block per row, a warp per candidate.
__global__ void ordinary_rows(EvidenceArgs args, Slot most_nodes, const int64_t* row_nodes) {
    STEA_DYNAMIC_SHARED(Slot, slots);
    const int64_t position = blockIdx.x;
    const Slot nodes = static_cast<Slot>(row_nodes[position]);
    if (nodes > most_nodes) return;  // a hub: the whole block leaves
    const BeliefTable table{slots, slots_for(nodes) - 1};
    const EdgeSpan edges = edges_of(args.source, args.rows.begin + position);
    for (Slot at = threadIdx.x; at <= table.mask; at += blockDim.x) slots[at] = kFree;
    __syncthreads();
    file_beliefs(table, args.beliefs, edges.begin, edges.size, threadIdx.x, blockDim.x);
    __syncthreads();
    const int64_t k = args.candidates.k;
    for (int64_t c = warp_in_block(); c < k; c += warps_per_block()) {
        const int32_t candidate = args.candidates.indices[position * k + c];
        Tally tally;
        if (candidate >= 0 && nodes > 0) {
            const EdgeSpan facing = edges_of(args.target, candidate);
            tally = facing.size > kSearchInstead * static_cast<int64_t>(nodes)
                        ? search_candidate(args, table, edges, facing, lane_id(), kWarp)
                        : walk_candidate(args, table, edges, facing, lane_id(), kWarp);
        }
        tally = {warp_sum(tally.sum), warp_sum(tally.count)};
        if (lane_id() == 0) write_tally(args, position * k + c, tally);
    }
}

// The blocks (hub, 0), (hub, 1), ... file the nodes of a hub.
__global__ void file_hubs(EvidenceArgs args, const Hub* hubs, Slot* slots) {
    const Hub hub = hubs[blockIdx.x];
    const EdgeSpan edges = edges_of(args.source, hub.row);
    const int64_t first = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
    file_beliefs({slots + hub.first_slot, hub.mask}, args.beliefs, edges.begin, edges.size, first,
                 static_cast<int64_t>(gridDim.y) * blockDim.x);
}

// A block per (hub, candidate).
__global__ void hub_rows(EvidenceArgs args, const Hub* hubs, Slot* slots) {
    STEA_DYNAMIC_SHARED(double, partial);
    const Hub hub = hubs[blockIdx.x];
    const int64_t place = (hub.row - args.rows.begin) * args.candidates.k + blockIdx.y;
    const int32_t candidate = args.candidates.indices[place];
    Tally tally;
    if (candidate >= 0) {
        tally = walk_candidate(args, {slots + hub.first_slot, hub.mask}, edges_of(args.source, hub.row),
                               edges_of(args.target, candidate), threadIdx.x, blockDim.x);
    }
    tally.sum = block_sum(tally.sum, partial);
    __syncthreads();  // all have read what the next sum overwrites
    tally.count = static_cast<int32_t>(block_sum(tally.count, partial));
    if (threadIdx.x == 0) write_tally(args, place, tally);
}

void run_hubs(const EvidenceArgs& args, const HubTotals& totals, const Hub* hubs, int block, cudaStream_t stream) {
    Scratch<Slot> slots(totals.slots, "evidence: tables of the hubs", stream);
    slots.clear();
    const unsigned count = static_cast<unsigned>(totals.hubs);
    STEA_LAUNCH(file_hubs, dim3(count, kHubFilingBlocks), block, 0, stream, args, hubs, slots.data());
    check_launch("evidence: file_hubs");
    STEA_LAUNCH(hub_rows, dim3(count, static_cast<unsigned>(args.candidates.k)), block, kWarp * sizeof(double), stream,
                args, hubs, slots.data());
    check_launch("evidence: hub_rows");
}

}  // namespace

void run_evidence(const EvidenceArgs& args, const EvidenceLaunch& launch, Stream handle) {
    const cudaStream_t stream = as_stream(handle);
    const int64_t rows = args.rows.end - args.rows.begin;
    if (rows == 0 || args.candidates.k == 0) return;
    const Slot most_nodes = static_cast<Slot>(launch.table_slots / 2);
    Scratch<int64_t> row_nodes(rows, "evidence: nodes of every row", stream);
    Scratch<Hub> hubs(rows, "evidence: list of hubs", stream);
    Scratch<HubTotals> totals(1, "evidence: totals", stream);
    totals.clear();
    const int64_t warps = launch.block_size / kWarp;
    STEA_LAUNCH(count_nodes, static_cast<unsigned>((rows + warps - 1) / warps), launch.block_size, 0, stream, args,
                most_nodes, row_nodes.data(), hubs.data(), totals.data());
    check_launch("evidence: count_nodes");
    STEA_LAUNCH(ordinary_rows, static_cast<unsigned>(rows), launch.block_size, launch.table_slots * sizeof(Slot),
                stream, args, most_nodes, row_nodes.data());
    check_launch("evidence: ordinary_rows");
    HubTotals found;
    check(cudaMemcpyAsync(&found, totals.data(), sizeof(found), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "evidence");
    if (found.hubs > 0) run_hubs(args, found, hubs.data(), launch.block_size, stream);
}

}  // namespace stea::cuda
