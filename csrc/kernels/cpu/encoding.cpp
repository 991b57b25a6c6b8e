#include "encoding.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "over_rows.h"
#include "parallel_tasks.h"
#include "standard_floats.h"

namespace stea {
namespace {

constexpr int64_t kEdgeSlices = 32;  // as many for any number of threads: so are the sums

// What slices of the rows add to the sets that many edges have.
class FrequentSets {
  public:
    explicit FrequentSets(const ReflectionLayer& layer)
        : graph_(layer.graph),
          slots_(static_cast<size_t>(layer.graph.num_sets), -1),
          width_(layer.dim + 2 * layer.heads) {
        const int64_t least = std::max(kLeastEdges, graph_.num_edges / kMostSets);
        for (int64_t set = 0; set < graph_.num_sets; ++set) {
            if (graph_.set_indptr[set + 1] - graph_.set_indptr[set] < least) continue;
            slots_[static_cast<size_t>(set)] = static_cast<int32_t>(count_++);
        }
        sums_.reset(new float[static_cast<size_t>(kEdgeSlices * count_ * width_)]);
    }

    SetSums view() const { return {slots_.data(), count_, kEdgeSlices, sums_.get()}; }

    // The sums of a slice, zeroed.
    float* begin(int64_t slice) {
        float* sums = sums_.get() + slice * count_ * width_;
        std::fill_n(sums, count_ * width_, 0.0f);
        return sums;
    }

    // Slices have about the same number of edges.
    int64_t first_row(int64_t slice) const {
        if (slice == kEdgeSlices) return graph_.num_entities;
        const int64_t edge = graph_.num_edges * slice / kEdgeSlices;
        return std::lower_bound(graph_.indptr, graph_.indptr + graph_.num_entities, edge) - graph_.indptr;
    }

  private:
    static constexpr int64_t kLeastEdges = 32;
    static constexpr int64_t kMostSets = 8192;
    const ReflectionGraph& graph_;
    std::vector<int32_t> slots_;
    int64_t width_;
    int64_t count_ = 0;
    std::unique_ptr<float[]> sums_;  // [slices, count, width]
};

constexpr int64_t kSlices = 64;  // of rows that are summed in one row: as many for any number of threads

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

// b as the kernel reads it: its columns in panels, each contiguous.
std::vector<float> panels_of(const float* b, int64_t depth, int64_t columns) {
    const int64_t count = (columns + kPanelWidth - 1) / kPanelWidth;
    std::vector<float> panels(static_cast<size_t>(count * depth * kPanelWidth));
    for (int64_t k = 0; k < depth; ++k) {
        for (int64_t column = 0; column < columns; ++column) {
            const int64_t panel = column / kPanelWidth;
            panels[static_cast<size_t>((panel * depth + k) * kPanelWidth + column % kPanelWidth)] =
                b[k * columns + column];
        }
    }
    return panels;
}

}  // namespace

void run_dense_product(const float* a, const float* b, float* out, int64_t rows, int64_t depth, int64_t columns,
                       const RunOptions& options) {
    constexpr int64_t kRows = 48;  // of one task
    const std::vector<float> panels = panels_of(b, depth, columns);
    const DenseProduct args{a, panels.data(), out, rows, depth, columns};
    parallel_tasks((rows + kRows - 1) / kRows, options.n_threads,
                   [&](int, int64_t task) {
                       const FlushedDenormals flushed;
                       options.tier.dense_product_rows(args, task * kRows, std::min((task + 1) * kRows, rows));
                   },
                   options.poll);
}

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

void run_reflection_backward(const ReflectionBackward& given, const RunOptions& options) {
    const ReflectionGraph& graph = given.layer.graph;
    FrequentSets frequent(given.layer);
    ReflectionBackward args = given;
    args.sums = frequent.view();
    parallel_tasks(
        kEdgeSlices, options.n_threads,
        [&](int, int64_t slice) {
            const FlushedDenormals flushed;
            float* sums = frequent.begin(slice);
            const int64_t end = frequent.first_row(slice + 1);
            for (int64_t row = frequent.first_row(slice); row < end; ++row) {
                options.tier.reflect_backward_edges_row(args, row, sums);
            }
        },
        options.poll);
    over_rows(graph.indptr, graph.num_entities, options,
              [&](int64_t row) { options.tier.reflect_backward_entity_row(args, row); });
    over_rows(graph.set_indptr, graph.num_sets, options,
              [&](int64_t row) { options.tier.reflect_backward_set_row(args, row); });
    sum_attention(args, options);
}

}  // namespace stea
