#include "encoder_functions.h"

#include <string>

#include "../kernels/cpu/encoding.h"
#include "../kernels/cpu/isa.h"
#include "arrays.h"
#include "released.h"

namespace stea {
namespace {

int64_t columns_of(const Array<float>& matrix, const std::string& name) {
    expect(matrix.ndim() == 2, name + " must be a matrix");
    return matrix.shape(1);
}

// Whether the columns [start, start + count) are those of the matrix.
void expect_inside(const Array<float>& matrix, int64_t start, int64_t count, const std::string& name) {
    expect(0 <= start && 0 <= count && count <= columns_of(matrix, name) && start <= matrix.shape(1) - count,
           "the columns of " + name + " must lie within it");
}

void dense_product(const Array<float>& a, const Array<float>& b, Array<float>& out, int n_threads,
                   const std::string& tier) {
    const int64_t depth = columns_of(a, "a");
    const int64_t columns = columns_of(b, "b");
    expect(b.shape(0) == depth, "b must have a row for every column of a");
    expect(columns_of(out, "out") == columns && out.shape(0) == a.shape(0), "out must be [rows of a, columns of b]");
    const float* const left = data_of(a, "a", a.size());
    const float* const right = data_of(b, "b", b.size());
    float* const product = mutable_data_of(out, "out", out.size());
    run_released(tier, n_threads, [&](const RunOptions& options) {
        run_dense_product(left, right, product, a.shape(0), depth, columns, options);
    });
}

void sparse_rows(const Array<int64_t>& indptr, const Array<int32_t>& columns, const Array<float>& values,
                 const Array<float>& x, Array<float>& out, int64_t x_start, int64_t out_start, int64_t width,
                 int n_threads, const std::string& tier) {
    expect_inside(x, x_start, width, "x");
    expect_inside(out, out_start, width, "out");
    const int64_t rows = indptr.size() - 1;
    const int64_t size = columns.size();
    expect(rows >= 0, "indptr must not be empty");
    const SparseRows args{offsets_of(indptr, "indptr", rows, size),
                          indices_of(columns, "columns", size, x.shape(0)),
                          data_of(values, "values", size),
                          rows,
                          size,
                          width,
                          data_of(x, "x", x.shape(0) * x.shape(1)) + x_start,
                          x.shape(1),
                          mutable_data_of(out, "out", rows * out.shape(1)) + out_start,
                          out.shape(1)};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_sparse_rows(args, options); });
}

void triple_view(const Array<int64_t>& indptr, const Array<int32_t>& columns, const Array<int32_t>& relations,
                 const Array<float>& strengths, const Array<float>& x, Array<float>& out, int64_t out_start,
                 Array<double>& squares, int n_threads, const std::string& tier) {
    const int64_t rows = indptr.size() - 1;
    const int64_t size = columns.size();
    const int64_t dimensions = columns_of(strengths, "strengths");
    expect(rows >= 0, "indptr must not be empty");
    expect(columns_of(x, "x") == kFeatures * dimensions, "x must have 16 columns for every column of strengths");
    expect_inside(out, out_start, kFeatures * dimensions, "out");
    const TripleView args{offsets_of(indptr, "indptr", rows, size),
                          indices_of(columns, "columns", size, x.shape(0)),
                          indices_of(relations, "relations", size, strengths.shape(0)),
                          rows,
                          size,
                          dimensions,
                          data_of(strengths, "strengths", strengths.size()),
                          data_of(x, "x", x.size()),
                          mutable_data_of(out, "out", rows * out.shape(1)) + out_start,
                          out.shape(1),
                          mutable_data_of(squares, "squares", rows)};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_triple_view(args, options); });
}

void dropout(const Array<float>& x, Array<float>& out, uint64_t key, uint32_t zeroed, float scale, int n_threads,
             const std::string& tier) {
    const int64_t width = columns_of(x, "x");
    const Dropout args{
        data_of(x, "x", x.size()), mutable_data_of(out, "out", x.size()), x.shape(0), width, key, zeroed, scale};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_dropout(args, options); });
}

// (indptr, rows, columns, reverse, sets, set_indptr, set_edges)
struct ReflectionArrays {
    Array<int64_t> indptr;
    Array<int32_t> rows;
    Array<int32_t> columns;
    Array<int32_t> reverse;
    Array<int32_t> sets;
    Array<int64_t> set_indptr;
    Array<int32_t> set_edges;

