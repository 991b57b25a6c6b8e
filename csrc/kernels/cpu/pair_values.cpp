// Values over the pair set: best, sums, probabilities, balancing.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
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

bool is_better(const Place& a, const Place& b) {
    return a.value > b.value || (a.value == b.value && a.place < b.place);
}

double largest(const Groups& groups, const double* values, int64_t group) {
    double most = kMinusInfinity;
    for (int64_t i = groups.indptr[group]; i < groups.indptr[group + 1]; ++i) {
        most = std::max(most, values[groups.place(i)]);
    }
    return most;
}

// Shards of about equally many pairs: bounds in rows.
std::vector<int64_t> shards_of(const PairRows& pairs) {
    constexpr int64_t kMostShards = 8;  // each has a number for every column
    constexpr int64_t kPairsOfAShard = 1 << 14;
    const int64_t count = std::clamp<int64_t>(pairs.size() / kPairsOfAShard, 1, kMostShards);
    std::vector<int64_t> bounds;
    for (int64_t shard = 0; shard < count; ++shard) {
        const int64_t first = pairs.size() / count * shard;
        bounds.push_back(std::lower_bound(pairs.indptr, pairs.indptr + pairs.rows, first) - pairs.indptr);
    }
    bounds.push_back(pairs.rows);
    return bounds;
}

// The scaling of rows and columns, in turn.
class Balance {
  public:
    Balance(const PairRows& pairs, const double* values, const double* row_tails, const double* column_tails)
        : pairs_(pairs),
          values_(values),
          row_tails_(row_tails),
          column_tails_(column_tails),
          bounds_(shards_of(pairs)),
          sums_((bounds_.size() - 1) * static_cast<size_t>(pairs.num_columns)),
          a_(static_cast<size_t>(pairs.rows), 1.0),
          b_(static_cast<size_t>(pairs.num_columns), 1.0) {}

    void iterate(const PairOptions& options) {
        const auto shards = static_cast<int64_t>(bounds_.size()) - 1;
        parallel_tasks(shards, options.n_threads, [this](int, int64_t shard) { scale_rows(shard); });
        constexpr int64_t kColumns = 1 << 12;
        const int64_t tasks = (pairs_.num_columns + kColumns - 1) / kColumns;
        parallel_tasks(tasks, options.n_threads, [this](int, int64_t task) {
            scale_columns(task * kColumns, std::min((task + 1) * kColumns, pairs_.num_columns));
        });
        const auto now = std::chrono::steady_clock::now();
        if (now - last_poll_ < std::chrono::milliseconds(100)) return;
        last_poll_ = now;
        if (options.poll()) throw Interrupted{};
    }

    double scaled(int64_t row, int64_t pair) const {
        const double value = value_at(pair) * a_[static_cast<size_t>(row)];
        return std::min(std::max(value * b_[static_cast<size_t>(pairs_.columns[pair])], kLeastValue), 1.0);
    }

  private:
    double value_at(int64_t pair) const { return std::max(values_[pair], kLeastValue); }

    double* sums_of(int64_t shard) { return sums_.data() + shard * pairs_.num_columns; }

    void scale_rows(int64_t shard) {
        double* __restrict sums = sums_of(shard);
        std::fill_n(sums, pairs_.num_columns, 0.0);
        for (int64_t row = bounds_[static_cast<size_t>(shard)]; row < bounds_[static_cast<size_t>(shard) + 1]; ++row) {
            const int64_t begin = pairs_.indptr[row];
            const int64_t end = pairs_.indptr[row + 1];
            double total = row_tails_[row];
            for (int64_t i = begin; i < end; ++i) total += value_at(i) * b_[static_cast<size_t>(pairs_.columns[i])];
            if (!(total > 0.0)) total = 1.0;  // all has underflowed: as it was
            const double a = a_[static_cast<size_t>(row)] = 1.0 / total;
            for (int64_t i = begin; i < end; ++i) sums[pairs_.columns[i]] += value_at(i) * a;
        }
    }

