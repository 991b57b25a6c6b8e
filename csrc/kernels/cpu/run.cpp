#include "run.h"

#include <algorithm>
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

  private:
    const Sizes sizes_;
    std::vector<std::unique_ptr<Scratch>> scratches_;
};

template <typename Args>
Sizes sizes_of(const Args& args) {
    return {args.target.num_entities, args.num_source_relations, args.num_target_relations};
}

// Runs `row_kernel` on every row of the range, and `finish` on every worker's scratch at the end.
template <typename Scratch, typename Args>
void run_rows(
    void (*row_kernel)(const Args&, Scratch&, int64_t), const Args& args, const RunOptions& options,
    const std::function<void(int, Scratch&)>& finish = [](int, Scratch&) {}) {
    PerWorker<Scratch> scratches(options.n_threads, sizes_of(args));
    parallel_rows(
        args.source, args.rows, options.n_threads,
        [&](int worker, int64_t row) { row_kernel(args, scratches.get(worker), row); },
        [&](int worker) { finish(worker, scratches.get(worker)); }, options.poll);
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

// One worker's counts, by (r, r'). Free slots are written and then overwritten: which are free cannot be predicted.
RelationCounts ordered(CountScratch& scratch, const CountArgs& args) {
    const auto num_relations = static_cast<size_t>(args.num_source_relations);
    const auto width = 2 * static_cast<int64_t>(args.num_target_relations);
    scratch.num.flush();
    std::vector<PairCount> entries(static_cast<size_t>(scratch.num.size) + 1);
    size_t found = 0;
    for (uint64_t i = 0; i <= scratch.num.mask; ++i) {
        const KeyCount& slot = scratch.num.slots[i];
        entries[found] = {static_cast<int32_t>(slot.key >> 32), static_cast<int32_t>(slot.key), slot.count};
        found += slot.key >= 0;
    }
    entries.resize(found);
    entries = counting_sort(entries, &PairCount::target_relation, static_cast<size_t>(width));
    entries = counting_sort(entries, &PairCount::source_relation, num_relations);
    RelationCounts counts;
    counts.den.assign(scratch.den.data, scratch.den.data + num_relations);
    counts.keys.reserve(entries.size());
    counts.num.reserve(entries.size());
    for (const PairCount& entry : entries) {
        counts.keys.push_back(entry.source_relation * width + entry.target_relation);
        counts.num.push_back(entry.count);
    }
    return counts;
}

// Without a branch on the order of the keys, which cannot be predicted.
RelationCounts sum_of(const RelationCounts& a, const RelationCounts& b) {
    RelationCounts sum;
    sum.keys.resize(a.keys.size() + b.keys.size());
    sum.num.resize(sum.keys.size());
    size_t i = 0, j = 0, size = 0;
    while (i < a.keys.size() && j < b.keys.size()) {
        const int64_t from_a = a.keys[i] <= b.keys[j];
        const int64_t from_b = b.keys[j] <= a.keys[i];
        sum.keys[size] = std::min(a.keys[i], b.keys[j]);
        sum.num[size++] = (a.num[i] & -from_a) + (b.num[j] & -from_b);
        i += static_cast<size_t>(from_a);
        j += static_cast<size_t>(from_b);
    }
    for (; i < a.keys.size(); ++i, ++size) sum.keys[size] = a.keys[i], sum.num[size] = a.num[i];
    for (; j < b.keys.size(); ++j, ++size) sum.keys[size] = b.keys[j], sum.num[size] = b.num[j];
    sum.keys.resize(size);
    sum.num.resize(size);
    sum.den = a.den;
    for (size_t r = 0; r < b.den.size(); ++r) sum.den[r] += b.den[r];
    return sum;
}

}  // namespace

void run_evidence(const EvidenceArgs& args, const RunOptions& options) {
    run_rows(options.tier.evidence_row, args, options);
}

void run_blanket(const BlanketArgs& args, const RunOptions& options) {
    run_rows(options.tier.blanket_row, args, options);
}

void run_proposals(const ProposalArgs& args, const RunOptions& options) {
    run_rows(options.tier.proposal_row, args, options);
}

RelationCounts run_relation_counts(const CountArgs& args, const RunOptions& options) {
    std::vector<RelationCounts> parts(static_cast<size_t>(options.n_threads));
    run_rows<CountScratch>(options.tier.count_row, args, options, [&](int worker, CountScratch& scratch) {
        parts[static_cast<size_t>(worker)] = ordered(scratch, args);
    });
    RelationCounts sum = std::move(parts[0]);
    for (size_t worker = 1; worker < parts.size(); ++worker) {
        if (!parts[worker].den.empty()) sum = sum_of(sum, parts[worker]);
    }
    return sum;
}

}  // namespace stea