    ReflectionGraph view() const {
        expect(indptr.size() >= 1 && set_indptr.size() >= 1, "indptr and set_indptr must not be empty");
        const int64_t entities = indptr.size() - 1;
        const int64_t num_sets = set_indptr.size() - 1;
        const int64_t edges = columns.size();
        return {offsets_of(indptr, "indptr", entities, edges),
                indices_of(rows, "rows", edges, entities),
                indices_of(columns, "columns", edges, entities),
                indices_of(reverse, "reverse", edges, edges),
                indices_of(sets, "sets", edges, num_sets),
                offsets_of(set_indptr, "set_indptr", num_sets, edges),
                indices_of(set_edges, "set_edges", edges, edges),
                entities,
                edges,
                num_sets};
    }
};

// An empty array stands for "all rows"; otherwise -1 or a row below `count`.
const int32_t* position_of(const Array<int32_t>& position, const std::string& name, int64_t entities, int64_t count) {
    if (position.size() == 0) {
        expect(count == entities, name + " must be given unless there is a row for every entity");
        return nullptr;
    }
    const int32_t* values = data_of(position, name, entities);
    expect(all_below(values, entities, count), name + " must be below " + std::to_string(count));
    return values;
}

Activation activation_of(const std::string& name) {
    if (name == "tanh") return Activation::kTanh;
    if (name == "relu") return Activation::kRelu;
    expect(name.empty(), "activation must be 'tanh', 'relu' or '', not '" + name + "'");
    return Activation::kNone;
}

// k [heads, 2, dim] taken apart: k_y and k_rho are [heads, dim].
struct LayerSizes {
    int64_t heads;
    int64_t dim;

    LayerSizes(const Array<float>& k_y, const Array<float>& k_unit) : heads(k_y.shape(0)), dim(columns_of(k_y, "k_y")) {
        expect(1 <= heads && heads <= kMostHeads && k_unit.size() == heads * dim,
               "k_y and k_unit must be of 1 to " + std::to_string(kMostHeads) + " heads");
    }
};

void reflect_forward(const ReflectionArrays& graph, const Array<int32_t>& position, Array<float>& z, int64_t source,
                     int64_t target, const Array<float>& unit, const Array<float>& k_y, const Array<float>& on_y,
                     const Array<float>& on_unit, const std::string& activation, Array<float>& dots,
                     Array<float>& weights, int n_threads, const std::string& tier) {
    const ReflectionGraph view = graph.view();
    expect(k_y.ndim() == 2, "k_y must be a matrix");
    const LayerSizes sizes(k_y, k_y);
    const int64_t width = sizes.heads * sizes.dim;
    expect_inside(z, source, width, "z");
    expect_inside(z, target, width, "z");
    expect(source + width <= target || target + width <= source, "source and target must not overlap");
    const ReflectionForward args{
        {view, position_of(position, "position", view.num_entities, view.num_entities),
         mutable_data_of(z, "z", view.num_entities * z.shape(1)), z.shape(1), source, sizes.heads, sizes.dim,
         data_of(unit, "unit", view.num_sets * sizes.dim), data_of(k_y, "k_y", width),
         data_of(on_y, "on_y", view.num_sets * sizes.heads),
         mutable_data_of(dots, "dots", view.num_edges * sizes.heads),
         mutable_data_of(weights, "weights", view.num_edges * sizes.heads), activation_of(activation)},
        data_of(on_unit, "on_unit", view.num_sets * sizes.heads),
        target};
    expect(args.layer.activation != Activation::kNone, "activation must be 'tanh' or 'relu'");
    run_released(tier, n_threads, [&](const RunOptions& options) { run_reflection_forward(args, options); });
}