    void scale_columns(int64_t begin, int64_t end) {
        const auto shards = static_cast<int64_t>(bounds_.size()) - 1;
        for (int64_t column = begin; column < end; ++column) {
            double total = column_tails_[column];
            for (int64_t shard = 0; shard < shards; ++shard) total += sums_of(shard)[column];
            b_[static_cast<size_t>(column)] = total > 0.0 ? 1.0 / total : 1.0;
        }
    }

    const PairRows& pairs_;
    const double* values_;
    const double* row_tails_;
    const double* column_tails_;
    const std::vector<int64_t> bounds_;
    std::vector<double> sums_;  // [shards, columns]
    std::vector<double> a_;
    std::vector<double> b_;
    std::chrono::steady_clock::time_point last_poll_ = std::chrono::steady_clock::now();
};

}  // namespace

void count_best(const Groups& groups, const double* values, int64_t k, double least, int64_t* indptr,
                const PairOptions& options) {
    indptr[0] = 0;
    over_groups(groups.indptr, groups.count, options, [&](int, int64_t group) {
        int64_t found = 0;
        for (int64_t i = groups.indptr[group]; i < groups.indptr[group + 1]; ++i) {
            found += values[groups.place(i)] > least;
        }
        indptr[group + 1] = std::min(found, k);
    });
    std::partial_sum(indptr, indptr + groups.count + 1, indptr);
}

void write_best(const Groups& groups, const double* values, double least, const int64_t* indptr, int32_t* places,
                const PairOptions& options) {
    WorkerLocal<std::vector<Place>> scratch(options.n_threads);
    over_groups(groups.indptr, groups.count, options, [&](int worker, int64_t group) {
        std::vector<Place>& found = scratch.of(worker);
        found.clear();
        for (int64_t i = groups.indptr[group]; i < groups.indptr[group + 1]; ++i) {
            const auto place = static_cast<int32_t>(groups.place(i));
            if (values[place] > least) found.push_back({values[place], place});
        }
        const int64_t kept = indptr[group + 1] - indptr[group];
        std::partial_sort(found.begin(), found.begin() + kept, found.end(), is_better);
        for (int64_t i = 0; i < kept; ++i) places[indptr[group] + i] = found[static_cast<size_t>(i)].place;
    });
}

void log_sum_exp(const Groups& groups, const double* values, double* sums, const PairOptions& options) {
    over_groups(groups.indptr, groups.count, options, [&](int, int64_t group) {
        const double most = largest(groups, values, group);
        double sum = 0.0;
        if (most > kMinusInfinity) {
            for (int64_t i = groups.indptr[group]; i < groups.indptr[group + 1]; ++i) {
                sum += std::exp(values[groups.place(i)] - most);
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

void mutual_best(const PairRows& pairs, const Groups& by_column, const double* values, uint8_t* best,
                 const PairOptions& options) {
    std::vector<double> most(static_cast<size_t>(by_column.count));
    over_groups(by_column.indptr, by_column.count, options,
                [&](int, int64_t column) { most[static_cast<size_t>(column)] = largest(by_column, values, column); });
    const Groups by_row{pairs.indptr, nullptr, pairs.rows};
    over_groups(pairs.indptr, pairs.rows, options, [&](int, int64_t row) {
        const double most_of_row = largest(by_row, values, row);
        for (int64_t i = pairs.indptr[row]; i < pairs.indptr[row + 1]; ++i) {
            best[i] = values[i] == most_of_row && values[i] == most[static_cast<size_t>(pairs.columns[i])];
        }
    });
}

void balance(const PairRows& pairs, const double* values, const double* row_tails, const double* column_tails,
             int64_t times, double* balanced, const PairOptions& options) {
    Balance scaling(pairs, values, row_tails, column_tails);
    for (int64_t i = 0; i < times; ++i) scaling.iterate(options);
    over_groups(pairs.indptr, pairs.rows, options, [&](int, int64_t row) {
        for (int64_t i = pairs.indptr[row]; i < pairs.indptr[row + 1]; ++i) balanced[i] = scaling.scaled(row, i);
    });
}

}  // namespace stea
