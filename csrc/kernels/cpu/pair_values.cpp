// Values over the pair set: best, sums, probabilities, balancing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "../pair_set.h"
#include "over_groups.h"
#include "parallel_tasks.h"

namespace stea {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct Place {
    double value;
    int32_t place;
};

// The k > 0 best of what is offered, best first. Places come in increasing order: of equal values the first stays
// ahead.
class Best {
  public:
    void restart(size_t k, double least) {
        if (list_.size() < k) list_.resize(k);
        k_ = k;
        size_ = 0;
        bound_ = least;
    }

    void offer(double value, int32_t place) {
        if (!(value > bound_)) return;
        size_t at = size_ < k_ ? size_++ : k_ - 1;
        for (; at > 0 && value > list_[at - 1].value; --at) list_[at] = list_[at - 1];
        list_[at] = {value, place};
        if (size_ == k_) bound_ = list_[k_ - 1].value;
    }

    int64_t write(int32_t* places) const {
        std::transform(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(size_), places,
                       [](const Place& item) { return item.place; });
        return static_cast<int64_t>(size_);
    }

  private:
    std::vector<Place> list_;
    size_t k_ = 0;
    size_t size_ = 0;
    double bound_ = 0.0;  // what is not above it does not get in
};

double largest(const Groups& groups, const double* values, int64_t group) {
    double most = kMinusInfinity;
    for (int64_t i = groups.indptr[group]; i < groups.indptr[group + 1]; ++i) {
        most = std::max(most, values[groups.place(i)]);
    }
    return most;
}

// Slices of about equally many pairs: bounds in rows.
std::vector<int64_t> slices_of(const PairRows& pairs) {
    constexpr int64_t kMostSlices = 8;
    constexpr int64_t kLeastPairs = 1 << 14;
    // Each has a number for every column, which must not cost more than its pairs do.
    const int64_t pairs_of_a_slice = std::max(kLeastPairs, pairs.num_columns);
    const int64_t count = std::clamp<int64_t>(pairs.size() / pairs_of_a_slice, 1, kMostSlices);
    std::vector<int64_t> bounds;
    for (int64_t slice = 0; slice < count; ++slice) {
        const int64_t first = pairs.size() / count * slice;
        bounds.push_back(std::lower_bound(pairs.indptr, pairs.indptr + pairs.rows, first) - pairs.indptr);
    }
    bounds.push_back(pairs.rows);
    return bounds;
}

// Calls task(begin, end) for all of `count` numbers, some of them at a time.
template <typename Task>
void over_numbers(int64_t count, const PairOptions& options, Task&& task) {
    constexpr int64_t kAtOnce = 1 << 14;
    parallel_tasks((count + kAtOnce - 1) / kAtOnce, options.n_threads,
                   [&](int, int64_t part) { task(part * kAtOnce, std::min((part + 1) * kAtOnce, count)); });
    if (options.poll()) throw Interrupted{};
}

double at_least(double value) { return std::max(value, kLeastValue); }

// Scales the rows of a slice, and adds what becomes of their pairs to the sums of the columns.
void scale_slice(const PairRows& pairs, const double* values, const double* tails, const double* column_factors,
                 int64_t first, int64_t last, double* row_factors, double* __restrict sums) {
    for (int64_t row = first; row < last; ++row) {
        const int64_t begin = pairs.indptr[row];
        const int64_t end = pairs.indptr[row + 1];
        double total = tails[row];
        for (int64_t i = begin; i < end; ++i) total += at_least(values[i]) * column_factors[pairs.columns[i]];
        if (!(total > 0.0)) total = 1.0;  // all has underflowed: as it was
        const double a = row_factors[row] = 1.0 / total;
        for (int64_t i = begin; i < end; ++i) sums[pairs.columns[i]] += at_least(values[i]) * a;
    }
}

}  // namespace

LooseRows best_places(const Groups& groups, const double* values, int64_t k, double least, const PairOptions& options) {
    const auto count = static_cast<size_t>(groups.count);
    LooseRows best{std::vector<int64_t>(count + 1, 0), std::vector<int64_t>(count), {}};
    int64_t room = 0;
    for (size_t group = 0; group < count; ++group) {
        best.begin[group] = room;
        room += std::min(k, groups.indptr[group + 1] - groups.indptr[group]);
    }
    best.numbers.resize(static_cast<size_t>(room));
    if (k == 0) return best;
    WorkerLocal<Best> scratch(options.n_threads);
    over_groups(groups.indptr, groups.count, options, [&](int worker, int64_t group) {
        const int64_t begin = groups.indptr[group];
        const int64_t end = groups.indptr[group + 1];
        Best& found = scratch.of(worker);
        found.restart(static_cast<size_t>(std::min(k, end - begin)), least);
        for (int64_t i = begin; i < end; ++i) {
            const auto place = static_cast<int32_t>(groups.place(i));
            found.offer(values[place], place);
        }
        const auto at = static_cast<size_t>(group);
        best.indptr[at + 1] = found.write(best.numbers.data() + best.begin[at]);
    });
    std::partial_sum(best.indptr.begin(), best.indptr.end(), best.indptr.begin());
    return best;
}

