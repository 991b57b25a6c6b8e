#include "topk_functions.h"

#include <limits>
#include <string>

#include "../kernels/cpu/isa.h"
#include "../kernels/cpu/topk.h"
#include "arrays.h"
#include "gil.h"

namespace stea {
namespace {

// Pools of some lines, made by Python: (entries [lines, capacity], sizes, threshold, best).
struct PoolArrays {
    Array<Entry> entries;
    Array<int32_t> sizes;
    Array<float> threshold;
    Array<float> best;

    explicit PoolArrays(const py::tuple& arrays)
        : entries(taken<Entry>(arrays, 0)),
          sizes(taken<int32_t>(arrays, 1)),
          threshold(taken<float>(arrays, 2)),
          best(taken<float>(arrays, 3)) {}

    PoolView view(int64_t lines, int64_t keep) {
        expect(entries.ndim() == 2 && entries.shape(0) == lines && 0 < keep && keep < entries.shape(1),
               "pools must have one row of more than `keep` entries per line");
        const int64_t capacity = entries.shape(1);
        indices_of(sizes, "sizes of pools", lines, capacity);
        return {mutable_data_of(entries, "entries of pools", lines * capacity),
                mutable_data_of(sizes, "sizes of pools", lines),
                mutable_data_of(threshold, "thresholds of pools", lines),
                mutable_data_of(best, "best scores of pools", lines),
                capacity,
                keep};
    }

    template <typename T>
    static Array<T> taken(const py::tuple& arrays, size_t i) {
        expect(arrays.size() == 4 && py::isinstance<Array<T>>(arrays[i]),
               "pools must be a tuple of entries, sizes, thresholds and best scores");
        return py::reinterpret_borrow<Array<T>>(arrays[i]);
    }
};

// (values [rows, columns], row_scale, column_scale, row_offset, column_offset)
struct BlockArrays {
    Array<float> values;
    Array<float> row_scale;
    Array<float> column_scale;
    Array<float> row_offset;
    Array<float> column_offset;

