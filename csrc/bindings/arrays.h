// NumPy arrays in, views out. Arrays are bound without conversion: a wrong dtype, layout or size is an
// error, never a silent copy. So is what would lead a kernel out of its arrays: offsets and indices are checked here,
// those of a graph once and for all calls.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../kernels/checks.h"
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
const T* data_of(const Array<T>& array, const std::string& name, int64_t size) {
    expect(array.size() == size,
           name + " must have " + std::to_string(size) + " elements, not " + std::to_string(array.size()));
    expect(reinterpret_cast<uintptr_t>(array.data()) % alignof(T) == 0, name + " must be aligned");
    return array.data();
}

template <typename T>
T* mutable_data_of(Array<T>& array, const std::string& name, int64_t size) {
    data_of(array, name, size);
    return array.mutable_data();  // throws for an array that is read only
}

inline const int64_t* offsets_of(const Array<int64_t>& indptr, const std::string& name, int64_t rows, int64_t size) {
    const int64_t* offsets = data_of(indptr, name, rows + 1);
    expect(are_offsets(offsets, rows, size), name + " must rise from 0 to " + std::to_string(size));
    return offsets;
}

inline const int32_t* indices_of(const Array<int32_t>& indices, const std::string& name, int64_t size, int64_t end) {
    const int32_t* values = data_of(indices, name, size);
    expect(all_within(values, size, end), name + " must be in [0, " + std::to_string(end) + ")");
    return values;
}

inline const float* probabilities_of(const Array<float>& array, const std::string& name, int64_t size) {
    const float* values = data_of(array, name, size);
    expect(are_probabilities(values, size), name + " must be in [0, 1]");
    return values;
}

template <typename T>
Array<T> to_array(const std::vector<T>& values) {
    return Array<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

inline int checked_threads(int n_threads) {
    constexpr int kMost = 1024;
    expect(1 <= n_threads && n_threads <= kMost,
           "n_threads must be in [1, " + std::to_string(kMost) + "], not " + std::to_string(n_threads));
    return n_threads;
}

// A graph that has been looked through. It holds on to its arrays, which must not change any more.
class Graph {
  public:
    // edges [num_edges, 2] of (neighbor, relation)
    Graph(Array<int64_t> indptr, Array<int32_t> edges) : indptr_(std::move(indptr)), edges_(std::move(edges)) {
        expect(indptr_.size() >= 1, "indptr must not be empty");
        expect(edges_.ndim() == 2 && edges_.shape(1) == 2, "edges must have two columns");
        const int64_t num_entities = indptr_.size() - 1;
        const int64_t num_edges = edges_.shape(0);
        const int64_t* offsets = offsets_of(indptr_, "indptr", num_entities, num_edges);
        const int32_t* packed = data_of(edges_, "edges", 2 * num_edges);
        static_assert(sizeof(Edge) == 2 * sizeof(int32_t));
        view_ = {offsets, reinterpret_cast<const Edge*>(packed), num_entities, num_edges};
        relations_ = relations_of(view_);
        expect(relations_ >= 0, "edges must lead to entities in [0, " + std::to_string(num_entities) +
                                    ") by relations that are not negative");
    }

    // For kernels that know 2R relations.
    const GraphView& view(const char* name, int64_t num_directed) const {
        expect(relations_ <= num_directed,
               std::string(name) + " has relations beyond the " + std::to_string(num_directed) + " that are known");
        return view_;
    }

    int64_t num_entities() const { return view_.num_entities; }
    int64_t num_edges() const { return view_.num_edges; }

  private:
    Array<int64_t> indptr_;
    Array<int32_t> edges_;
    GraphView view_;
    int64_t relations_;
};

// (indptr, targets, weights)
struct BeliefsArrays {
    Array<int64_t> indptr;
    Array<int32_t> targets;
    Array<float> weights;

    BeliefsView view(const Graph& source, const Graph& target) const {
        const int64_t size = targets.size();
        return {offsets_of(indptr, "beliefs.indptr", source.num_entities(), size),
                indices_of(targets, "beliefs.targets", size, target.num_entities()),
                probabilities_of(weights, "beliefs.weights", size)};
    }
};

// (indptr, indices, values)
struct SparseArrays {
    Array<int64_t> indptr;
    Array<int32_t> indices;
    Array<float> values;

    SparseView view(int64_t rows, int64_t columns, const std::string& name) const {
        const int64_t size = indices.size();
        return {offsets_of(indptr, name + ".indptr", rows, size), indices_of(indices, name + ".indices", size, columns),
                probabilities_of(values, name + ".data", size)};
    }
};

inline RowRange row_range(int64_t begin, int64_t end, int64_t num_rows) {
    expect(0 <= begin && begin <= end && end <= num_rows,
           "rows " + std::to_string(begin) + ":" + std::to_string(end) + " outside 0:" + std::to_string(num_rows));
    return {begin, end};
}

inline CandidatesView candidates_view(const Array<int32_t>& indices, RowRange rows, const Graph& target) {
    expect(indices.ndim() == 2 && indices.shape(0) == rows.end - rows.begin,
           "candidates must have one row per row of the range");
    const int32_t* values = data_of(indices, "candidates", indices.size());
    expect(all_below(values, indices.size(), target.num_entities()),
           "candidates must be below " + std::to_string(target.num_entities()));
    return {values, indices.shape(1)};
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
struct type_caster<stea::BeliefsArrays>
    : tuple_of_arrays_caster<stea::BeliefsArrays, stea::Array<int64_t>, stea::Array<int32_t>, stea::Array<float>> {};
template <>
struct type_caster<stea::SparseArrays>
    : tuple_of_arrays_caster<stea::SparseArrays, stea::Array<int64_t>, stea::Array<int32_t>, stea::Array<float>> {};

}  // namespace pybind11::detail
