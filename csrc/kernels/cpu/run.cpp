#include "run.h"

#include <algorithm>
#include <memory>

#include "parallel_rows.h"

namespace stea {
namespace {

// One scratch per worker, made by the worker that first needs it so that its pages are its own.
template <typename Scratch>
class PerWorker {
  public:
    PerWorker(int n_threads, const Sizes& sizes) : sizes_(sizes), scratches_(static_cast<size_t>(n_threads)) {}

    Scratch& get(int worker) {
        std::unique_ptr<Scratch>& scratch = scratches_[static_cast<size_t>(worker)];
        if (!scratch) scratch = std::make_unique<Scratch>(sizes_);
        return *scratch;
    }

    const std::vector<std::unique_ptr<Scratch>>& all() const { return scratches_; }

  private:
    const Sizes sizes_;
    std::vector<std::unique_ptr<Scratch>> scratches_;
};

// Runs `row_kernel` on every row of the range.
template <typename Scratch, typename Args>
void run_rows(void (*row_kernel)(const Args&, Scratch&, int64_t), const Args& args, PerWorker<Scratch>& scratches,
              const RunOptions& options) {
    parallel_rows(
        args.source, args.rows, options.n_threads,
        [&](int worker, int64_t row) { row_kernel(args, scratches.get(worker), row); }, options.poll);
}

template <typename Args>
Sizes sizes_of(const Args& args) {
    return {args.target.num_entities, args.num_source_relations, args.num_target_relations};
}

// Adds up the workers' counts and orders them by (r, r'): by a counting sort on r, then within each r.
RelationCounts merge(const std::vector<std::unique_ptr<CountScratch>>& scratches, const CountArgs& args) {
    const auto num_relations = static_cast<size_t>(args.num_source_relations);
    const int64_t width = 2 * static_cast<int64_t>(args.num_target_relations);
    std::vector<std::vector<KeyCount>> rows(num_relations);
    RelationCounts counts;
    counts.den.assign(num_relations, 0);
    for (const auto& scratch : scratches) {
        if (!scratch) continue;
        scratch->num.flush();
        for (uint64_t i = 0; i <= scratch->num.mask; ++i) {
            const KeyCount& slot = scratch->num.slots[i];
            if (slot.key >= 0) rows[static_cast<size_t>(slot.key / width)].push_back(slot);
        }
        for (size_t r = 0; r < num_relations; ++r) counts.den[r] += scratch->den.data[r];
    }
    for (std::vector<KeyCount>& row : rows) {
        std::sort(row.begin(), row.end(), [](const KeyCount& a, const KeyCount& b) { return a.key < b.key; });
        for (const KeyCount& entry : row) {
            if (!counts.keys.empty() && counts.keys.back() == entry.key) {
                counts.num.back() += entry.count;
            } else {
                counts.keys.push_back(entry.key);
                counts.num.push_back(entry.count);
            }
        }
    }
    return counts;
}

}  // namespace

void run_evidence(const EvidenceArgs& args, const RunOptions& options) {
    PerWorker<EvidenceScratch> scratches(options.n_threads, sizes_of(args));
    run_rows(options.tier.evidence_row, args, scratches, options);
}

void run_blanket(const BlanketArgs& args, const RunOptions& options) {
    PerWorker<BlanketScratch> scratches(options.n_threads, sizes_of(args));
    run_rows(options.tier.blanket_row, args, scratches, options);
}

RelationCounts run_relation_counts(const CountArgs& args, const RunOptions& options) {
    PerWorker<CountScratch> scratches(options.n_threads, sizes_of(args));
    run_rows(options.tier.count_row, args, scratches, options);
    return merge(scratches.all(), args);
}

}  // namespace stea
