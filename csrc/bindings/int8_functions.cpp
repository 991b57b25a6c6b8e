#include "int8_functions.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../kernels/cpu/int8_search.h"
#include "../kernels/cpu/isa.h"
#include "arrays.h"
#include "gil.h"

namespace stea {
namespace {

Matrix matrix_of(const py::array& values) {
    const bool single = py::isinstance<Array<float>>(values);
    expect(values.ndim() == 2 && (single || py::isinstance<Array<double>>(values)),
           "embeddings must be a contiguous matrix of float32 or float64");
    expect(0 < values.shape(1) && values.shape(1) <= kMostInt8Width,
           "embeddings must have between 1 and " + std::to_string(kMostInt8Width) + " columns, not " +
               std::to_string(values.shape(1)) + ": the sums of wider products do not fit in 32 bits");
    expect(0 < values.shape(0) && values.shape(0) <= std::numeric_limits<int32_t>::max(), "no rows, or more than 2^31");
    expect(reinterpret_cast<uintptr_t>(values.data()) % values.itemsize() == 0, "embeddings must be aligned");
    return {single ? static_cast<const float*>(values.data()) : nullptr,
            single ? nullptr : static_cast<const double*>(values.data()), values.shape(0), values.shape(1)};
}

const double* finite_from(double least, const Array<double>& array, const std::string& name, int64_t count) {
    const double* values = data_of(array, name, count);
    expect(are_finite_from(least, values, count),
           name + " must be finite" + (least == 0.0 ? ", and not negative" : ""));
    return values;
}

// One side of a search, made by Python: see SearchSide. Holds on to the arrays, which must not change any more.
class Side {
  public:
    Side(py::array values, Array<double> norms, Array<double> weights, Array<double> offsets, Array<double> quanta,
         std::optional<Array<double>> means, std::optional<Array<double>> floors,
         std::optional<Array<uint8_t>> excluded)
        : values_(std::move(values)),
          norms_(std::move(norms)),
          weights_(std::move(weights)),
          offsets_(std::move(offsets)),
          quanta_(std::move(quanta)),
          means_(std::move(means)),
          floors_(std::move(floors)),
          excluded_(std::move(excluded)) {
        constexpr double kLeast = std::numeric_limits<double>::lowest();
        view_.values = matrix_of(values_);
        const int64_t count = view_.values.count;
        view_.norms = finite_from(0.0, norms_, "norms", count);
        view_.weights = finite_from(0.0, weights_, "weights", count);
        view_.offsets = finite_from(kLeast, offsets_, "offsets", count);
        view_.quanta = finite_from(0.0, quanta_, "quanta", count);
        view_.means = means_ ? finite_from(kLeast, *means_, "means", count) : nullptr;
        view_.floors = floors_ ? finite_from(kLeast, *floors_, "floors", count) : nullptr;
        view_.excluded = excluded_ ? data_of(*excluded_, "excluded", count) : nullptr;
    }

    const SearchSide& view() const { return view_; }

  private:
    py::array values_;
    Array<double> norms_, weights_, offsets_, quanta_;
    std::optional<Array<double>> means_, floors_;
    std::optional<Array<uint8_t>> excluded_;
    SearchSide view_{};
};

template <typename T>
Array<T> filled(std::vector<py::ssize_t> shape, T value) {
    Array<T> out(std::move(shape));
    std::fill_n(out.mutable_data(), out.size(), value);
    return out;
}

// What a search finds for one side.
struct Best {
    Best(int64_t count, int64_t k, bool with_sums)
        : indices(filled<int32_t>({count, k}, -1)),
          scores(filled<double>({count, k}, -std::numeric_limits<double>::infinity())),
          sizes(filled<int32_t>({count}, 0)),
          unsettled(filled<uint8_t>({count}, 0)),
          sums(filled<double>({with_sums ? count : 0}, 0.0)) {}

    SearchBest view() {
        return {indices.shape(1),     indices.mutable_data(),   scores.mutable_data(),
                sizes.mutable_data(), unsettled.mutable_data(), sums.size() > 0 ? sums.mutable_data() : nullptr};
    }

