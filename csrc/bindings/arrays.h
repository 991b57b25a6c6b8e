// NumPy arrays in, views out. Arrays are bound without conversion: a wrong dtype, layout or size is an
// error, never a silent copy. The Python side has validated the contents.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "../kernels/relation_table.h"
#include "../kernels/views.h"

namespace stea {

namespace py = pybind11;

template <typename T>
using Array = py::array_t<T, py::array::c_style>;

inline void expect(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument(message);
}

template <typename T>
const T* data_of(const Array<T>& array, const char* name, int64_t size) {
    expect(array.size() == size,
           std::string(name) + " must have " + std::to_string(size) + " elements, not " + std::to_string(array.size()));
    return array.data();
}

// (indptr, edges): edges [num_edges, 2] of (neighbor, relation)
struct GraphArrays {
    Array<int64_t> indptr;
    Array<int32_t> edges;

    GraphView view(const char* name) const {
        expect(indptr.size() >= 1, std::string(name) + " has an empty indptr");
        const int64_t num_entities = indptr.size() - 1;
        const int64_t num_edges = indptr.at(num_entities);
        const int32_t* packed = data_of(edges, "edges", 2 * num_edges);
        static_assert(sizeof(Edge) == 2 * sizeof(int32_t));
        return {indptr.data(), reinterpret_cast<const Edge*>(packed), num_entities, num_edges};
    }
};

// (indptr, targets, weights)
struct BeliefsArrays {
    Array<int64_t> indptr;
    Array<int32_t> targets;
    Array<float> weights;

    BeliefsView view(int64_t num_rows) const {
        const int64_t* offsets = data_of(indptr, "beliefs.indptr", num_rows + 1);
        return {offsets, data_of(targets, "beliefs.targets", offsets[num_rows]),
                data_of(weights, "beliefs.weights", offsets[num_rows])};
    }
};

// (indptr, indices, values)
struct SparseArrays {
    Array<int64_t> indptr;
    Array<int32_t> indices;
    Array<float> values;

    SparseView view(int64_t num_rows, const char* name) const {
        const int64_t* offsets = data_of(indptr, name, num_rows + 1);
        return {offsets, data_of(indices, name, offsets[num_rows]), data_of(values, name, offsets[num_rows])};
    }
};

inline RowRange row_range(int64_t begin, int64_t end, int64_t num_rows) {
    expect(0 <= begin && begin <= end && end <= num_rows,
           "rows " + std::to_string(begin) + ":" + std::to_string(end) + " outside 0:" + std::to_string(num_rows));
    return {begin, end};
}

inline CandidatesView candidates_view(const Array<int32_t>& indices, RowRange rows) {
    expect(indices.ndim() == 2 && indices.shape(0) == rows.end - rows.begin,
           "candidates must have one row per row of the range");
    return {indices.data(), indices.shape(1)};
}

}  // namespace stea

// Python passes each of them as a plain tuple of arrays, taken without conversion.
namespace pybind11::detail {

template <typename Arrays, typename... Items>
struct tuple_of_arrays_caster {
    PYBIND11_TYPE_CASTER(Arrays, const_name("tuple"));

    bool load(handle source, bool) {
        if (!isinstance<tuple>(source) || reinterpret_borrow<tuple>(source).size() != sizeof...(Items)) return false;
        return load_items(reinterpret_borrow<tuple>(source), std::index_sequence_for<Items...>{});
    }

  private:
    template <size_t... I>
    bool load_items(const tuple& items, std::index_sequence<I...>) {
        if (!(isinstance<Items>(items[I]) && ...)) return false;
        value = Arrays{reinterpret_borrow<Items>(items[I])...};
        return true;
    }
};

template <>
struct type_caster<stea::GraphArrays>
    : tuple_of_arrays_caster<stea::GraphArrays, stea::Array<int64_t>, stea::Array<int32_t>> {};
template <>
struct type_caster<stea::BeliefsArrays>
    : tuple_of_arrays_caster<stea::BeliefsArrays, stea::Array<int64_t>, stea::Array<int32_t>, stea::Array<float>> {};
template <>
struct type_caster<stea::SparseArrays>
    : tuple_of_arrays_caster<stea::SparseArrays, stea::Array<int64_t>, stea::Array<int32_t>, stea::Array<float>> {};

}  // namespace pybind11::detail
