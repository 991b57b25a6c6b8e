// stea_fast._core: the native kernels as Python functions. No algorithm lives here.
#include <pybind11/stl.h>

#include <cmath>

#include "../kernels/containment.h"
#include "../kernels/cpu/isa.h"
#include "../kernels/cpu/parallel_rows.h"
#include "../kernels/cpu/run.h"
#include "arrays.h"
#include "gil.h"
#include "topk_functions.h"

namespace stea {
namespace {

// Runs a kernel without the GIL; Ctrl-C is looked for through the interpreter's own signal check.
template <typename Kernel>
void run_released(const std::string& tier, int n_threads, Kernel&& kernel) {
    expect(n_threads >= 1, "n_threads must be at least 1, not " + std::to_string(n_threads));
    const Tier& chosen = find_tier(tier);
    try {
        ReleasedGil released;
        const auto poll = [&released] { return released.ask([] { return PyErr_CheckSignals() != 0; }); };
        kernel(RunOptions{chosen, n_threads, poll});
    } catch (const Interrupted&) {
        throw py::error_already_set();
    }
}

RelationTable make_relation_table(const SparseArrays& sub12, const SparseArrays& sub21, const Array<float>& fun1,
                                  const Array<float>& fun2, float fallback) {
    const RelationSide side1{fun1.data(), fun1.size()};
    const RelationSide side2{fun2.data(), fun2.size()};
    const SparseView view12 = sub12.view(side1.size, "sub12");
    const SparseView view21 = sub21.view(side2.size, "sub21");
    const ReleasedGil released;
    return RelationTable(view12, view21, side1, side2, fallback);
}

// R of graph 1 or graph 2.
int32_t num_relations(const RelationTable& relations, bool of_graph1) {
    return static_cast<int32_t>((of_graph1 ? relations.size1() : relations.size2()) / 2);
}

Witnesses witnesses_of(bool by_neighbor) { return by_neighbor ? Witnesses::kNeighbor : Witnesses::kStatement; }

// Evidence and, where wanted, the number of witnesses.
py::tuple evidence(const GraphArrays& source, const GraphArrays& target, const Array<int32_t>& candidates,
                   const BeliefsArrays& beliefs, const RelationTable& relations, bool source_is_graph1,
                   int64_t row_begin, int64_t row_end, int n_threads, const std::string& tier, bool by_neighbor,
                   bool count_witnesses) {
    expect(by_neighbor || !count_witnesses, "witnesses are counted by neighbour only");
    const GraphView graph = source.view("source");
    const RowRange rows = row_range(row_begin, row_end, graph.num_entities);
    const CandidatesView view = candidates_view(candidates, rows);
    Array<float> out({rows.end - rows.begin, view.k});
    Array<int32_t> count({count_witnesses ? rows.end - rows.begin : 0, view.k});
    const EvidenceArgs args{graph,
                            target.view("target"),
                            view,
                            beliefs.view(graph.num_entities),
                            relations.view(source_is_graph1),
                            num_relations(relations, source_is_graph1),
                            num_relations(relations, !source_is_graph1),
                            rows,
                            witnesses_of(by_neighbor),
                            out.mutable_data(),
                            count_witnesses ? count.mutable_data() : nullptr};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_evidence(args, options); });
    return py::make_tuple(out, count);
}

Array<float> blanket(const GraphArrays& source, const GraphArrays& target, const Array<int32_t>& candidates,
                     const BeliefsArrays& beliefs, const Array<float>& belief_evidence, const RelationTable& relations,
                     bool source_is_graph1, int64_t row_begin, int64_t row_end, int n_threads, const std::string& tier,
                     bool by_neighbor) {
    const GraphView graph = source.view("source");
    const RowRange rows = row_range(row_begin, row_end, graph.num_entities);
    const CandidatesView view = candidates_view(candidates, rows);
    Array<float> out({rows.end - rows.begin, view.k});
    const BlanketArgs args{graph,
                           target.view("target"),
                           view,
                           beliefs.view(graph.num_entities),
                           data_of(belief_evidence, "belief_evidence", beliefs.targets.size()),
                           relations.view(source_is_graph1),
                           num_relations(relations, source_is_graph1),
                           num_relations(relations, !source_is_graph1),
                           rows,
                           witnesses_of(by_neighbor),
                           out.mutable_data()};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_blanket(args, options); });
    return out;
}

