#include "pair_set_functions.h"

#include <pybind11/stl.h>

#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../kernels/cpu/isa.h"
#include "../kernels/cpu/pair_products.h"
#include "../kernels/pair_set.h"
#include "arrays.h"
#include "gil.h"

namespace stea {
namespace {

using Order = std::optional<Array<int32_t>>;

// Positions of pairs are int32.
void check_size(int64_t pairs) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    expect(pairs <= kMost,
           "a pair set holds at most " + std::to_string(kMost) + " pairs, not " + std::to_string(pairs));
}

void check_columns(int64_t num_columns) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    expect(0 <= num_columns && num_columns <= kMost,
           "num_columns must be in [0, 2^31), not " + std::to_string(num_columns));
}

PairRows rows_of(const Array<int64_t>& indptr, const Array<int32_t>& columns, int64_t num_columns) {
    expect(indptr.size() >= 1, "indptr must not be empty");
    check_columns(num_columns);
    const int64_t rows = indptr.size() - 1;
    const int64_t size = columns.size();
    check_size(size);
    return {offsets_of(indptr, "indptr", rows, size), indices_of(columns, "columns", size, num_columns), rows,
            num_columns};
}

Groups groups_of(const Array<int64_t>& indptr, const Order& order, int64_t num_values) {
    expect(indptr.size() >= 1, "indptr must not be empty");
    check_size(num_values);
    const int64_t count = indptr.size() - 1;
    const int64_t size = order ? order->size() : num_values;
    return {offsets_of(indptr, "indptr", count, size), order ? indices_of(*order, "order", size, num_values) : nullptr,
            count};
}

template <typename Kernel>
void run(int n_threads, Kernel&& kernel) {
    const int threads = checked_threads(n_threads);
    run_interruptibly([&](const auto& poll) { kernel(PairOptions{threads, poll}); });
}

py::tuple pair_transpose(const Array<int64_t>& indptr, const Array<int32_t>& columns, int64_t num_columns) {
    const PairRows pairs = rows_of(indptr, columns, num_columns);
    Array<int64_t> out(num_columns + 1);
    Array<int32_t> order(pairs.size());
    int64_t* const offsets = out.mutable_data();
    int32_t* const positions = order.mutable_data();
    {
        const ReleasedGil released;
        transpose_pairs(pairs, offsets, positions);
    }
    return py::make_tuple(out, order);
}

// Proposals of one side, whose ids are below `end`.
const int32_t* proposed_of(const Array<int32_t>& ids, const std::string& name, int64_t rows, int64_t end) {
    expect(ids.ndim() == 2 && ids.shape(0) == rows, name + " must have " + std::to_string(rows) + " rows");
    const int32_t* values = data_of(ids, name, ids.size());
    expect(all_below(values, ids.size(), end), name + " must be below " + std::to_string(end));
    return values;
}

// Offsets, and all numbers.
py::tuple in_one_piece(const LooseRows& rows, int n_threads) {
    check_size(rows.indptr.back());
    Array<int64_t> indptr(static_cast<py::ssize_t>(rows.indptr.size()), rows.indptr.data());
    Array<int32_t> numbers(rows.indptr.back());
    int32_t* const out = numbers.mutable_data();
    run(n_threads, [&](const PairOptions& options) { write_rows(rows, out, options); });
    return py::make_tuple(indptr, numbers);
}

// The pairs that columns propose, of which the columns must increase.
void check_back(const Proposed& proposed, const PairRows& pairs) {
    for (int64_t i = 0; i < proposed.back; ++i) {
        const int32_t row = proposed.back_rows[i], column = proposed.back_columns[i];
        expect(0 <= row && row < pairs.rows, "back_rows must be in [0, " + std::to_string(pairs.rows) + ")");
        expect((i == 0 ? 0 : proposed.back_columns[i - 1]) <= column && column < pairs.num_columns,
               "back_columns must be increasing, and below " + std::to_string(pairs.num_columns));
    }
}

py::tuple pair_union(const Array<int64_t>& indptr, const Array<int32_t>& columns, const Array<int32_t>& of_rows,
                     const Array<int32_t>& back_rows, const Array<int32_t>& back_columns, int64_t num_columns,
                     int n_threads) {
    const PairRows pairs = rows_of(indptr, columns, num_columns);
    const int64_t back = back_rows.size();
    const Proposed proposed{proposed_of(of_rows, "of_rows", pairs.rows, pairs.num_columns), of_rows.shape(1),
                            data_of(back_rows, "back_rows", back), data_of(back_columns, "back_columns", back), back};
    check_back(proposed, pairs);
    LooseRows united;
    run(n_threads, [&](const PairOptions& options) { united = unite_rows(pairs, proposed, options); });
    return in_one_piece(united, n_threads);
}

Array<int32_t> pair_positions(const Array<int64_t>& indptr, const Array<int32_t>& columns,
                              const Array<int64_t>& other_indptr, const Array<int32_t>& other_columns,
                              int64_t num_columns, int n_threads) {
    const PairRows pairs = rows_of(indptr, columns, num_columns);
    const PairRows other = rows_of(other_indptr, other_columns, num_columns);
    expect(pairs.rows == other.rows, "both sets must have the same rows");
    Array<int32_t> positions(pairs.size());
    int32_t* const out = positions.mutable_data();
    run(n_threads, [&](const PairOptions& options) { find_positions(pairs, other, out, options); });
    return positions;
}

