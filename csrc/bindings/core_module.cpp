// stea_fast._core: the native kernels as Python functions. No algorithm lives here.
#include <pybind11/stl.h>

#include <cmath>

#include "../kernels/changes.h"
#include "../kernels/containment.h"
#include "../kernels/cpu/isa.h"
#include "../kernels/cpu/run.h"
#include "arrays.h"
#include "encoder_functions.h"
#include "gil.h"
#include "int8_functions.h"
#include "pair_set_functions.h"
#include "released.h"
#include "topk_functions.h"
#include "value_functions.h"

namespace stea {
namespace {

RelationTable make_relation_table(const SparseArrays& sub12, const SparseArrays& sub21, const Array<float>& fun1,
                                  const Array<float>& fun2, float fallback) {
    const RelationSide side1{probabilities_of(fun1, "fun1", fun1.size()), fun1.size()};
    const RelationSide side2{probabilities_of(fun2, "fun2", fun2.size()), fun2.size()};
    const SparseView view12 = sub12.view(side1.size, side2.size, "sub12");
    const SparseView view21 = sub21.view(side2.size, side1.size, "sub21");
    expect(are_probabilities(&fallback, 1), "fallback must be in [0, 1]");
    const ReleasedGil released;
    return RelationTable(view12, view21, side1, side2, fallback);
}

// Both graphs, and how many relations they have: R and R'.
struct Sides {
    int32_t num_source_relations;
    int32_t num_target_relations;
    GraphView source;
    GraphView target;

    Sides(const Graph& source, const Graph& target, int32_t num_source_relations, int32_t num_target_relations)
        : num_source_relations(num_source_relations),
          num_target_relations(num_target_relations),
          source(source.view("source", 2 * int64_t{num_source_relations})),
          target(target.view("target", 2 * int64_t{num_target_relations})) {}
};

Sides sides_of(const Graph& source, const Graph& target, const RelationTable& relations, bool source_is_graph1) {
    const auto size1 = static_cast<int32_t>(relations.size1() / 2);
    const auto size2 = static_cast<int32_t>(relations.size2() / 2);
    return Sides(source, target, source_is_graph1 ? size1 : size2, source_is_graph1 ? size2 : size1);
}

Witnesses witnesses_of(bool by_neighbor) { return by_neighbor ? Witnesses::kNeighbor : Witnesses::kStatement; }

// Evidence and, where wanted, the number of witnesses, each laid out in the given shape.
py::tuple evidence_of(const Graph& source, const Graph& target, const CandidateRows& candidates, RowRange rows,
                      const std::vector<py::ssize_t>& shape, const BeliefsArrays& beliefs,
                      const RelationTable& relations, bool source_is_graph1, int n_threads, const std::string& tier,
                      bool by_neighbor, bool count_witnesses) {
    expect(by_neighbor || !count_witnesses, "witnesses are counted by neighbour only");
    const Sides sides = sides_of(source, target, relations, source_is_graph1);
    const BeliefsView held = beliefs.view(source, target);
    Array<float> out(shape);
    std::vector<py::ssize_t> counted = shape;
    if (!count_witnesses) counted[0] = 0;
    Array<int32_t> count(counted);
    const EvidenceArgs args{sides.source,
                            sides.target,
                            candidates,
                            held,
                            relations.view(source_is_graph1),
                            sides.num_source_relations,
                            sides.num_target_relations,
                            rows,
                            witnesses_of(by_neighbor),
                            out.mutable_data(),
                            count_witnesses ? count.mutable_data() : nullptr};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_evidence(args, options); });
    return py::make_tuple(out, count);
}

py::tuple evidence(const Graph& source, const Graph& target, const Array<int32_t>& candidates,
                   const BeliefsArrays& beliefs, const RelationTable& relations, bool source_is_graph1,
                   int64_t row_begin, int64_t row_end, int n_threads, const std::string& tier, bool by_neighbor,
                   bool count_witnesses) {
    const RowRange rows = row_range(row_begin, row_end, source.num_entities());
    const CandidatesView view = candidates_view(candidates, rows, target);
    return evidence_of(source, target, {view.indices, view.k, nullptr}, rows, {rows.end - rows.begin, view.k}, beliefs,
                       relations, source_is_graph1, n_threads, tier, by_neighbor, count_witnesses);
}

py::tuple evidence_of_pairs(const Graph& source, const Graph& target, const Array<int64_t>& indptr,
                            const Array<int32_t>& columns, const BeliefsArrays& beliefs, const RelationTable& relations,
                            bool source_is_graph1, int64_t row_begin, int64_t row_end, int n_threads,
                            const std::string& tier, bool by_neighbor, bool count_witnesses) {
    const RowRange rows = row_range(row_begin, row_end, source.num_entities());
    const int64_t size = columns.size();
    const CandidateRows view{indices_of(columns, "columns", size, target.num_entities()), 0,
                             offsets_of(indptr, "indptr", rows.end - rows.begin, size)};
    return evidence_of(source, target, view, rows, {size}, beliefs, relations, source_is_graph1, n_threads, tier,
                       by_neighbor, count_witnesses);
}

