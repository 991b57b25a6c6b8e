#include "cosine_topk.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "cosine_bounds.h"
#include "cosine_lists.h"
#include "parallel_rows.h"

namespace stea {
namespace {

// What was computed in single precision is taken to be this much larger.
constexpr float kSlack = 1e-4F;
// Sums are counted in parts of the largest that a query may reach: 255 * 255 / 4, the largest product of norms.
// Rounding up adds less than 2.3 parts for every list that is walked, so that 15 bits hold it all.
constexpr double kParts = 16256.0;
constexpr int64_t kMostLists = 7000;
constexpr int64_t kSeeds = 3;       // times k targets are scored for a first threshold
constexpr int64_t kPromising = 16;  // times k, where a bound would not help
// Completing a sum takes as long as walking this many list entries.
constexpr int64_t kEntriesPerCompletion = 32;
constexpr int kAhead = 8;  // completions ahead of which memory is asked for

struct Scored {
    float score;
    int32_t target;
    bool operator<(const Scored& other) const {  // the better one is first
        return score != other.score ? score > other.score : target < other.target;
    }
};

// The best so far, in order.
class Best {
  public:
    explicit Best(int64_t k) : k_(static_cast<size_t>(k)) { entries_.reserve(k_ + 1); }

    void offer(Scored scored) {
        if (entries_.size() == k_ && !(scored < entries_.back())) return;
        entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), scored), scored);
        if (entries_.size() > k_) entries_.pop_back();
    }

    bool full() const { return entries_.size() == k_; }
    float least() const { return entries_.back().score; }
    void clear() { entries_.clear(); }
    const std::vector<Scored>& entries() const { return entries_; }

  private:
    size_t k_;
    std::vector<Scored> entries_;
};

void prefetch(const void* place) {
#if defined(__GNUC__)
    __builtin_prefetch(place);
#else
    (void)place;
#endif
}

// Searches for one query after the other.
class Searcher {
  public:
    Searcher(const CosineArgs& args, const CosineLists& lists)
        : args_(args),
          lists_(lists),
          bounds_(args.targets.rows),
          query_(static_cast<size_t>(args.num_columns)),
          rest_(static_cast<size_t>(lists.num_frequent())),
          best_(args.k) {}

    // Whether the budget ended the search.
    bool search(int64_t row) {
        const int64_t begin = args_.queries.indptr[row];
        columns_ = args_.queries.columns + begin;
        weights_ = args_.queries.weights + begin;
        size_ = args_.queries.indptr[row + 1] - begin;
        prepare();
        walk_lists();
        score_those_open();
        write(row);
        clear();
        return cut_;
    }

  private:
    void prepare() {
        threshold_ = args_.min_score;
        spent_ = 0;
        cut_ = false;
        split_ = 0;
        left_.assign(static_cast<size_t>(size_) + 1, 0.0F);
        const auto weight_part = static_cast<float>(lists_.most_weight() / kMostWeight);
        double squares = 0.0;
        for (int64_t i = size_; i-- > 0;) {
            squares += double{weights_[i]} * weights_[i];
            left_[static_cast<size_t>(i)] = static_cast<float>(std::sqrt(squares)) * (1.0F + kSlack);
            query_[static_cast<size_t>(columns_[i])] = weights_[i];
            if (columns_[i] >= lists_.first_frequent()) rest_of(columns_[i]) = weights_[i] * weight_part;
        }
        parts_ = size_ > 0 && lists_.most_norm() > 0.0 ? kParts / (left_[0] * lists_.most_norm()) : 0.0;
    }

    float& rest_of(int32_t column) { return rest_[static_cast<size_t>(column - lists_.first_frequent())]; }

    // Short lists first, then long ones for as long as it is cheaper to walk a list than to complete what is open.
    void walk_lists() {
        while (split_ < size_ && columns_[split_] < lists_.first_frequent() && walk()) {
        }
        cut_ = split_ < size_ && columns_[split_] < lists_.first_frequent();
        if (cut_) return take_promising();
        for (bool more = true;;) {
            more &= split_ < size_;
            const int64_t few = more ? few_for(lists_.length(columns_[split_])) : args_.targets.rows;
            look_through(few);
            if (static_cast<int64_t>(open_.size()) <= few) return;
            more = walk();
        }
    }

    // Those with the largest sums, where too much is left to bound what is missing.
    void take_promising() {
        bounds_.bound(lists_.frequent_norms(), 0);
        bounds_.gather(bounds_.reached_by(kPromising * args_.k), args_.targets.rows, open_);
        keep_largest(kPromising * args_.k);
    }

    void keep_largest(int64_t count) {
        if (static_cast<int64_t>(open_.size()) <= count) return;
        std::nth_element(open_.begin(), open_.begin() + count - 1, open_.end());
        open_.resize(static_cast<size_t>(count));
    }

    // So few are completed rather than that a list of this length is walked and all targets are looked through again.
    int64_t few_for(int64_t length) const { return 2 * (length + args_.targets.rows / 8) / kEntriesPerCompletion; }

    // Adds up the products of the next column. False if there is nothing left to spend.
    bool walk() {
        const int32_t column = columns_[split_];
        const int64_t length = lists_.length(column);
        if (spent_ + length > args_.budget || split_ == kMostLists) return false;
        spent_ += length;
        const int32_t* const targets = lists_.targets(column);
        const uint16_t* const weights = lists_.weights(column);
        const double parts = weights_[split_] * lists_.most_weight() * parts_;
        const auto weight = static_cast<uint32_t>(whole_above(parts * 65536.0 / kMostWeight, 65535.0));
        int16_t* const sums = bounds_.sums();
        for (int64_t i = 0; i < length; ++i) {
            sums[targets[i]] = static_cast<int16_t>(sums[targets[i]] + ((weights[i] * weight) >> 16) + 1);
        }
        if (column >= lists_.first_frequent()) rest_of(column) = 0.0F;
        ++split_;
        return true;
    }