// Pairs of the same rows, and a value of each.
using Valued = std::tuple<Array<int64_t>, Array<int32_t>, Array<double>>;

Array<double> pair_known_values(const Array<int64_t>& indptr, const Array<int32_t>& columns,
                                const std::vector<Valued>& sets, int64_t num_columns, int n_threads) {
    const PairRows pairs = rows_of(indptr, columns, num_columns);
    Array<double> values(pairs.size());
    double* const out = values.mutable_data();
    std::fill_n(out, pairs.size(), std::numeric_limits<double>::quiet_NaN());
    for (const auto& [other_indptr, other_columns, other_values] : sets) {
        const PairRows other = rows_of(other_indptr, other_columns, num_columns);
        expect(pairs.rows == other.rows, "all sets must have the same rows");
        const double* known = data_of(other_values, "values", other.size());
        run(n_threads, [&](const PairOptions& options) { take_values(pairs, other, known, out, options); });
    }
    return values;
}

py::tuple pair_best(const Array<int64_t>& indptr, const Order& order, const Array<double>& values, int64_t k,
                    double least, int n_threads) {
    const Groups groups = groups_of(indptr, order, values.size());
    const double* given = data_of(values, "values", values.size());
    expect(k >= 0, "k must not be negative");
    LooseRows best;
    run(n_threads, [&](const PairOptions& options) { best = best_places(groups, given, k, least, options); });
    return in_one_piece(best, n_threads);
}

Array<double> pair_log_sums(const Array<int64_t>& indptr, const Order& order, const Array<double>& values,
                            int n_threads) {
    const Groups groups = groups_of(indptr, order, values.size());
    const double* given = data_of(values, "values", values.size());
    Array<double> sums(groups.count);
    double* const out = sums.mutable_data();
    run(n_threads, [&](const PairOptions& options) { log_sum_exp(groups, given, out, options); });
    return sums;
}

Array<double> pair_probabilities(const Array<int64_t>& indptr, const Array<int32_t>& columns,
                                 const Array<double>& values, const Array<double>& row_sums,
                                 const Array<double>& column_sums, int n_threads) {
    const PairRows pairs = rows_of(indptr, columns, column_sums.size());
    const double* given = data_of(values, "values", pairs.size());
    const double* sums[] = {data_of(row_sums, "row_sums", pairs.rows),
                            data_of(column_sums, "column_sums", pairs.num_columns)};
    Array<double> probs(pairs.size());
    double* const out = probs.mutable_data();
    run(n_threads,
        [&](const PairOptions& options) { joint_probabilities(pairs, given, sums[0], sums[1], out, options); });
    return probs;
}

Array<double> pair_largest(const Array<int64_t>& indptr, const Order& order, const Array<double>& values,
                           int n_threads) {
    const Groups groups = groups_of(indptr, order, values.size());
    const double* given = data_of(values, "values", values.size());
    Array<double> largest(groups.count);
    double* const out = largest.mutable_data();
    run(n_threads, [&](const PairOptions& options) { largest_values(groups, given, out, options); });
    return largest;
}

Array<uint8_t> pair_mutual_best(const Array<int64_t>& indptr, const Array<int32_t>& columns,
                                const Array<double>& values, const Array<double>& largest_of_columns, int n_threads) {
    const PairRows pairs = rows_of(indptr, columns, largest_of_columns.size());
    const double* given = data_of(values, "values", pairs.size());
    const double* largest = data_of(largest_of_columns, "largest_of_columns", pairs.num_columns);
    Array<uint8_t> best(pairs.size());
    uint8_t* const out = best.mutable_data();
    run(n_threads, [&](const PairOptions& options) { mutual_best(pairs, given, largest, out, options); });
    return best;
}

py::tuple pair_scale_rows(const Array<int64_t>& indptr, const Array<int32_t>& columns, const Array<double>& values,
                          const Array<double>& tails, const Array<double>& column_factors, int n_threads) {
    const PairRows pairs = rows_of(indptr, columns, column_factors.size());
    const double* given = data_of(values, "values", pairs.size());
    const double* of_rows = data_of(tails, "tails", pairs.rows);
    const double* factors = data_of(column_factors, "column_factors", pairs.num_columns);
    Array<double> row_factors(pairs.rows), sums(pairs.num_columns);
    double* const out[] = {row_factors.mutable_data(), sums.mutable_data()};
    run(n_threads,
        [&](const PairOptions& options) { scale_rows(pairs, given, of_rows, factors, out[0], out[1], options); });
    return py::make_tuple(row_factors, sums);
}

