#include "cosine_topk.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "parallel_rows.h"

namespace stea {
namespace {

// Sums on the way are in single precision: a bound is taken to be this much larger.
constexpr float kSlack = 1e-4F;
// A list is long with more than this times the square root of the targets: measured on names of 20,000 to a million.
constexpr double kLongList = 10.0;
constexpr double kShortList = 1000.0;  // never long
constexpr int64_t kFirstRaise = 2000;  // list entries walked before a threshold is first looked for
constexpr int64_t kRowsBetweenPolls = 1 << 14;

struct Posting {
    int32_t target;
    float weight;
    float left;  // the norm of the target's columns from this one on
};

// A frequent column of a target.
struct Frequent {
    int32_t column;
    float weight;
};

// The targets by columns, and the frequent columns by targets. From `first_frequent` on there are columns with long
// lists; in these lists the targets that have most left come first.
class Lists {
  public:
    Lists(const CosineArgs& args, int n_threads, const std::function<bool()>& poll)
        : begin_(static_cast<size_t>(args.num_columns) + 1),
          frequent_begin_(static_cast<size_t>(args.targets.rows) + 1) {
        const WeightedRows& targets = args.targets;
        const int64_t size = targets.indptr[targets.rows];
        postings_.resize(static_cast<size_t>(size));
        for (int64_t i = 0; i < size; ++i) ++begin_[static_cast<size_t>(targets.columns[i]) + 1];
        for (size_t c = 1; c < begin_.size(); ++c) begin_[c] += begin_[c - 1];
        const double long_list = std::max(kShortList, kLongList * std::sqrt(static_cast<double>(targets.rows)));
        first_frequent_ = 0;
        while (first_frequent_ < args.num_columns && length(first_frequent_) <= long_list) ++first_frequent_;
        fill(targets, poll);
        const auto sort = [this](int, int64_t column) {
            std::sort(postings_.begin() + begin_[column], postings_.begin() + begin_[column + 1], more_left);
        };
        const GraphView lists{begin_.data(), nullptr, args.num_columns, size};
        parallel_rows(lists, {first_frequent_, args.num_columns}, n_threads, sort, [](int) {}, poll);
    }

    const Posting* begin(int32_t column) const { return postings_.data() + begin_[static_cast<size_t>(column)]; }
    const Posting* end(int32_t column) const { return postings_.data() + begin_[static_cast<size_t>(column) + 1]; }

    int64_t length(int32_t column) const { return end(column) - begin(column); }

    int32_t first_frequent() const { return first_frequent_; }
    const Frequent* frequent_begin(int32_t target) const { return frequent_.data() + frequent_begin_[target]; }
    const Frequent* frequent_end(int32_t target) const { return frequent_.data() + frequent_begin_[target + 1]; }
    float frequent_norm(int32_t target) const { return frequent_norm_[static_cast<size_t>(target)]; }

  private:
    static bool more_left(const Posting& a, const Posting& b) {
        return a.left != b.left ? a.left > b.left : a.target < b.target;
    }

    void fill(const WeightedRows& targets, const std::function<bool()>& poll) {
        std::vector<int64_t> next(begin_.begin(), begin_.end() - 1);
        for (int64_t row = 0; row < targets.rows; ++row) {
            if (row % kRowsBetweenPolls == 0 && poll()) throw Interrupted{};
            double squares = 0.0;
            float norm = 0.0F;
            for (int64_t i = targets.indptr[row + 1]; i-- > targets.indptr[row];) {
                squares += double{targets.weights[i]} * targets.weights[i];
                const int64_t place = next[static_cast<size_t>(targets.columns[i])]++;
                postings_[static_cast<size_t>(place)] = {static_cast<int32_t>(row), targets.weights[i],
                                                         static_cast<float>(std::sqrt(squares))};
                if (targets.columns[i] < first_frequent_) continue;
                frequent_.push_back({targets.columns[i], targets.weights[i]});
                norm = static_cast<float>(std::sqrt(squares));
            }
            frequent_norm_.push_back(norm);
            frequent_begin_[static_cast<size_t>(row) + 1] = static_cast<int64_t>(frequent_.size());
        }
    }

    std::vector<int64_t> begin_;
    std::vector<Posting> postings_;
    std::vector<int64_t> frequent_begin_;
    std::vector<Frequent> frequent_;
    std::vector<float> frequent_norm_;
    int32_t first_frequent_ = 0;
};

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

// Lists lead to places all over the memory, which is asked for some entries ahead.
constexpr int kAhead = 8;

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
    Searcher(const CosineArgs& args, const Lists& lists)
        : args_(args),
          lists_(lists),
          sums_(static_cast<size_t>(args.targets.rows)),
          query_(static_cast<size_t>(args.num_columns)),
          best_(args.k) {}

    // Whether the budget ended the walk.
    bool search(int64_t row) {
        const int64_t begin = args_.queries.indptr[row];
        columns_ = args_.queries.columns + begin;
        weights_ = args_.queries.weights + begin;
        size_ = args_.queries.indptr[row + 1] - begin;
        prepare();
        const bool whole = add_up_short_lists() && meet_in_long_lists();
        score_those_met();
        write(row);
        clear();
        return !whole;
    }

