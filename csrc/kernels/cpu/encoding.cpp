#include "encoding.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "parallel_rows.h"
#include "parallel_tasks.h"
#include "standard_floats.h"

namespace stea {
namespace {

// Calls kernel(row) for every row; those with many entries first.
template <typename Kernel>
void over_rows(const int64_t* indptr, int64_t rows, const RunOptions& options, const Kernel& kernel) {
    const GraphView sizes{indptr, nullptr, rows, indptr[rows]};
    parallel_rows(
        sizes, {0, rows}, options.n_threads,
        [&](int, int64_t row) {
            const FlushedDenormals flushed;
            kernel(row);
        },
        [](int) {}, options.poll);
}

constexpr int64_t kSlices =
    64;  // of rows that are summed in one row: their number is the same for any number of threads

void sum_attention(const ReflectionBackward& args, const RunOptions& options) {
    const ReflectionLayer& layer = args.layer;
    const int64_t width = layer.heads * layer.dim;
    std::vector<float> sums(static_cast<size_t>(kSlices * width));
    const int64_t n = layer.graph.num_entities;
    parallel_tasks(kSlices, options.n_threads, [&](int, int64_t slice) {
        const FlushedDenormals flushed;
        options.tier.reflect_backward_attention(args, n * slice / kSlices, n * (slice + 1) / kSlices,
                                                sums.data() + slice * width);
    });
    for (int64_t c = 0; c < width; ++c) {
        float total = 0.0f;
        for (int64_t slice = 0; slice < kSlices; ++slice) total += sums[static_cast<size_t>(slice * width + c)];
        args.d_k_y[c] = total;
    }
}

// The hits of all queries, ordered by entity; those of one entity by query.
struct Pushers {
    std::vector<int64_t> starts;  // [num_entities + 1]
    std::vector<Pusher> entries;

    Pushers(const std::vector<std::vector<Negative>>& hits, int64_t num_entities)
        : starts(static_cast<size_t>(num_entities) + 2) {
        for (const std::vector<Negative>& row : hits) {
            for (const Negative& hit : row) ++starts[static_cast<size_t>(hit.entity) + 2];
        }
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        entries.resize(static_cast<size_t>(starts.back()));
        for (size_t query = 0; query < hits.size(); ++query) {
            for (const Negative& hit : hits[query]) {
                const int64_t place = starts[static_cast<size_t>(hit.entity) + 1]++;
                entries[static_cast<size_t>(place)] = {static_cast<int32_t>(query), hit.weight};
            }
        }
        starts.pop_back();
    }
};

}  // namespace

void run_sparse_rows(const SparseRows& args, const RunOptions& options) {
    over_rows(args.indptr, args.num_rows, options, [&](int64_t row) { options.tier.sparse_row(args, row); });
}

void run_triple_view(const TripleView& args, const RunOptions& options) {
    over_rows(args.indptr, args.num_rows, options, [&](int64_t row) { options.tier.triple_view_row(args, row); });
}

void run_dropout(const Dropout& args, const RunOptions& options) {
    constexpr int64_t kRows = 256;  // of one task
    parallel_tasks((args.num_rows + kRows - 1) / kRows, options.n_threads, [&](int, int64_t task) {
        const FlushedDenormals flushed;
        const int64_t end = std::min((task + 1) * kRows, args.num_rows);
        for (int64_t row = task * kRows; row < end; ++row) options.tier.dropout_row(args, row);
    });
}

void run_reflection_forward(const ReflectionForward& args, const RunOptions& options) {
    const ReflectionGraph& graph = args.layer.graph;
    over_rows(graph.indptr, graph.num_entities, options,
              [&](int64_t row) { options.tier.reflect_forward_row(args, row); });
}

void run_reflection_backward(const ReflectionBackward& args, const RunOptions& options) {
    const ReflectionGraph& graph = args.layer.graph;
    over_rows(graph.indptr, graph.num_entities, options,
              [&](int64_t row) { options.tier.reflect_backward_edges_row(args, row); });
    over_rows(graph.indptr, graph.num_entities, options,
              [&](int64_t row) { options.tier.reflect_backward_entity_row(args, row); });
    over_rows(graph.set_indptr, graph.num_sets, options,
              [&](int64_t row) { options.tier.reflect_backward_set_row(args, row); });
    sum_attention(args, options);
}

void run_negatives(const NegativeBlock& block, const RunOptions& options) {
    std::vector<std::vector<Negative>> room(static_cast<size_t>(options.n_threads));
    std::vector<std::vector<Negative>> hits(static_cast<size_t>(block.num_queries));
    parallel_tasks(block.num_queries, options.n_threads, [&](int worker, int64_t query) {
        const FlushedDenormals flushed;
        std::vector<Negative>& found = room[static_cast<size_t>(worker)];
        found.resize(static_cast<size_t>(block.num_entities));
        const int64_t count = options.tier.negative_row(block, query, found.data());
        hits[static_cast<size_t>(query)].assign(found.begin(), found.begin() + count);
    });
    if (options.poll()) throw Interrupted{};
    const Pushers pushers(hits, block.num_entities);
    over_rows(pushers.starts.data(), block.num_entities, options, [&](int64_t entity) {
        const int64_t begin = pushers.starts[static_cast<size_t>(entity)];
        const int64_t end = pushers.starts[static_cast<size_t>(entity) + 1];
        if (begin < end) options.tier.push_entity(block, entity, pushers.entries.data() + begin, end - begin);
    });
}

}  // namespace stea
