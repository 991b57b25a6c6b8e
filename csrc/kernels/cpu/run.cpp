#include "run.h"

#include <memory>
#include <numeric>

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

struct PairCount {
    int32_t source_relation;
    int32_t target_relation;
    int64_t count;
};

// Orders by one of the relations; equal ones stay in their order.
std::vector<PairCount> counting_sort(const std::vector<PairCount>& entries, int32_t PairCount::* relation,
                                     size_t num_relations) {
    std::vector<size_t> place(num_relations + 1, 0);
    for (const PairCount& entry : entries) ++place[static_cast<size_t>(entry.*relation) + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    std::vector<PairCount> sorted(entries.size());
    for (const PairCount& entry : entries) sorted[place[static_cast<size_t>(entry.*relation)]++] = entry;
    return sorted;
}

// Here and below, free slots are written and then overwritten: which slots are free cannot be predicted.
void add_counts(CountScratch& sum, const CountScratch& other, size_t num_relations) {
    for (uint64_t i = 0; i <= other.num.mask; ++i) {
        sum.num.pending[sum.num.num_pending] = other.num.slots[i];
        sum.num.num_pending += other.num.slots[i].key >= 0;
        if (sum.num.num_pending == KeyCounter::kPending) sum.num.flush();
    }
    for (size_t r = 0; r < num_relations; ++r) sum.den.data[r] += other.den.data[r];
}

// Adds up the workers' counts.
CountScratch& total_counts(PerWorker<CountScratch>& scratches, const CountArgs& args) {
    CountScratch& sum = scratches.get(0);
    for (const auto& scratch : scratches.all()) {
        if (!scratch) continue;
        scratch->num.flush();
        if (scratch.get() != &sum) add_counts(sum, *scratch, static_cast<size_t>(args.num_source_relations));
    }
    sum.num.flush();
    return sum;
}

// Orders the counts by (r, r').
RelationCounts ordered(const CountScratch& sum, const CountArgs& args) {
    const auto num_relations = static_cast<size_t>(args.num_source_relations);
    const auto width = 2 * static_cast<int64_t>(args.num_target_relations);
    std::vector<PairCount> entries(static_cast<size_t>(sum.num.size) + 1);
    size_t found = 0;
    for (uint64_t i = 0; i <= sum.num.mask; ++i) {
        const KeyCount& slot = sum.num.slots[i];
        entries[found] = {static_cast<int32_t>(slot.key >> 32), static_cast<int32_t>(slot.key), slot.count};
        found += slot.key >= 0;
    }
    entries.resize(found);
    entries = counting_sort(entries, &PairCount::target_relation, static_cast<size_t>(width));
    entries = counting_sort(entries, &PairCount::source_relation, num_relations);
    RelationCounts counts;
    counts.den.assign(sum.den.data, sum.den.data + num_relations);
    counts.keys.reserve(entries.size());
    counts.num.reserve(entries.size());
    for (const PairCount& entry : entries) {
        counts.keys.push_back(entry.source_relation * width + entry.target_relation);
        counts.num.push_back(entry.count);
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

void run_proposals(const ProposalArgs& args, const RunOptions& options) {
    PerWorker<ProposalScratch> scratches(options.n_threads, sizes_of(args));
    run_rows(options.tier.proposal_row, args, scratches, options);
}

RelationCounts run_relation_counts(const CountArgs& args, const RunOptions& options) {
    PerWorker<CountScratch> scratches(options.n_threads, sizes_of(args));
    run_rows(options.tier.count_row, args, scratches, options);
    return ordered(total_counts(scratches, args), args);
}

}  // namespace stea
