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

// Inserts into the k best, best first. Places come in increasing order: of equal values the first stays ahead.
void insert_best(std::vector<Place>& best, size_t k, Place item) {
    if (best.size() == k) {
        if (!(item.value > best.back().value)) return;
        best.pop_back();
    }
    const auto worse =
        std::find_if(best.rbegin(), best.rend(), [&](const Place& other) { return !(item.value > other.value); });
    best.insert(worse.base(), item);
}

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
    WorkerLocal<std::vector<Place>> scratch(options.n_threads);
    over_groups(groups.indptr, groups.count, options, [&](int worker, int64_t group) {
        std::vector<Place>& found = scratch.of(worker);
        found.clear();
        for (int64_t i = groups.indptr[group]; i < groups.indptr[group + 1]; ++i) {
            const auto place = static_cast<int32_t>(groups.place(i));
            if (values[place] > least) insert_best(found, static_cast<size_t>(k), {values[place], place});
        }
        const auto at = static_cast<size_t>(group);
        int32_t* const out = best.numbers.data() + best.begin[at];
        std::transform(found.begin(), found.end(), out, [](const Place& item) { return item.place; });
        best.indptr[at + 1] = static_cast<int64_t>(found.size());
    });
    std::partial_sum(best.indptr.begin(), best.indptr.end(), best.indptr.begin());
    return best;
}

void log_sum_exp(const Groups& groups, const double* values, double* sums, const PairOptions& options) {
    over_groups(groups.indptr, groups.count, options, [&](int, int64_t group) {
        constexpr double kNothing = -40.0;  // exp of it is a 25th of the last digit of a sum that is at least 1
        const double most = largest(groups, values, group);
        double sum = 0.0;
        if (most > kMinusInfinity) {
            for (int64_t i = groups.indptr[group]; i < groups.indptr[group + 1]; ++i) {
                const double below = values[groups.place(i)] - most;
                if (below > kNothing) sum += std::exp(below);
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

}  // namespace stea