    ScoreBlock view(int64_t first_row, int64_t first_column) const {
        expect(values.ndim() == 2, "values must be a matrix");
        const int64_t rows = values.shape(0);
        const int64_t columns = values.shape(1);
        constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
        expect(0 <= first_row && first_row <= kMost - rows && 0 <= first_column && first_column <= kMost - columns,
               "more than 2^31 rows or columns");
        return {data_of(values, "values", rows * columns),
                rows,
                columns,
                data_of(row_scale, "row_scale", rows),
                data_of(column_scale, "column_scale", columns),
                data_of(row_offset, "row_offset", rows),
                data_of(column_offset, "column_offset", columns),
                static_cast<int32_t>(first_row),
                static_cast<int32_t>(first_column)};
    }
};

TopkOptions options_of(int n_threads, const std::string& tier) { return {find_tier(tier), checked_threads(n_threads)}; }

void topk_merge(const BlockArrays& block, int64_t first_row, int64_t first_column, const py::tuple& row_pools,
                const py::tuple& column_pools, int64_t row_keep, int64_t column_keep, int n_threads,
                const std::string& tier) {
    const ScoreBlock view = block.view(first_row, first_column);
    PoolArrays rows(row_pools);
    PoolArrays columns(column_pools);
    const PoolView row_view = rows.view(view.rows, row_keep);
    const PoolView column_view = columns.view(view.columns, column_keep);
    const TopkOptions options = options_of(n_threads, tier);
    const ReleasedGil released;
    merge_block(view, row_view, column_view, options);
}

void topk_partition(const BlockArrays& block, const py::tuple& row_pools, const py::tuple& column_pools,
                    int64_t row_keep, int64_t column_keep, Array<double>& row_sums, Array<float>& row_anchor,
                    Array<double>& column_sums, Array<float>& column_anchor, double beta, int n_threads,
                    const std::string& tier) {
    const ScoreBlock view = block.view(0, 0);
    PoolArrays row_arrays(row_pools);
    PoolArrays column_arrays(column_pools);
    const PoolView row_pool = row_arrays.view(view.rows, row_keep);
    const PoolView column_pool = column_arrays.view(view.columns, column_keep);
    const PartitionView rows{mutable_data_of(row_sums, "row_sums", view.rows),
                             mutable_data_of(row_anchor, "row_anchor", view.rows)};
    const PartitionView columns{mutable_data_of(column_sums, "column_sums", view.columns),
                                mutable_data_of(column_anchor, "column_anchor", view.columns)};
    const TopkOptions options = options_of(n_threads, tier);
    const ReleasedGil released;
    add_to_partition(view, row_pool, column_pool, rows, columns, beta, options);
}

void topk_sort(const py::tuple& pools, int64_t keep, int n_threads) {
    PoolArrays arrays(pools);
    const int64_t lines = arrays.sizes.size();
    const PoolView view = arrays.view(lines, keep);
    const int threads = checked_threads(n_threads);
    const ReleasedGil released;
    sort_pools(view, lines, threads);
}

template <typename Number>
Array<double> topk_products(const Array<Number>& queries, const Array<Number>& keys, const Array<int32_t>& indices,
                            bool distance, int n_threads, const std::string& tier) {
    expect(queries.ndim() == 2 && keys.ndim() == 2 && queries.shape(1) == keys.shape(1),
           "queries and keys must be matrices of the same width");
    expect(indices.ndim() == 2 && indices.shape(0) == queries.shape(0), "indices must have one row per query");
    const Number* left = data_of(queries, "queries", queries.size());
    const Number* right = data_of(keys, "keys", keys.size());
    const int32_t* wanted = data_of(indices, "indices", indices.size());
    expect(all_below(wanted, indices.size(), keys.shape(0)), "indices must be below the number of keys");
    Array<double> out({indices.shape(0), indices.shape(1)});
    double* products = out.mutable_data();
    const TopkOptions options = options_of(n_threads, tier);
    const ReleasedGil released;
    exact_products(left, right, queries.shape(0), queries.shape(1), wanted, indices.shape(1), distance, products,
                   options);
    return out;
}

}  // namespace
}  // namespace stea

namespace pybind11::detail {
template <>
struct type_caster<stea::BlockArrays>
    : tuple_of_arrays_caster<stea::BlockArrays, stea::Array<float>, stea::Array<float>, stea::Array<float>,
                             stea::Array<float>, stea::Array<float>> {};
}  // namespace pybind11::detail

namespace stea {

void add_topk_functions(py::module_& m) {
    PYBIND11_NUMPY_DTYPE(Entry, score, index);
    m.def("topk_merge", &topk_merge, py::arg("block"), py::arg("first_row"), py::arg("first_column"),
          py::arg("row_pools"), py::arg("column_pools"), py::arg("row_keep"), py::arg("column_keep"),
          py::arg("n_threads"), py::arg("tier"));
    m.def("topk_partition", &topk_partition, py::arg("block"), py::arg("row_pools"), py::arg("column_pools"),
          py::arg("row_keep"), py::arg("column_keep"), py::arg("row_sums").noconvert(),
          py::arg("row_anchor").noconvert(), py::arg("column_sums").noconvert(), py::arg("column_anchor").noconvert(),
          py::arg("beta"), py::arg("n_threads"), py::arg("tier"));
    m.def("topk_sort", &topk_sort, py::arg("pools"), py::arg("keep"), py::arg("n_threads"));
    m.def("topk_products", &topk_products<float>, py::arg("queries").noconvert(), py::arg("keys").noconvert(),
          py::arg("indices").noconvert(), py::arg("distance"), py::arg("n_threads"), py::arg("tier"));
    m.def("topk_products", &topk_products<double>, py::arg("queries").noconvert(), py::arg("keys").noconvert(),
          py::arg("indices").noconvert(), py::arg("distance"), py::arg("n_threads"), py::arg("tier"));
}

}  // namespace stea
