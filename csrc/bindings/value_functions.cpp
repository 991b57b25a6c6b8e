#include "value_functions.h"

#include <algorithm>

#include "../kernels/cpu/cosine_topk.h"
#include "../kernels/cpu/token_counts.h"
#include "arrays.h"
#include "gil.h"

namespace stea {
namespace {

// (keys, offsets)
struct TokenArrays {
    Array<uint64_t> keys;
    Array<int64_t> offsets;

    TokenRows view(const std::string& name) const {
        expect(1 <= offsets.size() && offsets.size() <= INT32_MAX, name + " must have less than 2^31 rows");
        const int64_t rows = offsets.size() - 1;
        return {data_of(keys, name + ".keys", keys.size()), offsets_of(offsets, name + ".offsets", rows, keys.size()),
                rows};
    }
};

// (indptr, columns, weights)
struct WeightedArrays {
    Array<int64_t> indptr;
    Array<int32_t> columns;
    Array<float> weights;

    WeightedRows view(const std::string& name, int64_t num_columns) const {
        expect(1 <= indptr.size() && indptr.size() <= INT32_MAX, name + " must have less than 2^31 rows");
        const int64_t rows = indptr.size() - 1;
        const int64_t size = columns.size();
        const WeightedRows view{offsets_of(indptr, name + ".indptr", rows, size),
                                indices_of(columns, name + ".columns", size, num_columns),
                                probabilities_of(weights, name + ".weights", size), rows};
        expect(can_be_walked(view), name + " must have increasing columns in every row, and no weight below 1e-15");
        return view;
    }

    int64_t used_columns() const {
        const int32_t* const end = columns.data() + columns.size();
        return columns.size() == 0 ? 0 : int64_t{1} + *std::max_element(columns.data(), end);
    }
};

// The arrays that count_tokens fills for one side.
struct CountedArrays {
    Array<int32_t> tokens;
    Array<float> counts;
    Array<int64_t> lengths;

    explicit CountedArrays(const TokenArrays& side)
        : tokens(side.keys.size()), counts(side.keys.size()), lengths(side.offsets.size() - 1) {}

    CountedRows view() { return {tokens.mutable_data(), counts.mutable_data(), lengths.mutable_data()}; }
};

py::tuple token_counts(const TokenArrays& side1, const TokenArrays& side2, int n_threads) {
    const TokenRows sides[2] = {side1.view("side1"), side2.view("side2")};
    const int threads = checked_threads(n_threads);
    CountedArrays out1(side1);
    CountedArrays out2(side2);
    const CountedRows out[2] = {out1.view(), out2.view()};
    std::vector<int32_t> rows;
    run_interruptibly([&](const auto& poll) { rows = count_tokens(sides, out, threads, poll); });
    return py::make_tuple(out1.tokens, out1.counts, out1.lengths, out2.tokens, out2.counts, out2.lengths,
                          to_array(rows));
}

py::tuple cosine_topk(const WeightedArrays& queries, const WeightedArrays& targets, int64_t num_columns, int64_t k,
                      float min_score, int64_t budget, int n_threads) {
    expect(0 <= num_columns && num_columns <= INT32_MAX, "num_columns must be in [0, 2^31)");
    expect(1 <= k && k <= INT32_MAX, "k must be in [1, 2^31), not " + std::to_string(k));
    expect(min_score > 0.0F, "min_score must be above 0");
    const WeightedRows rows = queries.view("queries", num_columns);
    const WeightedRows other_rows = targets.view("targets", num_columns);
    num_columns = std::max(queries.used_columns(), targets.used_columns());  // memory is for columns that occur
    const int threads = checked_threads(n_threads);
    Array<int32_t> indices({rows.rows, k});
    Array<float> scores({rows.rows, k});
    const CosineArgs args{
        rows, other_rows, num_columns, k, min_score, budget, indices.mutable_data(), scores.mutable_data()};
    int64_t cut = 0;
    run_interruptibly([&](const auto& poll) { cut = run_cosine_topk(args, threads, poll); });
    return py::make_tuple(indices, scores, cut);
}

}  // namespace
}  // namespace stea

namespace pybind11::detail {
template <>
struct type_caster<stea::TokenArrays>
    : tuple_of_arrays_caster<stea::TokenArrays, stea::Array<uint64_t>, stea::Array<int64_t>> {};
template <>
struct type_caster<stea::WeightedArrays>
    : tuple_of_arrays_caster<stea::WeightedArrays, stea::Array<int64_t>, stea::Array<int32_t>, stea::Array<float>> {};
}  // namespace pybind11::detail

namespace stea {

void add_value_functions(py::module_& m) {
    m.def("token_counts", &token_counts, py::arg("side1"), py::arg("side2"), py::arg("n_threads"));
    m.def("cosine_topk", &cosine_topk, py::arg("queries"), py::arg("targets"), py::arg("num_columns"), py::arg("k"),
          py::arg("min_score"), py::arg("budget"), py::arg("n_threads"));
}

}  // namespace stea
