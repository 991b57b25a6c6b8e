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

// Threads `first`, `first + stride`, ... each take edges of the candidate and look up whom they lead to.
__device__ double walk_candidate(const EvidenceArgs& args, const BeliefTable& table, const Edge* row_edges,
                                 EdgeSpan candidate, int64_t first, int64_t stride) {
    double sum = 0.0;
    for (int64_t j = first; j < candidate.size; j += stride) {
        const Edge edge = candidate.begin[j];
        table.for_each(edge.neighbor, [&](uint32_t fact) { sum += fact_evidence(args, row_edges[fact], edge); });
    }
    return sum;
}

// Each thread takes slots of the table and searches the candidate's edges for their targets.
__device__ double search_candidate(const EvidenceArgs& args, const BeliefTable& table, const Edge* row_edges,
                                   EdgeSpan candidate, int64_t first, int64_t stride) {
    double sum = 0.0;
    const Edge* end = candidate.begin + candidate.size;
    for (int64_t at = first; at <= static_cast<int64_t>(table.mask); at += stride) {
        const Slot slot = table.slots[at];
        if (slot == kFree) continue;
        const Edge* edge = first_edge(candidate.begin, end, target_in(slot), 0);
        for (; edge < end && edge->neighbor == target_in(slot); ++edge) {
            sum += fact_evidence(args, row_edges[edge_in(slot)], *edge);
        }
    }
    return sum;
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
        double sum = 0.0;
        if (candidate >= 0 && nodes > 0) {
            const EdgeSpan facing = edges_of(args.target, candidate);
            sum = facing.size > kSearchInstead * static_cast<int64_t>(nodes)
                      ? search_candidate(args, table, edges.begin, facing, lane_id(), kWarp)
                      : walk_candidate(args, table, edges.begin, facing, lane_id(), kWarp);
        }
        sum = warp_sum(sum);
        if (lane_id() == 0) args.evidence[position * k + c] = static_cast<float>(sum);
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
    double sum = 0.0;
    if (candidate >= 0) {
        sum = walk_candidate(args, {slots + hub.first_slot, hub.mask}, edges_of(args.source, hub.row).begin,
                             edges_of(args.target, candidate), threadIdx.x, blockDim.x);
    }
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0) args.evidence[place] = static_cast<float>(sum);
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