void log_sum_exp(const Groups& groups, const double* values, double* sums, const PairOptions& options) {
    WorkerLocal<std::vector<double>> scratch(options.n_threads);
    over_groups(groups.indptr, groups.count, options, [&](int worker, int64_t group) {
        constexpr double kNothing = -40.0;  // exp of it is a 25th of the last digit of a sum that is at least 1
        const int64_t begin = groups.indptr[group];
        const auto size = static_cast<size_t>(groups.indptr[group + 1] - begin);
        std::vector<double>& found = scratch.of(worker);  // side by side: they are read twice
        if (found.size() < size) found.resize(size);
        double most = kMinusInfinity;
        for (size_t i = 0; i < size; ++i) {
            found[i] = values[groups.place(begin + static_cast<int64_t>(i))];
            most = std::max(most, found[i]);
        }
        double sum = 0.0;
        if (most > kMinusInfinity) {
            for (size_t i = 0; i < size; ++i) {
                if (found[i] - most > kNothing) sum += std::exp(found[i] - most);
            }
        }
        sums[group] = sum > 0.0 ? most + std::log(sum) : kMinusInfinity;
    });
}

void joint_probabilities(const PairRows& pairs, const double* values, const double* row_sums, const double* column_sums,
                         double* probs, const PairOptions& options) {
    over_groups(pairs.indptr, pairs.rows, options, [&](int, int64_t row) {
        for (int64_t i = pairs.indptr[row]; i < pairs.indptr[row + 1]; ++i) {
            const double twice = (values[i] - row_sums[row]) + (values[i] - column_sums[pairs.columns[i]]);
            probs[i] = std::exp(std::min(0.5 * twice, 0.0));
        }
    });
}

void largest_values(const Groups& groups, const double* values, double* most, const PairOptions& options) {
    over_groups(groups.indptr, groups.count, options,
                [&](int, int64_t group) { most[group] = largest(groups, values, group); });
}

void mutual_best(const PairRows& pairs, const double* values, const double* largest_of_columns, uint8_t* best,
                 const PairOptions& options) {
    const Groups by_row{pairs.indptr, nullptr, pairs.rows};
    over_groups(pairs.indptr, pairs.rows, options, [&](int, int64_t row) {
        const double most_of_row = largest(by_row, values, row);
        for (int64_t i = pairs.indptr[row]; i < pairs.indptr[row + 1]; ++i) {
            best[i] = values[i] == most_of_row && values[i] == largest_of_columns[pairs.columns[i]];
        }
    });
}

void scale_rows(const PairRows& pairs, const double* values, const double* tails, const double* column_factors,
                double* row_factors, double* sums, const PairOptions& options) {
    const std::vector<int64_t> bounds = slices_of(pairs);
    const auto slices = static_cast<int64_t>(bounds.size()) - 1;
    // Of all slices but the first; each sets its own to zero.
    const std::unique_ptr<double[]> others(new double[static_cast<size_t>((slices - 1) * pairs.num_columns)]);
    const auto sums_of = [&](int64_t slice) {
        return slice == 0 ? sums : others.get() + (slice - 1) * pairs.num_columns;
    };
    parallel_tasks(slices, options.n_threads, [&](int, int64_t slice) {
        const auto i = static_cast<size_t>(slice);
        std::fill_n(sums_of(slice), pairs.num_columns, 0.0);
        scale_slice(pairs, values, tails, column_factors, bounds[i], bounds[i + 1], row_factors, sums_of(slice));
    });
    constexpr int64_t kColumns = 1 << 12;
    const int64_t tasks = (pairs.num_columns + kColumns - 1) / kColumns;
    parallel_tasks(tasks, options.n_threads, [&](int, int64_t task) {
        const int64_t end = std::min((task + 1) * kColumns, pairs.num_columns);
        for (int64_t slice = 1; slice < slices; ++slice) {
            for (int64_t column = task * kColumns; column < end; ++column) sums[column] += sums_of(slice)[column];
        }
    });
    if (options.poll()) throw Interrupted{};
}

void scale_pairs(const PairRows& pairs, const double* values, const double* row_factors, const double* column_factors,
                 double* scaled, const PairOptions& options) {
    over_groups(pairs.indptr, pairs.rows, options, [&](int, int64_t row) {
        for (int64_t i = pairs.indptr[row]; i < pairs.indptr[row + 1]; ++i) {
            const double value = at_least(values[i]) * row_factors[row] * column_factors[pairs.columns[i]];
            scaled[i] = std::min(at_least(value), 1.0);
        }
    });
}

void weigh_pairs(const float* evidence, const int32_t* witnesses, const double* logits, int64_t count,
                 EvidenceWeights weights, double* totals, const PairOptions& options) {
    over_numbers(count, options, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const double of_evidence = static_cast<double>(evidence[i]) * weights.weight;
            totals[i] = of_evidence * (witnesses[i] == 1 ? weights.lone : 1.0) + logits[i];
        }
    });
}

void damp_pairs(const double* values, int64_t count, const double* earlier, const int32_t* places, double share,
                double* damped, const PairOptions& options) {
    over_numbers(count, options, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const double old = places[i] < 0 ? 0.0 : earlier[places[i]];
            damped[i] = (1.0 - share) * values[i] + share * old;
        }
    });
}

}  // namespace stea