Array<float> blanket(const Graph& source, const Graph& target, const Array<int32_t>& candidates,
                     const BeliefsArrays& beliefs, const Array<float>& belief_evidence, const RelationTable& relations,
                     bool source_is_graph1, int64_t row_begin, int64_t row_end, int n_threads, const std::string& tier,
                     bool by_neighbor) {
    const Sides sides = sides_of(source, target, relations, source_is_graph1);
    const RowRange rows = row_range(row_begin, row_end, source.num_entities());
    const CandidatesView view = candidates_view(candidates, rows, target);
    const BeliefsView held = beliefs.view(source, target);
    Array<float> out({rows.end - rows.begin, view.k});
    const BlanketArgs args{sides.source,
                           sides.target,
                           view,
                           held,
                           data_of(belief_evidence, "belief_evidence", beliefs.targets.size()),
                           relations.view(source_is_graph1),
                           sides.num_source_relations,
                           sides.num_target_relations,
                           rows,
                           witnesses_of(by_neighbor),
                           out.mutable_data()};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_blanket(args, options); });
    return out;
}

py::tuple proposals(const Graph& source, const Graph& target, const BeliefsArrays& beliefs,
                    const RelationTable& relations, const Array<uint8_t>& open_rows, const Array<uint8_t>& open_targets,
                    int64_t k, int64_t budget, bool source_is_graph1, int64_t row_begin, int64_t row_end, int n_threads,
                    const std::string& tier, bool by_neighbor) {
    const Sides sides = sides_of(source, target, relations, source_is_graph1);
    const RowRange rows = row_range(row_begin, row_end, source.num_entities());
    const BeliefsView held = beliefs.view(source, target);
    expect(0 <= k && k <= INT32_MAX, "k must be in [0, 2^31), not " + std::to_string(k));
    Array<int32_t> indices({rows.end - rows.begin, k});
    Array<float> evidence({rows.end - rows.begin, k});
    const ProposalArgs args{sides.source,
                            sides.target,
                            held,
                            relations.view(source_is_graph1),
                            sides.num_source_relations,
                            sides.num_target_relations,
                            data_of(open_rows, "open_rows", source.num_entities()),
                            data_of(open_targets, "open_targets", target.num_entities()),
                            k,
                            budget,
                            rows,
                            witnesses_of(by_neighbor),
                            indices.mutable_data(),
                            evidence.mutable_data()};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_proposals(args, options); });
    return py::make_tuple(indices, evidence);
}

py::tuple relation_counts(const Graph& source, const Graph& target, const BeliefsArrays& beliefs,
                          int32_t num_source_relations, int32_t num_target_relations, int scale_bits, int64_t row_begin,
                          int64_t row_end, int n_threads, const std::string& tier) {
    expect(num_source_relations >= 1 && num_target_relations >= 1, "both graphs must have relations");
    // Every statement counts 1, as 2^scale_bits, or hardly more.
    expect(0 <= scale_bits && scale_bits < 62 && source.num_edges() < int64_t{1} << (62 - scale_bits),
           "scale_bits must leave room for the sum of all statements, got " + std::to_string(scale_bits));
    const Sides sides(source, target, num_source_relations, num_target_relations);
    const CountArgs args{sides.source,
                         sides.target,
                         beliefs.view(source, target),
                         num_source_relations,
                         num_target_relations,
                         static_cast<double>(int64_t{1} << scale_bits),
                         row_range(row_begin, row_end, source.num_entities())};
    RelationCounts counts;
    run_released(tier, n_threads, [&](const RunOptions& options) { counts = run_relation_counts(args, options); });
    return py::make_tuple(to_array(counts.keys), to_array(counts.num), to_array(counts.den));
}

py::tuple containment(const Array<int64_t>& keys, const Array<int64_t>& num, const Array<int64_t>& den, int scale_bits,
                      int32_t num_target_relations, double smoothing, double prior) {
    const int64_t count = keys.size();
    const auto num_relations = static_cast<int32_t>(den.size());
    expect(0 <= num_target_relations && num_target_relations <= INT32_MAX / 2,
           "num_target_relations must be in [0, 2^30), not " + std::to_string(num_target_relations));
    expect(0 <= scale_bits && scale_bits < 62, "scale_bits must be in [0, 62), not " + std::to_string(scale_bits));
    Array<int64_t> indptr(2 * den.size() + 1);
    Array<int32_t> columns(2 * count);
    Array<float> probs(2 * count);
    const ContainmentArgs args{data_of(keys, "keys", count),
                               data_of(num, "num", count),
                               data_of(den, "den", num_relations),
                               count,
                               num_relations,
                               num_target_relations,
                               std::ldexp(1.0, -scale_bits),
                               smoothing,
                               prior};
    expect(fill_containment(args, {indptr.mutable_data(), columns.mutable_data(), probs.mutable_data()}),
           "keys must increase within the pairs of relations");
    return py::make_tuple(indptr, columns, probs);
}