py::tuple proposals(const GraphArrays& source, const GraphArrays& target, const BeliefsArrays& beliefs,
                    const RelationTable& relations, const Array<uint8_t>& open_rows, const Array<uint8_t>& open_targets,
                    int64_t k, int64_t budget, bool source_is_graph1, int64_t row_begin, int64_t row_end, int n_threads,
                    const std::string& tier, bool by_neighbor) {
    const GraphView graph = source.view("source");
    const GraphView other = target.view("target");
    const RowRange rows = row_range(row_begin, row_end, graph.num_entities);
    Array<int32_t> indices({rows.end - rows.begin, k});
    Array<float> evidence({rows.end - rows.begin, k});
    const ProposalArgs args{graph,
                            other,
                            beliefs.view(graph.num_entities),
                            relations.view(source_is_graph1),
                            num_relations(relations, source_is_graph1),
                            num_relations(relations, !source_is_graph1),
                            data_of(open_rows, "open_rows", graph.num_entities),
                            data_of(open_targets, "open_targets", other.num_entities),
                            k,
                            budget,
                            rows,
                            witnesses_of(by_neighbor),
                            indices.mutable_data(),
                            evidence.mutable_data()};
    run_released(tier, n_threads, [&](const RunOptions& options) { run_proposals(args, options); });
    return py::make_tuple(indices, evidence);
}

template <typename T>
Array<T> to_array(const std::vector<T>& values) {
    return Array<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::tuple relation_counts(const GraphArrays& source, const GraphArrays& target, const BeliefsArrays& beliefs,
                          int32_t num_source_relations, int32_t num_target_relations, int scale_bits, int64_t row_begin,
                          int64_t row_end, int n_threads, const std::string& tier) {
    expect(0 <= scale_bits && scale_bits < 62, "scale_bits must be in [0, 62)");
    const GraphView graph = source.view("source");
    const CountArgs args{graph,
                         target.view("target"),
                         beliefs.view(graph.num_entities),
                         num_source_relations,
                         num_target_relations,
                         static_cast<double>(int64_t{1} << scale_bits),
                         row_range(row_begin, row_end, graph.num_entities)};
    RelationCounts counts;
    run_released(tier, n_threads, [&](const RunOptions& options) { counts = run_relation_counts(args, options); });
    return py::make_tuple(to_array(counts.keys), to_array(counts.num), to_array(counts.den));
}

py::tuple containment(const Array<int64_t>& keys, const Array<int64_t>& num, const Array<int64_t>& den, int scale_bits,
                      int32_t num_target_relations, double smoothing, double prior) {
    const int64_t count = keys.size();
    const auto num_relations = static_cast<int32_t>(den.size());
    Array<int64_t> indptr(2 * den.size() + 1);
    Array<int32_t> columns(2 * count);
    Array<float> probs(2 * count);
    fill_containment({keys.data(), data_of(num, "num", count), den.data(), count, num_relations, num_target_relations,
                      std::ldexp(1.0, -scale_bits), smoothing, prior},
                     {indptr.mutable_data(), columns.mutable_data(), probs.mutable_data()});
    return py::make_tuple(indptr, columns, probs);
}

std::vector<std::string> tiers() {
    std::vector<std::string> names;
    for (const Tier* tier : usable_tiers()) names.emplace_back(tier->name);
    return names;
}

}  // namespace

PYBIND11_MODULE(_core, m) {
    m.doc() = "Native CPU kernels of stea_fast.";
    py::class_<RelationTable>(m, "RelationTable")
        .def(py::init(&make_relation_table), py::arg("sub12"), py::arg("sub21"), py::arg("fun1").noconvert(),
             py::arg("fun2").noconvert(), py::arg("fallback"));
    m.def("evidence", &evidence, py::arg("source"), py::arg("target"), py::arg("candidates").noconvert(),
          py::arg("beliefs"), py::arg("relations"), py::arg("source_is_graph1"), py::arg("row_begin"),
          py::arg("row_end"), py::arg("n_threads"), py::arg("tier"), py::arg("by_neighbor") = false,
          py::arg("count_witnesses") = false);
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
    m.def("proposals", &proposals, py::arg("source"), py::arg("target"), py::arg("beliefs"), py::arg("relations"),
          py::arg("open_rows").noconvert(), py::arg("open_targets").noconvert(), py::arg("k"), py::arg("budget"),
          py::arg("source_is_graph1"), py::arg("row_begin"), py::arg("row_end"), py::arg("n_threads"), py::arg("tier"),
          py::arg("by_neighbor") = false);
    add_topk_functions(m);
    m.def("tiers", &tiers, "Usable tiers, slowest first.");
}

}  // namespace stea