py::tuple reflect_backward(const ReflectionArrays& graph, const Array<int32_t>& position, Array<float>& z,
                           int64_t source, const Array<float>& unit, const Array<float>& k_y,
                           const Array<float>& k_unit, const Array<float>& on_y, Array<float>& dots,
                           Array<float>& weights, const std::string& activation, const Array<float>& grad,
                           const Array<float>& outer, const Array<int32_t>& outer_position, Array<float>& d_x,
                           Array<float>& d_unit, int n_threads, const std::string& tier) {
    const ReflectionGraph view = graph.view();
    expect(k_y.ndim() == 2 && grad.ndim() == 2, "k_y and grad must be matrices");
    const LayerSizes sizes(k_y, k_unit);
    const int64_t width = sizes.heads * sizes.dim;
    expect_inside(z, source, width, "z");
    expect_inside(outer, source, width, "outer");
    Array<float> d_logits({view.num_edges, sizes.heads}), d_dots({view.num_edges, sizes.heads});
    Array<float> d_near({view.num_entities, sizes.heads}), d_k_y({sizes.heads, sizes.dim});
    Array<float> d_on_y({view.num_sets, sizes.heads}), d_on_unit({view.num_sets, sizes.heads});
    const ReflectionBackward args{
        {view, position_of(position, "position", view.num_entities, grad.shape(0)),
         mutable_data_of(z, "z", view.num_entities * z.shape(1)), z.shape(1), source, sizes.heads, sizes.dim,
         data_of(unit, "unit", view.num_sets * sizes.dim), data_of(k_y, "k_y", width),
         data_of(on_y, "on_y", view.num_sets * sizes.heads),
         mutable_data_of(dots, "dots", view.num_edges * sizes.heads),
         mutable_data_of(weights, "weights", view.num_edges * sizes.heads), activation_of(activation)},
        data_of(k_unit, "k_unit", width),
        data_of(grad, "grad", grad.shape(0) * width),
        data_of(outer, "outer", outer.shape(0) * outer.shape(1)),
        outer.shape(1),
        position_of(outer_position, "outer_position", view.num_entities, outer.shape(0)),
        SetSums{},
        d_logits.mutable_data(),
        d_dots.mutable_data(),
        d_near.mutable_data(),
        mutable_data_of(d_x, "d_x", view.num_entities * width),
        d_on_y.mutable_data(),
        d_on_unit.mutable_data(),
        mutable_data_of(d_unit, "d_unit", view.num_sets * sizes.dim),
        d_k_y.mutable_data()};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_reflection_backward(args, options); });
    return py::make_tuple(d_on_y, d_on_unit, d_k_y);
}

// What a kernel of hard negatives is given, checked, and its results.
struct Negatives {
    NegativeBlock block{};
    Array<float> losses, pushes, pulled;

    Negatives(const Array<float>& queries, const Array<float>& z, const Array<float>& norms, const Array<float>& base,
              const Array<float>& centre, const Array<int32_t>& ends, double scale, float cut, Array<float>& gradient) {
        const int64_t width = columns_of(z, "z");
        const int64_t entities = z.shape(0);
        expect(queries.ndim() == 2, "queries must be a matrix");
        const int64_t count = queries.shape(0);
        expect(entities <= INT32_MAX && count <= INT32_MAX, "more than 2^31 entities or queries");
        const int32_t* pairs = indices_of(ends, "ends", 2 * count, entities);
        for (int64_t q = 0; q < count; ++q) expect(pairs[2 * q] != pairs[2 * q + 1], "the ends of a pair must differ");
        losses = Array<float>(count);
        pushes = Array<float>(count);
        pulled = Array<float>({count, width});
        block.num_queries = count;
        block.num_entities = entities;
        block.width = width;
        block.queries = data_of(queries, "queries", count * width);
        block.z = data_of(z, "z", entities * width);
        block.norms = data_of(norms, "norms", entities);
        block.base = data_of(base, "base", count);
        block.centre = data_of(centre, "centre", count);
        block.ends = pairs;
        block.scale = scale;
        block.cut = cut;
        block.losses = losses.mutable_data();
        block.pushes = pushes.mutable_data();
        block.pulled = pulled.mutable_data();
        block.gradient = mutable_data_of(gradient, "gradient", entities * width);
    }

    py::tuple results() const { return py::make_tuple(losses, pushes, pulled); }
};

py::tuple hard_negatives(const Array<float>& products, const Array<float>& queries, const Array<float>& z,
                         const Array<float>& norms, const Array<float>& base, const Array<float>& centre,
                         const Array<int32_t>& ends, double scale, float cut, Array<float>& gradient, int n_threads,
                         const std::string& tier) {
    Negatives given(queries, z, norms, base, centre, ends, scale, cut, gradient);
    NegativeBlock& block = given.block;
    block.products = data_of(products, "products", block.num_queries * block.num_entities);
    block.stride = block.num_entities;
    run_released(tier, n_threads, [&](const RunOptions& options) { run_negatives(block, options); });
    return given.results();
}

