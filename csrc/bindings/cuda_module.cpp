// stea_fast._cuda: the CUDA kernels as Python functions over device arrays. No algorithm lives here.
// stea_fast._cuda_jit, where STEA_CUDA_JIT is defined: the same functions for kernels that are compiled at run time.
//
// Arrays come by DLPack, work goes to the caller's stream, outputs are allocated by the caller. What the arrays hold
// has been checked on the Python side.
#include <pybind11/stl.h>

#include "../kernels/cuda/evidence.h"
#include "../kernels/cuda/mutual_best.h"
#include "../kernels/cuda/relation_counts.h"
#include "device_arrays.h"
#include "gil.h"
#ifdef STEA_CUDA_JIT
#include "../kernels/cuda/driver/loading.h"
#define STEA_MODULE _cuda_jit
#else
#define STEA_MODULE _cuda
#endif

namespace stea::cuda {
namespace {

using Tuple = py::tuple;

void expect(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument(message);
}

void expect_items(const Tuple& tuple, size_t count, const char* name) {
    expect(tuple.size() == count, std::string(name) + " must be a tuple of " + std::to_string(count) + " arrays");
}

void expect_block_size(int block_size, int most = 1024) {
    expect(block_size >= 32 && block_size <= most && block_size % 32 == 0,
           "block_size must be a multiple of 32 up to " + std::to_string(most) + ", not " + std::to_string(block_size));
}

bool is_power_of_two(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// (indptr, edges)
GraphView graph_view(DeviceArrays& arrays, const Tuple& graph, const std::string& name) {
    expect_items(graph, 2, name.c_str());
    GraphView view{};
    view.indptr = arrays.take<int64_t>(graph[0], name + ".indptr", {-1});
    view.num_entities = arrays.size(0) - 1;
    expect(view.num_entities >= 0, name + ".indptr is empty");
    view.edges = reinterpret_cast<const Edge*>(arrays.take<int32_t>(graph[1], name + ".edges", {-1, 2}));
    return view;
}

// (indptr, targets, weights)
BeliefsView beliefs_view(DeviceArrays& arrays, const Tuple& beliefs, int64_t num_rows, const std::string& name) {
    expect_items(beliefs, 3, name.c_str());
    const int64_t* indptr = arrays.take<int64_t>(beliefs[0], name + ".indptr", {num_rows + 1});
    const int32_t* targets = arrays.take<int32_t>(beliefs[1], name + ".targets", {-1});
    const int64_t count = arrays.size(0);
    return {indptr, targets, arrays.take<float>(beliefs[2], name + ".weights", {count})};
}

// (starts, pairs, source_default, target_default)
StrengthsView strengths_view(DeviceArrays& arrays, const Tuple& strengths) {
    expect_items(strengths, 4, "strengths");
    StrengthsView view{};
    view.starts = arrays.take<int32_t>(strengths[0], "strengths.starts", {-1});
    const int64_t buckets = arrays.size(0) - 1;
    expect(is_power_of_two(buckets) && buckets > 1,
           "strengths.starts must have a power of two of buckets, and one item more");
    for (view.shift = 32; buckets >> (32 - view.shift) > 1; --view.shift) {
    }
    view.pairs = reinterpret_cast<const RelationPair*>(arrays.take<int32_t>(strengths[1], "strengths.pairs", {-1, 4}));
    view.source_default = arrays.take<float>(strengths[2], "strengths.source_default", {-1});
    view.target_default = arrays.take<float>(strengths[3], "strengths.target_default", {-1});
    return view;
}

// An array [rows, k], or (indptr, columns) for rows of any length.
CandidateRows candidates_view(DeviceArrays& arrays, const py::object& candidates, int64_t num_rows,
                              int64_t* num_pairs) {
    if (!py::isinstance<Tuple>(candidates)) {
        const int32_t* indices = arrays.take<int32_t>(candidates, "candidates", {num_rows, -1});
        *num_pairs = num_rows * arrays.size(1);
        return {indices, arrays.size(1), nullptr};
    }
    const Tuple pairs = candidates;
    expect_items(pairs, 2, "candidates");
    const int64_t* indptr = arrays.take<int64_t>(pairs[0], "candidates.indptr", {num_rows + 1});
    const int32_t* columns = arrays.take<int32_t>(pairs[1], "candidates.columns", {-1});
    *num_pairs = arrays.size(0);
    return {columns, 0, indptr};
}

void evidence(const Tuple& source, const Tuple& target, const py::object& candidates, const Tuple& beliefs,
              const Tuple& believers, const Tuple& strengths, int64_t row_begin, int64_t row_end, const py::object& out,
              uintptr_t stream, bool by_neighbor, const py::object& witness_count, int block_size) {
    expect_block_size(block_size, kMostEvidenceThreads);
    DeviceArrays arrays(stream);
    EvidenceArgs args{};
    args.source = graph_view(arrays, source, "source");
    args.target = graph_view(arrays, target, "target");
    expect(0 <= row_begin && row_begin <= row_end && row_end <= args.source.num_entities, "rows outside the graph");
    args.rows = {row_begin, row_end};
    args.candidates = candidates_view(arrays, candidates, row_end - row_begin, &args.num_pairs);
    args.beliefs = beliefs_view(arrays, beliefs, args.source.num_entities, "beliefs");
    args.believers = beliefs_view(arrays, believers, args.target.num_entities, "believers");
    args.strengths = strengths_view(arrays, strengths);
    args.witnesses = by_neighbor ? Witnesses::kNeighbor : Witnesses::kStatement;
    args.evidence = arrays.take<float>(out, "out", {args.num_pairs});
    if (!witness_count.is_none()) {
        args.witness_count = arrays.take<int32_t>(witness_count, "witness_count", {args.num_pairs});
    }
    const ReleasedGil released;
    const DeviceGuard guard(arrays.device());
    run_evidence(args, block_size, arrays.stream());
}

void relation_counts(const Tuple& source, const Tuple& target, const Tuple& beliefs, int32_t num_source_relations,
                     int32_t num_target_relations, int scale_bits, int64_t edge_begin, int64_t edge_end,
                     const Tuple& out, uintptr_t stream, int block_size) {
    expect_block_size(block_size);
    expect(0 <= scale_bits && scale_bits < 62, "scale_bits must be in [0, 62)");
    expect_items(out, 4, "out");
    DeviceArrays arrays(stream);
    CountArgs args{};
    args.source = graph_view(arrays, source, "source");
    expect(0 <= edge_begin && edge_begin <= edge_end && edge_end <= arrays.size(0), "edges outside the graph");
    args.target = graph_view(arrays, target, "target");
    args.beliefs = beliefs_view(arrays, beliefs, args.source.num_entities, "beliefs");
    args.num_source_relations = num_source_relations;
    args.num_target_relations = num_target_relations;
    args.scale = static_cast<double>(int64_t{1} << scale_bits);
    args.edges = {edge_begin, edge_end};
    args.keys = reinterpret_cast<CountKey*>(arrays.take<int64_t>(out[0], "out.keys", {-1}));
    args.capacity = arrays.size(0);
    expect(is_power_of_two(args.capacity), "out.keys must have a power of two of slots");
    args.num = reinterpret_cast<CountSum*>(arrays.take<int64_t>(out[1], "out.num", {args.capacity}));
    args.den = reinterpret_cast<CountSum*>(arrays.take<int64_t>(out[2], "out.den", {num_source_relations}));
    args.overflow = arrays.take<int32_t>(out[3], "out.overflow", {1});
    const ReleasedGil released;
    const DeviceGuard guard(arrays.device());
    run_relation_counts(args, block_size, arrays.stream());
}

template <typename Score>
RankingView<Score> ranking_view(DeviceArrays& arrays, const Tuple& ranking, const std::string& name) {
    expect_items(ranking, 2, name.c_str());
    const int32_t* indices = arrays.take<int32_t>(ranking[0], name + ".indices", {-1, -1});
    const int64_t rows = arrays.size(0), k = arrays.size(1);
    return {indices, arrays.take<Score>(ranking[1], name + ".scores", {rows, k}), rows, k};
}

template <typename Score>
void mutual_best(const Tuple& forward, const Tuple& backward, const Tuple& out, const Tuple& scratch, uintptr_t stream,
                 int block_size) {
    expect_block_size(block_size);
    expect_items(out, 2, "out");
    expect_items(scratch, 4, "scratch");
    DeviceArrays arrays(stream);
    MutualArgs<Score> args{};
    args.forward = ranking_view<Score>(arrays, forward, "forward");
    args.backward = ranking_view<Score>(arrays, backward, "backward");
    args.partner = arrays.take<int32_t>(out[0], "out.partner", {args.forward.rows});
    args.value = arrays.take<Score>(out[1], "out.value", {args.forward.rows});
    args.best = arrays.take<int32_t>(scratch[0], "scratch.best", {args.forward.rows});
    args.best_score = arrays.take<Score>(scratch[1], "scratch.best_score", {args.forward.rows});
    args.best_back = arrays.take<int32_t>(scratch[2], "scratch.best_back", {args.backward.rows});
    args.best_back_score = arrays.take<Score>(scratch[3], "scratch.best_back_score", {args.backward.rows});
    const ReleasedGil released;
    const DeviceGuard guard(arrays.device());
    run_mutual_best(args, block_size, arrays.stream());
}

py::tuple devices() {
    const DeviceCount found = device_count();
    return py::make_tuple(found.count, found.error);
}

py::tuple properties(int number) {
    const Device device = device_properties(number);
    return py::make_tuple(device.name, device.compute_capability);
}

}  // namespace

PYBIND11_MODULE(STEA_MODULE, m) {
    m.doc() = "CUDA kernels of stea_fast.";
#ifdef STEA_CUDA_JIT
    m.def("kernel_names", &driver::kernel_names, "Names of all kernels that are launched.");
    m.def("load_kernels", &driver::load_kernels, py::arg("device"), py::arg("image"), py::arg("entries"),
          "Takes the kernels of a device from PTX or machine code; entries: (name, its name there) of each.");
#endif
    py::register_exception<CudaError>(m, "CudaError", PyExc_RuntimeError);
    m.def("devices", &devices, "Number of devices, and why there are none.");
    m.def("device_properties", &properties, py::arg("device"), "Name and compute capability, 75 for 7.5.");
    m.def("driver_version", &driver_version, "1000 * major + 10 * minor of the CUDA version that the driver supports.");
    m.def("device_type", &dlpack_device_type, "DLPack's number of the memory that the kernels read.");
    m.def("evidence", &evidence, py::arg("source"), py::arg("target"), py::arg("candidates"), py::arg("beliefs"),
          py::arg("believers"), py::arg("strengths"), py::arg("row_begin"), py::arg("row_end"), py::arg("out"),
          py::arg("stream"), py::arg("by_neighbor") = false, py::arg("witness_count") = py::none(),
          py::arg("block_size") = 128);
    m.def("relation_counts", &relation_counts, py::arg("source"), py::arg("target"), py::arg("beliefs"),
          py::arg("num_source_relations"), py::arg("num_target_relations"), py::arg("scale_bits"),
          py::arg("edge_begin"), py::arg("edge_end"), py::arg("out"), py::arg("stream"), py::arg("block_size") = 128);
    m.def("mutual_best", &mutual_best<float>, py::arg("forward"), py::arg("backward"), py::arg("out"),
          py::arg("scratch"), py::arg("stream"), py::arg("block_size") = 128);
    m.def("mutual_best_double", &mutual_best<double>, py::arg("forward"), py::arg("backward"), py::arg("out"),
          py::arg("scratch"), py::arg("stream"), py::arg("block_size") = 128);
}

}  // namespace stea::cuda