    Array<int32_t> indices;
    Array<double> scores;
    Array<int32_t> sizes;
    Array<uint8_t> unsettled;
    Array<double> sums;
};

Metric metric_of(const std::string& name) {
    if (name == "cosine") return Metric::kCosine;
    if (name == "ip") return Metric::kInner;
    expect(name == "l2", "unknown metric '" + name + "'");
    return Metric::kDistance;
}

// Runs a part of a search without the GIL; Ctrl-C is looked for through the interpreter's own signal check.
template <typename Part>
void run_interruptibly(Part&& part) {
    try {
        ReleasedGil released;
        part([&released] { return released.ask([] { return PyErr_CheckSignals() != 0; }); });
    } catch (const Interrupted&) {
        throw py::error_already_set();
    }
}

std::unique_ptr<ColumnPanels> make_panels(const py::array& values, const Array<double>& norms, int bits, int n_threads,
                                          const std::string& tier) {
    expect(bits == 8 || bits == 16, "bits must be 8 or 16, not " + std::to_string(bits));
    const int threads = checked_threads(n_threads);
    const Matrix matrix = matrix_of(values);
    const double* lengths = finite_from(0.0, norms, "norms", matrix.count);
    const Int8Tier& chosen = find_int8_tier(tier);
    const ReleasedGil released;
    return std::make_unique<ColumnPanels>(matrix, lengths, bits == 8 ? Bits::k8 : Bits::k16, chosen, threads);
}

// The search with its arrays.
class BoundSearch {
  public:
    BoundSearch(const ColumnPanels& panels, const Side& rows, const Side& columns, const std::string& metric, int64_t k,
                std::optional<double> beta, double anchor, bool certain, int64_t most_scored, int n_threads,
                const std::string& tier)
        : rows_(rows), columns_(columns) {
        const SearchSide& row_view = rows_.view();
        const SearchSide& column_view = columns_.view();
        expect(k >= 1, "k must be at least 1");
        expect(1 <= most_scored && most_scored <= INT32_MAX, "most_scored must be in [1, 2^31)");
        expect(panels.bits() == Bits::k16 || !beta.has_value(), "sums are taken of panels of 16 bits");
        expect((row_view.means == nullptr) == (column_view.means == nullptr), "both sides have means, or none has");
        expect(panels.count() == column_view.values.count && panels.width() == column_view.values.width &&
                   panels.width() == row_view.values.width,
               "rows, columns and panels must belong together");
        expect((row_view.values.floats == nullptr) == (column_view.values.floats == nullptr),
               "rows and columns must have the same dtype");
        row_best_ =
            std::make_unique<Best>(row_view.values.count, std::min(k, column_view.values.count), beta.has_value());
        column_best_ =
            std::make_unique<Best>(column_view.values.count, std::min(k, row_view.values.count), beta.has_value());
        const SearchProblem problem{row_view,           column_view,
                                    row_best_->view(),  column_best_->view(),
                                    metric_of(metric),  Effort{certain, static_cast<int32_t>(most_scored)},
                                    beta.value_or(0.0), anchor};
        search_ = std::make_unique<Int8Search>(panels, problem, find_tier(tier), checked_threads(n_threads));
    }

    ~BoundSearch() {
        search_.reset();
        return_freed_memory();
    }
    BoundSearch(const BoundSearch&) = delete;
    BoundSearch& operator=(const BoundSearch&) = delete;

    int64_t advance() {
        int64_t rows = 0;
        run_interruptibly([&](const Poll& poll) { rows = search_->advance(poll); });
        return rows;
    }

    void settle_columns() {
        run_interruptibly([&](const Poll& poll) { search_->settle_columns(poll); });
    }

    static py::tuple found(const Best& best) {
        return py::make_tuple(best.indices, best.scores, best.unsettled, best.sums);
    }
    py::tuple of_rows() const { return found(*row_best_); }
    py::tuple of_columns() const { return found(*column_best_); }

  private:
    Side rows_;
    Side columns_;
    std::unique_ptr<Best> row_best_;
    std::unique_ptr<Best> column_best_;
    std::unique_ptr<Int8Search> search_;
};

std::vector<std::string> int8_tiers(bool fast_only) {
    std::vector<std::string> names;
    for (const Int8Tier* tier : usable_int8_tiers()) {
        if (tier->multiplies_bytes || !fast_only) names.emplace_back(tier->name);
    }
    return names;
}

}  // namespace

void add_int8_functions(py::module_& m) {
    py::class_<ColumnPanels>(m, "Int8Panels")
        .def(py::init(&make_panels), py::arg("values"), py::arg("norms").noconvert(), py::arg("bits"),
             py::arg("n_threads"), py::arg("tier"));
    py::class_<Side>(m, "Int8Side")
        .def(py::init<py::array, Array<double>, Array<double>, Array<double>, Array<double>,
                      std::optional<Array<double>>, std::optional<Array<double>>, std::optional<Array<uint8_t>>>(),
             py::arg("values"), py::arg("norms").noconvert(), py::arg("weights").noconvert(),
             py::arg("offsets").noconvert(), py::arg("quanta").noconvert(), py::arg("means").noconvert(),
             py::arg("floors").noconvert(), py::arg("excluded").noconvert());
    py::class_<BoundSearch>(m, "Int8Search")
        .def(py::init<const ColumnPanels&, const Side&, const Side&, const std::string&, int64_t, std::optional<double>,
                      double, bool, int64_t, int, const std::string&>(),
             py::arg("panels"), py::arg("rows"), py::arg("columns"), py::arg("metric"), py::arg("k"), py::arg("beta"),
             py::arg("anchor"), py::arg("certain"), py::arg("most_scored"), py::arg("n_threads"), py::arg("tier"),
             py::keep_alive<1, 2>())
        .def("advance", &BoundSearch::advance, "Searches some more rows and returns how many; 0 when all are done.")
        .def("settle_columns", &BoundSearch::settle_columns, "After all rows.")
        .def("of_rows", &BoundSearch::of_rows, "Indices, scores, unsettled lines, sums.")
        .def("of_columns", &BoundSearch::of_columns);
    m.def("int8_tiers", &int8_tiers, py::arg("fast_only"),
          "Usable tiers of the int8 search, slowest first; those with an instruction for it, or all.");
}

}  // namespace stea
