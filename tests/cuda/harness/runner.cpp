// Runs every kernel on every problem of a file, in every given configuration, and writes what came out.
//
//   runner problems.bin results.bin BLOCK:SLOTS:CAPACITY:SEED:WORKERS ...
//
// Both files are arrays after each other: int64 size in bytes, then the bytes. Every array gets memory of its own and
// of its exact size, so that a sanitizer sees every step beside it.
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <string>

#include "../../../csrc/kernels/cuda/evidence.h"
#include "../../../csrc/kernels/cuda/mutual_best.h"
#include "../../../csrc/kernels/cuda/relation_counts.h"
#include "runtime.h"

namespace {

using namespace stea;
using namespace stea::cuda;

struct Configuration {
    int block = 0, slots = 0, capacity = 0, workers = 0;
    unsigned seed = 0;

    explicit Configuration(const char* text) {
        if (std::sscanf(text, "%d:%d:%d:%u:%d", &block, &slots, &capacity, &seed, &workers) != 5) {
            throw std::runtime_error(std::string("not a configuration: ") + text);
        }
    }
};

template <typename T>
class Array {
  public:
    explicit Array(int64_t size) : size_(size), data_(new T[size]()) {}
    explicit Array(std::istream& file) {
        int64_t bytes = 0;
        if (!file.read(reinterpret_cast<char*>(&bytes), sizeof(bytes)))
            throw std::runtime_error("the file is too short");
        size_ = bytes / static_cast<int64_t>(sizeof(T));
        data_.reset(new T[size_]);
        file.read(reinterpret_cast<char*>(data_.get()), bytes);
    }

    void write(std::ostream& file) const {
        const int64_t bytes = size_ * static_cast<int64_t>(sizeof(T));
        file.write(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
        file.write(reinterpret_cast<const char*>(data_.get()), bytes);
    }

    T* data() const { return data_.get(); }
    T operator[](int64_t i) const { return data_[i]; }

  private:
    int64_t size_;
    std::unique_ptr<T[]> data_;
};

struct Graph {
    Array<int64_t> indptr;
    Array<Edge> edges;
    explicit Graph(std::istream& file) : indptr(file), edges(file) {}
    GraphView view(int64_t entities) const {
        GraphView graph{};
        graph.indptr = indptr.data();
        graph.edges = edges.data();
        graph.num_entities = entities;
        return graph;
    }
};

// In the order in which the members stand in the file.
struct Problem {
    Array<int64_t> sizes;  // n, n', R, R', k, k', scale_bits
    Graph source, target;
    Array<int32_t> candidates;
    Array<int64_t> belief_indptr;
    Array<int32_t> belief_targets;
    Array<float> belief_weights;
    Array<int64_t> strength_indptr;
    Array<int32_t> strength_columns;
    Array<Strength> strength_values;
    Array<float> source_default, target_default;
    Array<float> scores;
    Array<int32_t> back_indices;
    Array<float> back_scores;

    explicit Problem(std::istream& file)
        : sizes(file),
          source(file),
          target(file),
          candidates(file),
          belief_indptr(file),
          belief_targets(file),
          belief_weights(file),
          strength_indptr(file),
          strength_columns(file),
          strength_values(file),
          source_default(file),
          target_default(file),
          scores(file),
          back_indices(file),
          back_scores(file) {}

    int64_t rows() const { return sizes[0]; }
    int64_t k() const { return sizes[4]; }
    BeliefsView beliefs() const { return {belief_indptr.data(), belief_targets.data(), belief_weights.data()}; }
};

// With statements as witnesses, then with pairs of neighbours, which are counted.
void run_evidence_of(const Problem& problem, const Configuration& with, std::ostream& results) {
    const int64_t size = problem.rows() * problem.k();
    Array<float> out(size), strongest(size);
    Array<int32_t> count(size);
    const StrengthsView strengths{problem.strength_indptr.data(), problem.strength_columns.data(),
                                  problem.strength_values.data(), problem.source_default.data(),
                                  problem.target_default.data()};
    EvidenceArgs args{problem.source.view(problem.rows()),
                      problem.target.view(problem.sizes[1]),
                      {problem.candidates.data(), problem.k()},
                      problem.beliefs(),
                      strengths,
                      {0, problem.rows()},
                      Witnesses::kStatement,
                      out.data(),
                      nullptr};
    run_evidence(args, {with.block, with.slots}, nullptr);
    args.witnesses = Witnesses::kNeighbor;
    args.evidence = strongest.data();
    args.witness_count = count.data();
    run_evidence(args, {with.block, with.slots}, nullptr);
    out.write(results);
    strongest.write(results);
    count.write(results);
}

void run_counts_of(const Problem& problem, const Configuration& with, std::ostream& results) {
    Array<CountKey> keys(with.capacity);
    Array<CountSum> num(with.capacity), den(problem.sizes[2]);
    Array<int32_t> overflow(1);
    const CountArgs args{problem.source.view(problem.rows()),
                         problem.target.view(problem.sizes[1]),
                         problem.beliefs(),
                         static_cast<int32_t>(problem.sizes[2]),
                         static_cast<int32_t>(problem.sizes[3]),
                         static_cast<double>(int64_t{1} << problem.sizes[6]),
                         {0, problem.source.indptr[problem.rows()]},
                         keys.data(),
                         num.data(),
                         with.capacity,
                         den.data(),
                         overflow.data()};
    run_relation_counts(args, with.block, nullptr);
    keys.write(results);
    num.write(results);
    den.write(results);
    overflow.write(results);
}

void run_mutual_of(const Problem& problem, const Configuration& with, std::ostream& results) {
    Array<int32_t> partner(problem.rows());
    Array<float> value(problem.rows());
    const MutualArgs<float> args{
        {problem.candidates.data(), problem.scores.data(), problem.rows(), problem.k()},
        {problem.back_indices.data(), problem.back_scores.data(), problem.sizes[1], problem.sizes[5]},
        partner.data(),
        value.data()};
    run_mutual_best(args, with.block, nullptr);
    partner.write(results);
    value.write(results);
}

void run_all(std::istream& problems, std::ostream& results, char** first, char** last) {
    const Array<int64_t> count(problems);
    for (int64_t i = 0; i < count[0]; ++i) {
        const Problem problem(problems);
        for (char** text = first; text < last; ++text) {
            const Configuration with(*text);
            cuda_on_cpu::settings() = {with.seed, with.workers};
            run_evidence_of(problem, with, results);
            run_counts_of(problem, with, results);
            run_mutual_of(problem, with, results);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        std::ifstream problems(argv[1], std::ios::binary);
        std::ofstream results(argv[2], std::ios::binary);
        run_all(problems, results, argv + 3, argv + argc);
        if (cuda_on_cpu::allocations_alive() != 0) throw std::runtime_error("scratch memory was not given back");
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 70;
    }
}