Array<float> changes(const Graph& source, const Array<float>& shares, const Array<float>& changes,
                     const Array<float>& moved, const Array<float>& weights, int64_t row_begin, int64_t row_end,
                     int n_threads) {
    const RowRange rows = row_range(row_begin, row_end, source.num_entities());
    Array<float> out(rows.end - rows.begin);
    const ChangesArgs args{source.view("source", shares.size()),
                           rows,
                           data_of(shares, "shares", shares.size()),
                           data_of(changes, "changes", shares.size()),
                           data_of(moved, "moved", source.num_entities()),
                           data_of(weights, "weights", source.num_entities()),
                           out.mutable_data()};
    const int threads = checked_threads(n_threads);
    run_interruptibly([&](const auto& poll) { changes_around(args, PairOptions{threads, poll}); });
    return out;
}

std::vector<std::string> tiers() {
    std::vector<std::string> names;
    for (const Tier* tier : usable_tiers()) names.emplace_back(tier->name);
    return names;
}

}  // namespace

PYBIND11_MODULE(_core, m) {
    m.doc() = "Native CPU kernels of stea_fast.";
    py::class_<Graph>(m, "Graph")
        .def(py::init<Array<int64_t>, Array<int32_t>>(), py::arg("indptr").noconvert(), py::arg("edges").noconvert());
    py::class_<RelationTable>(m, "RelationTable")
        .def(py::init(&make_relation_table), py::arg("sub12"), py::arg("sub21"), py::arg("fun1").noconvert(),
             py::arg("fun2").noconvert(), py::arg("fallback"));
    m.def("evidence", &evidence, py::arg("source"), py::arg("target"), py::arg("candidates").noconvert(),
          py::arg("beliefs"), py::arg("relations"), py::arg("source_is_graph1"), py::arg("row_begin"),
          py::arg("row_end"), py::arg("n_threads"), py::arg("tier"), py::arg("by_neighbor") = false,
          py::arg("count_witnesses") = false);
    m.def("evidence_of_pairs", &evidence_of_pairs, py::arg("source"), py::arg("target"), py::arg("indptr").noconvert(),
          py::arg("columns").noconvert(), py::arg("beliefs"), py::arg("relations"), py::arg("source_is_graph1"),
          py::arg("row_begin"), py::arg("row_end"), py::arg("n_threads"), py::arg("tier"),
          py::arg("by_neighbor") = false, py::arg("count_witnesses") = false);
    m.def("blanket", &blanket, py::arg("source"), py::arg("target"), py::arg("candidates").noconvert(),
          py::arg("beliefs"), py::arg("belief_evidence").noconvert(), py::arg("relations"), py::arg("source_is_graph1"),
          py::arg("row_begin"), py::arg("row_end"), py::arg("n_threads"), py::arg("tier"),
          py::arg("by_neighbor") = false);
    m.def("relation_counts", &relation_counts, py::arg("source"), py::arg("target"), py::arg("beliefs"),
          py::arg("num_source_relations"), py::arg("num_target_relations"), py::arg("scale_bits"), py::arg("row_begin"),
          py::arg("row_end"), py::arg("n_threads"), py::arg("tier"));
    m.def("containment", &containment, py::arg("keys").noconvert(), py::arg("num").noconvert(),
          py::arg("den").noconvert(), py::arg("scale_bits"), py::arg("num_target_relations"), py::arg("smoothing"),
          py::arg("prior"));
    m.def("changes_around", &changes, py::arg("source"), py::arg("shares").noconvert(), py::arg("changes").noconvert(),
          py::arg("moved").noconvert(), py::arg("weights").noconvert(), py::arg("row_begin"), py::arg("row_end"),
          py::arg("n_threads"));
    m.def("proposals", &proposals, py::arg("source"), py::arg("target"), py::arg("beliefs"), py::arg("relations"),
          py::arg("open_rows").noconvert(), py::arg("open_targets").noconvert(), py::arg("k"), py::arg("budget"),
          py::arg("source_is_graph1"), py::arg("row_begin"), py::arg("row_end"), py::arg("n_threads"), py::arg("tier"),
          py::arg("by_neighbor") = false);
    add_encoder_functions(m);
    add_pair_set_functions(m);
    add_topk_functions(m);
    add_int8_functions(m);
    add_value_functions(m);
    m.def("tiers", &tiers, "Usable tiers, slowest first.");
}

}  // namespace stea