Array<double> pair_scaled(const Array<int64_t>& indptr, const Array<int32_t>& columns, const Array<double>& values,
                          const Array<double>& row_factors, const Array<double>& column_factors, int n_threads) {
    const PairRows pairs = rows_of(indptr, columns, column_factors.size());
    const double* given = data_of(values, "values", pairs.size());
    const double* factors[] = {data_of(row_factors, "row_factors", pairs.rows),
                               data_of(column_factors, "column_factors", pairs.num_columns)};
    Array<double> scaled(pairs.size());
    double* const out = scaled.mutable_data();
    run(n_threads,
        [&](const PairOptions& options) { scale_pairs(pairs, given, factors[0], factors[1], out, options); });
    return scaled;
}

Array<double> pair_totals(const Array<float>& evidence, const Array<int32_t>& witnesses, const Array<double>& logits,
                          double weight, double lone, int n_threads) {
    const int64_t count = evidence.size();
    const float* given = data_of(evidence, "evidence", count);
    const int32_t* counted = data_of(witnesses, "witnesses", count);
    const double* of_encoder = data_of(logits, "logits", count);
    Array<double> totals(count);
    double* const out = totals.mutable_data();
    run(n_threads, [&](const PairOptions& options) {
        weigh_pairs(given, counted, of_encoder, count, {weight, lone}, out, options);
    });
    return totals;
}

Array<double> pair_damped(const Array<double>& values, const Array<double>& earlier, const Array<int32_t>& places,
                          double share, int n_threads) {
    const int64_t count = values.size();
    check_size(earlier.size());
    const double* given = data_of(values, "values", count);
    const double* old = data_of(earlier, "earlier", earlier.size());
    const int32_t* where = data_of(places, "places", count);
    expect(all_below(where, count, earlier.size()), "places must be below " + std::to_string(earlier.size()));
    Array<double> damped(count);
    double* const out = damped.mutable_data();
    run(n_threads, [&](const PairOptions& options) { damp_pairs(given, count, old, where, share, out, options); });
    return damped;
}

template <typename Number>
Array<double> pair_products_of(const Array<Number>& queries, const Array<Number>& keys, const Array<int32_t>& rows,
                               const Array<int32_t>& columns, int n_threads, const std::string& tier) {
    expect(queries.ndim() == 2 && keys.ndim() == 2 && queries.shape(1) == keys.shape(1),
           "queries and keys must be matrices of the same width");
    const int64_t count = rows.size();
    Array<double> out(count);
    const PairProducts<Number> args{data_of(queries, "queries", queries.size()),
                                    data_of(keys, "keys", keys.size()),
                                    queries.shape(1),
                                    indices_of(rows, "rows", count, queries.shape(0)),
                                    indices_of(columns, "columns", count, keys.shape(0)),
                                    count,
                                    out.mutable_data()};
    const Tier& chosen = find_tier(tier);
    const int threads = checked_threads(n_threads);
    const ReleasedGil released;
    pair_products(args, chosen, threads);
    return out;
}

}  // namespace

void add_pair_set_functions(py::module_& m) {
    const auto array = [](const char* name) { return py::arg(name).noconvert(); };
    const auto indptr = array("indptr"), columns = array("columns"), order = array("order"), values = array("values");
    m.def("pair_transpose", &pair_transpose, indptr, columns, py::arg("num_columns"));
    m.def("pair_union", &pair_union, indptr, columns, array("of_rows"), array("back_rows"), array("back_columns"),
          py::arg("num_columns"), py::arg("n_threads"));
    m.def("pair_positions", &pair_positions, indptr, columns, array("other_indptr"), array("other_columns"),
          py::arg("num_columns"), py::arg("n_threads"));
    m.def("pair_known_values", &pair_known_values, indptr, columns, py::arg("sets"), py::arg("num_columns"),
          py::arg("n_threads"));
    m.def("pair_best", &pair_best, indptr, order, values, py::arg("k"), py::arg("least"), py::arg("n_threads"));
    m.def("pair_log_sums", &pair_log_sums, indptr, order, values, py::arg("n_threads"));
    m.def("pair_probabilities", &pair_probabilities, indptr, columns, values, array("row_sums"), array("column_sums"),
          py::arg("n_threads"));
    m.def("pair_largest", &pair_largest, indptr, order, values, py::arg("n_threads"));
    m.def("pair_mutual_best", &pair_mutual_best, indptr, columns, values, array("largest_of_columns"),
          py::arg("n_threads"));
    m.def("pair_scale_rows", &pair_scale_rows, indptr, columns, values, array("tails"), array("column_factors"),
          py::arg("n_threads"));
    m.def("pair_scaled", &pair_scaled, indptr, columns, values, array("row_factors"), array("column_factors"),
          py::arg("n_threads"));
    m.def("pair_totals", &pair_totals, array("evidence"), array("witnesses"), array("logits"), py::arg("weight"),
          py::arg("lone"), py::arg("n_threads"));
    m.def("pair_damped", &pair_damped, values, array("earlier"), array("places"), py::arg("share"),
          py::arg("n_threads"));
    m.def("pair_products", &pair_products_of<float>, array("queries"), array("keys"), array("rows"), columns,
          py::arg("n_threads"), py::arg("tier"));
    m.def("pair_products", &pair_products_of<double>, array("queries"), array("keys"), array("rows"), columns,
          py::arg("n_threads"), py::arg("tier"));
}

}  // namespace stea