    // Finds the targets that may be among the best: in open_, with their bounds, unless there are more than enough.
    void look_through(int64_t enough) {
        const double left = left_[static_cast<size_t>(split_)];
        const double parts = 4.0 * left * lists_.most_norm() * parts_ / kMostNorm;
        bounds_.bound(lists_.frequent_norms(), static_cast<int16_t>(left > 0.0 ? whole_above(parts, kMostNorm) : 0));
        raise_threshold();
        const double least = (double{threshold_} - kSlack) * parts_ - 1.0;
        bounds_.gather(static_cast<int16_t>(std::min(std::max(least, 1.0), 32767.0)), enough, open_);
    }

    // The k-th best score of some targets with large bounds: the k best have at least that.
    void raise_threshold() {
        const int64_t seeds = kSeeds * args_.k;
        bounds_.gather(bounds_.reached_by(seeds), kPromising * seeds, open_);
        if (static_cast<int64_t>(open_.size()) < args_.k) return;
        keep_largest(seeds);
        best_.clear();
        for (const Bound& bound : open_) best_.offer({exact(bound.target), bound.target});
        threshold_ = std::max(threshold_, best_.least());
        best_.clear();
    }

    void score_those_open() {
        const bool completable = !cut_;  // no short list is left out
        if (completable) spend_on_best();
        for (size_t i = 0; i < open_.size(); ++i) {
            if (i + kAhead < open_.size()) prefetch(lists_.frequent_begin(open_[i + kAhead].target));
            const int32_t target = open_[i].target;
            if (completable && completed(target) + kSlack < threshold_) continue;
            const float score = exact(target);
            if (score < args_.min_score) continue;
            best_.offer({score, target});
            if (best_.full()) threshold_ = std::max(threshold_, best_.least());
        }
    }

    // If there is not enough to spend on all that are open, those with the largest bounds remain.
    void spend_on_best() {
        const int64_t most = std::max(args_.k, (args_.budget - spent_) / kEntriesPerCompletion);
        cut_ |= static_cast<int64_t>(open_.size()) > most;
        keep_largest(most);
    }

    // The sum with the products of the frequent columns that have not been walked.
    float completed(int32_t target) const {
        float sum = static_cast<float>(bounds_.sum(target) / parts_);
        const Frequent* const end = lists_.frequent_end(target);
        for (const Frequent* entry = lists_.frequent_begin(target); entry < end; ++entry) {
            sum += rest_[entry->column] * static_cast<float>(entry->weight);
        }
        return sum;
    }

    float exact(int32_t target) const {
        const WeightedRows& targets = args_.targets;
        double sum = 0.0;
        for (int64_t i = targets.indptr[target]; i < targets.indptr[target + 1]; ++i) {
            sum += double{query_[static_cast<size_t>(targets.columns[i])]} * targets.weights[i];
        }
        return static_cast<float>(sum);
    }

    void write(int64_t row) {
        int32_t* const indices = args_.indices + row * args_.k;
        float* const scores = args_.scores + row * args_.k;
        std::fill(indices, indices + args_.k, -1);
        std::fill(scores, scores + args_.k, 0.0F);
        for (size_t i = 0; i < best_.entries().size(); ++i) {
            indices[i] = best_.entries()[i].target;
            scores[i] = best_.entries()[i].score;
        }
    }

    void clear() {
        for (int64_t i = 0; i < size_; ++i) {
            query_[static_cast<size_t>(columns_[i])] = 0.0F;
            if (columns_[i] >= lists_.first_frequent()) rest_of(columns_[i]) = 0.0F;
        }
        bounds_.clear();
        best_.clear();
    }

    const CosineArgs& args_;
    const CosineLists& lists_;
    CosineBounds bounds_;       // the sums of the products of the columns walked, in parts
    std::vector<float> query_;  // [columns] its weights
    std::vector<float> rest_;   // [frequent columns] its weights where the list has not been walked
    std::vector<float> left_;   // [size + 1] the norm of the query's columns from each on
    std::vector<Bound> open_;   // those that may be among the best, with their bounds
    Best best_;
    const int32_t* columns_ = nullptr;
    const float* weights_ = nullptr;
    int64_t size_ = 0;
    int64_t split_ = 0;  // the first column of the query whose list has not been walked
    int64_t spent_ = 0;
    double parts_ = 0.0;
    float threshold_ = 0.0F;
    bool cut_ = false;
};

}  // namespace

bool can_be_walked(const WeightedRows& rows) {
    bool good = true;
    for (int64_t row = 0; row < rows.rows; ++row) {
        for (int64_t i = rows.indptr[row]; i < rows.indptr[row + 1]; ++i) {
            good &= rows.weights[i] >= kLeastWeight;
            good &= i == rows.indptr[row] || rows.columns[i - 1] < rows.columns[i];
        }
    }
    return good;
}

int64_t run_cosine_topk(const CosineArgs& args, int n_threads, const std::function<bool()>& poll) {
    const CosineLists lists(args.targets, args.num_columns, poll);
    std::vector<Searcher> searchers(static_cast<size_t>(n_threads), Searcher(args, lists));
    std::atomic<int64_t> cut{0};
    const auto search = [&](int worker, int64_t row) {
        if (searchers[static_cast<size_t>(worker)].search(row)) ++cut;
    };
    const GraphView queries{args.queries.indptr, nullptr, args.queries.rows, args.queries.indptr[args.queries.rows]};
    parallel_rows(queries, {0, args.queries.rows}, n_threads, search, [](int) {}, poll);
    return cut;
}

}  // namespace stea