py::tuple byte_negatives(const Array<float>& queries, const Array<float>& z, const Array<float>& norms,
                         const Array<float>& base, const Array<float>& centre, const Array<int32_t>& ends, double scale,
                         float cut, Array<float>& gradient, int n_threads, const std::string& tier,
                         const std::string& int8_tier) {
    const Negatives given(queries, z, norms, base, centre, ends, scale, cut, gradient);
    const Int8Tier& bytes = find_int8_tier(int8_tier);
    expect(given.block.width <= kMostInt8Width,
           "z must have at most " + std::to_string(kMostInt8Width) + " columns: wider products do not fit in 32 bits");
    run_released(tier, n_threads, [&](const RunOptions& options) { run_byte_negatives(given.block, bytes, options); });
    return given.results();
}

}  // namespace
}  // namespace stea

namespace pybind11::detail {
template <>
struct type_caster<stea::ReflectionArrays>
    : tuple_of_arrays_caster<stea::ReflectionArrays, stea::Array<int64_t>, stea::Array<int32_t>, stea::Array<int32_t>,
                             stea::Array<int32_t>, stea::Array<int32_t>, stea::Array<int64_t>, stea::Array<int32_t>> {};
}  // namespace pybind11::detail

namespace stea {

void add_encoder_functions(py::module_& m) {
    m.def("dense_product", &dense_product, py::arg("a").noconvert(), py::arg("b").noconvert(),
          py::arg("out").noconvert(), py::arg("n_threads"), py::arg("tier"));
    m.def("sparse_rows", &sparse_rows, py::arg("indptr").noconvert(), py::arg("columns").noconvert(),
          py::arg("values").noconvert(), py::arg("x").noconvert(), py::arg("out").noconvert(), py::arg("x_start"),
          py::arg("out_start"), py::arg("width"), py::arg("n_threads"), py::arg("tier"));
    m.def("triple_view", &triple_view, py::arg("indptr").noconvert(), py::arg("columns").noconvert(),
          py::arg("relations").noconvert(), py::arg("strengths").noconvert(), py::arg("x").noconvert(),
          py::arg("out").noconvert(), py::arg("out_start"), py::arg("squares").noconvert(), py::arg("n_threads"),
          py::arg("tier"));
    m.def("dropout", &dropout, py::arg("x").noconvert(), py::arg("out").noconvert(), py::arg("key"), py::arg("zeroed"),
          py::arg("scale"), py::arg("n_threads"), py::arg("tier"));
    m.def("reflect_forward", &reflect_forward, py::arg("graph"), py::arg("position").noconvert(),
          py::arg("z").noconvert(), py::arg("source"), py::arg("target"), py::arg("unit").noconvert(),
          py::arg("k_y").noconvert(), py::arg("on_y").noconvert(), py::arg("on_unit").noconvert(),
          py::arg("activation"), py::arg("dots").noconvert(), py::arg("weights").noconvert(), py::arg("n_threads"),
          py::arg("tier"));
    m.def("reflect_backward", &reflect_backward, py::arg("graph"), py::arg("position").noconvert(),
          py::arg("z").noconvert(), py::arg("source"), py::arg("unit").noconvert(), py::arg("k_y").noconvert(),
          py::arg("k_unit").noconvert(), py::arg("on_y").noconvert(), py::arg("dots").noconvert(),
          py::arg("weights").noconvert(), py::arg("activation"), py::arg("grad").noconvert(),
          py::arg("outer").noconvert(), py::arg("outer_position").noconvert(), py::arg("d_x").noconvert(),
          py::arg("d_unit").noconvert(), py::arg("n_threads"), py::arg("tier"));
    m.def("hard_negatives", &hard_negatives, py::arg("products").noconvert(), py::arg("queries").noconvert(),
          py::arg("z").noconvert(), py::arg("norms").noconvert(), py::arg("base").noconvert(),
          py::arg("centre").noconvert(), py::arg("ends").noconvert(), py::arg("scale"), py::arg("cut"),
          py::arg("gradient").noconvert(), py::arg("n_threads"), py::arg("tier"));
    m.def("byte_negatives", &byte_negatives, py::arg("queries").noconvert(), py::arg("z").noconvert(),
          py::arg("norms").noconvert(), py::arg("base").noconvert(), py::arg("centre").noconvert(),
          py::arg("ends").noconvert(), py::arg("scale"), py::arg("cut"), py::arg("gradient").noconvert(),
          py::arg("n_threads"), py::arg("tier"), py::arg("int8_tier"));
}

}  // namespace stea