  private:
    void prepare() {
        threshold_ = args_.min_score;
        walked_ = 0;
        left_.assign(static_cast<size_t>(size_) + 1, 0.0F);
        double squares = 0.0;
        for (int64_t i = size_; i-- > 0;) {
            squares += double{weights_[i]} * weights_[i];
            left_[static_cast<size_t>(i)] = static_cast<float>(std::sqrt(squares)) * (1.0F + kSlack);
            query_[static_cast<size_t>(columns_[i])] = weights_[i];
        }
    }

    // The products of those met are added up. A target is met where it has enough left to reach the threshold.
    bool add_up_short_lists() {
        int64_t raise_at = kFirstRaise;
        for (split_ = 0; split_ < size_; ++split_) {
            const Posting* const end = lists_.end(columns_[split_]);
            if (columns_[split_] >= lists_.first_frequent()) break;
            if ((walked_ += lists_.length(columns_[split_])) > args_.budget) return false;
            if (walked_ > raise_at) {
                raise_threshold();
                raise_at = 2 * walked_;
            }
            const float weight = weights_[split_];
            const float needed = threshold_ / left_[static_cast<size_t>(split_)];
            for (const Posting* posting = lists_.begin(columns_[split_]); posting < end; ++posting) {
                if (end - posting > kAhead) prefetch(&sums_[static_cast<size_t>(posting[kAhead].target)]);
                float& sum = sums_[static_cast<size_t>(posting->target)];
                if (sum == 0.0F) {
                    if (posting->left < needed) continue;
                    met_.push_back(posting->target);
                }
                sum += weight * posting->weight;
            }
        }
        return true;
    }

    // In a long list, those that have enough left come first, and nothing is added up.
    bool meet_in_long_lists() {
        raise_threshold();
        size_t raise_at = 2 * met_.size() + 512;
        for (int64_t i = split_; i < size_ && left_[static_cast<size_t>(i)] >= threshold_; ++i) {
            const float needed = threshold_ / left_[static_cast<size_t>(i)];
            const Posting* const end = lists_.end(columns_[i]);
            for (const Posting* posting = lists_.begin(columns_[i]); posting < end && posting->left >= needed;
                 ++posting) {
                if (++walked_ > args_.budget) return false;
                float& sum = sums_[static_cast<size_t>(posting->target)];
                if (sum != 0.0F) continue;
                met_.push_back(posting->target);
                sum = kLeastWeight * kLeastWeight;
            }
            if (met_.size() > raise_at) {
                raise_threshold();
                raise_at = 2 * met_.size();
            }
        }
        return true;
    }

    // The least score of the k targets whose sums are largest by now: the k best have at least that.
    void raise_threshold() {
        if (static_cast<int64_t>(met_.size()) < args_.k) return;
        best_.clear();
        for (const int32_t target : met_) best_.offer({sums_[static_cast<size_t>(target)], target});
        float least = 2.0F;
        for (const Scored& scored : best_.entries()) least = std::min(least, exact(scored.target));
        threshold_ = std::max(threshold_, least - kSlack);
        best_.clear();
    }

    void score_those_met() {
        open_.clear();
        for (const int32_t target : met_) {
            const float most = left_[static_cast<size_t>(split_)] * lists_.frequent_norm(target);
            if (sums_[static_cast<size_t>(target)] + most + kSlack < threshold_) continue;
            open_.push_back({sums_[static_cast<size_t>(target)] + most + kSlack, target});
        }
        for (size_t i = 0; i < open_.size(); ++i) {
            if (i + kAhead < open_.size()) prefetch(lists_.frequent_begin(open_[i + kAhead].target));
            const int32_t target = open_[i].target;
            if (open_[i].score < threshold_ || completed(target) + kSlack < threshold_) continue;
            const float score = exact(target);
            if (score < args_.min_score) continue;
            best_.offer({score, target});
            if (best_.full()) threshold_ = std::max(threshold_, best_.least());
        }
    }

    // The sum with the products of the frequent columns.
    float completed(int32_t target) const {
        float sum = sums_[static_cast<size_t>(target)];
        const Frequent* const end = lists_.frequent_end(target);
        for (const Frequent* entry = lists_.frequent_begin(target); entry < end; ++entry) {
            sum += query_[static_cast<size_t>(entry->column)] * entry->weight;
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
        for (int64_t i = 0; i < size_; ++i) query_[static_cast<size_t>(columns_[i])] = 0.0F;
        for (const int32_t target : met_) sums_[static_cast<size_t>(target)] = 0.0F;
        met_.clear();
        best_.clear();
    }

    const CosineArgs& args_;
    const Lists& lists_;
    std::vector<float> sums_;   // [targets] of the products of columns that are not frequent; above 0 = met
    std::vector<float> query_;  // [columns] its weights; both are all zero between two queries
    std::vector<int32_t> met_;
    std::vector<float> left_;   // [size + 1] the norm of the query's columns from each on
    std::vector<Scored> open_;  // those met that may be among the best, with what they score at most
    Best best_;
    const int32_t* columns_ = nullptr;
    const float* weights_ = nullptr;
    int64_t size_ = 0;
    int64_t split_ = 0;  // the first column of the query that is frequent
    int64_t walked_ = 0;
    float threshold_ = 0.0F;
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
    const Lists lists(args, n_threads, poll);
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
