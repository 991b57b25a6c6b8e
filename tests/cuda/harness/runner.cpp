// Runs every kernel on every problem of a file, in every given configuration, and writes what came out.
//
//   runner problems.bin results.bin BLOCK:CAPACITY:SEED:WORKERS ...
//   runner --evidence ...    the same for the evidence only
//   runner --host            what the host side does when a call fails
//
// Both files are arrays after each other: int64 size in bytes, then the bytes. Under a sanitizer every array gets
// memory of its own and of its exact size, so that every step beside it is seen; otherwise it lies in the memory of the
// second device, which the host must not touch.
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "../../../csrc/kernels/cuda/evidence.h"
#include "../../../csrc/kernels/cuda/mutual_best.h"
#include "../../../csrc/kernels/cuda/relation_counts.h"
#include "host_checks.h"
#include "runtime.h"

namespace {

using namespace stea;
using namespace stea::cuda;

struct Configuration {
    int block = 0, capacity = 0, workers = 0;
    unsigned seed = 0;

    explicit Configuration(const char* text) {
        if (std::sscanf(text, "%d:%d:%u:%d", &block, &capacity, &seed, &workers) != 4) {
            throw std::runtime_error(std::string("not a configuration: ") + text);
        }
    }
};

constexpr int kDevice = 1;  // not the one that is current at first
char stream_of_caller;

// Memory of exactly this size, or of the device.
class Memory {
  public:
    explicit Memory(int64_t bytes) {
#if defined(HARNESS_ASAN) || defined(HARNESS_TSAN)
        own_.reset(new char[bytes]);
        data_ = own_.get();
#else
        data_ = static_cast<char*>(cuda_on_cpu::device_memory(kDevice, bytes));
#endif
    }
    char* data() const { return data_; }

  private:
    std::unique_ptr<char[]> own_;
    char* data_;
};

template <typename T>
class Array {
  public:
    explicit Array(int64_t size) : bytes_(size * static_cast<int64_t>(sizeof(T))), memory_(bytes_) {
        const cuda_on_cpu::DeviceAccess access(kDevice);
        std::memset(memory_.data(), 0, bytes_);
    }
    explicit Array(std::istream& file) : bytes_(size_in(file)), memory_(bytes_) {
        const cuda_on_cpu::DeviceAccess access(kDevice);
        file.read(memory_.data(), bytes_);
    }

    void write(std::ostream& file) const {
        const cuda_on_cpu::DeviceAccess access(kDevice);
        file.write(reinterpret_cast<const char*>(&bytes_), sizeof(bytes_));
        file.write(memory_.data(), bytes_);
    }

    T* data() const { return reinterpret_cast<T*>(memory_.data()); }
    int64_t size() const { return bytes_ / static_cast<int64_t>(sizeof(T)); }
    T operator[](int64_t i) const {
        const cuda_on_cpu::DeviceAccess access(kDevice);
        return data()[i];
    }

  private:
    static int64_t size_in(std::istream& file) {
        int64_t bytes = 0;
        if (file.read(reinterpret_cast<char*>(&bytes), sizeof(bytes))) return bytes;
        throw std::runtime_error("the file is too short");
    }

    int64_t bytes_;
    Memory memory_;
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

// The table of strengths that the kernels read, from sorted rows of the stored pairs.
class StrengthTable {
  public:
    StrengthTable(const Array<int64_t>& indptr, const Array<int32_t>& columns, const Array<Strength>& values)
        : bits_(bits_for(columns.size())), starts_((int64_t{1} << bits_) + 1), pairs_(columns.size()) {
        const cuda_on_cpu::DeviceAccess access(kDevice);
        int32_t* starts = starts_.data();
        const auto for_all = [&](auto work) {
            for (int32_t row = 0; row + 1 < indptr.size(); ++row) {
                for (int64_t i = indptr.data()[row]; i < indptr.data()[row + 1]; ++i) {
                    work(RelationPair{row, columns.data()[i], values.data()[i]});
                }
            }
        };
        for_all([&](const RelationPair& pair) { ++starts[bucket_of(pair) + 1]; });
        for (int64_t i = 0; i < int64_t{1} << bits_; ++i) starts[i + 1] += starts[i];
        std::vector<int32_t> next(starts, starts + (int64_t{1} << bits_));
        for_all([&](const RelationPair& pair) { pairs_.data()[next[bucket_of(pair)]++] = pair; });
    }

    StrengthsView view(const float* source_default, const float* target_default) const {
        return {starts_.data(), 32 - bits_, pairs_.data(), source_default, target_default};
    }

  private:
    static int bits_for(int64_t pairs) {
        int bits = 1;
        while (int64_t{1} << bits < 2 * pairs) ++bits;
        return bits;
    }

    uint32_t bucket_of(const RelationPair& pair) const {
        const uint32_t mixed =
            static_cast<uint32_t>(pair.relation) * 0x9E3779B1u + static_cast<uint32_t>(pair.target_relation);
        return mixed * 0x85EBCA6Bu >> (32 - bits_);
    }

    int bits_;
    Array<int32_t> starts_;
    Array<RelationPair> pairs_;
};

// In the order in which the members stand in the file.
struct Problem {
    Array<int64_t> sizes;  // n, n', R, R', k, k', scale_bits
    Graph source, target;
    Array<int32_t> candidates;
    Array<int64_t> belief_indptr;
    Array<int32_t> belief_targets;
    Array<float> belief_weights;
    Array<int64_t> believer_indptr;
    Array<int32_t> believers;
    Array<float> believer_weights;
    Array<int64_t> strength_indptr;
    Array<int32_t> strength_columns;
    Array<Strength> strength_values;
    Array<float> source_default, target_default;
    StrengthTable strengths;  // made of them
    Array<float> scores;
    Array<int32_t> back_indices;
    Array<float> back_scores;
    Array<int64_t> pair_indptr;  // of the candidates of the second half of the rows
    Array<int32_t> pair_columns;

    explicit Problem(std::istream& file)
        : sizes(file),
          source(file),
          target(file),
          candidates(file),
          belief_indptr(file),
          belief_targets(file),
          belief_weights(file),
          believer_indptr(file),
          believers(file),
          believer_weights(file),
          strength_indptr(file),
          strength_columns(file),
          strength_values(file),
          source_default(file),
          target_default(file),
          strengths(strength_indptr, strength_columns, strength_values),
          scores(file),
          back_indices(file),
          back_scores(file),
          pair_indptr(file),
          pair_columns(file) {}

    int64_t rows() const { return sizes[0]; }
    int64_t k() const { return sizes[4]; }
    BeliefsView beliefs() const { return {belief_indptr.data(), belief_targets.data(), belief_weights.data()}; }
};

EvidenceArgs evidence_args(const Problem& problem) {
    EvidenceArgs args{};
    args.source = problem.source.view(problem.rows());
    args.target = problem.target.view(problem.sizes[1]);
    args.candidates = {problem.candidates.data(), problem.k(), nullptr};
    args.num_pairs = problem.rows() * problem.k();
    args.beliefs = problem.beliefs();
    args.believers = {problem.believer_indptr.data(), problem.believers.data(), problem.believer_weights.data()};
    args.strengths = problem.strengths.view(problem.source_default.data(), problem.target_default.data());
    args.rows = {0, problem.rows()};
    return args;
}

// With statements as witnesses and with pairs of neighbours; then the second half of the rows as sparse pairs.
void run_evidence_of(const Problem& problem, const Configuration& with, std::ostream& results) {
    const int block = with.block < kMostEvidenceThreads ? with.block : kMostEvidenceThreads;
    EvidenceArgs args = evidence_args(problem);
    for (const Witnesses witnesses : {Witnesses::kStatement, Witnesses::kNeighbor}) {
        Array<float> out(args.num_pairs);
        Array<int32_t> count(args.num_pairs);
        args.witnesses = witnesses;
        args.evidence = out.data();
        args.witness_count = count.data();
        run_evidence(args, block, &stream_of_caller);
        out.write(results);
        count.write(results);
    }
    args.num_pairs = problem.pair_columns.size();
    args.candidates = {problem.pair_columns.data(), 0, problem.pair_indptr.data()};
    args.rows.begin = problem.rows() / 2;
    Array<float> of_pairs(args.num_pairs);
    args.evidence = of_pairs.data();
    args.witness_count = nullptr;
    run_evidence(args, block, &stream_of_caller);
    of_pairs.write(results);
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
    run_relation_counts(args, with.block, &stream_of_caller);
    keys.write(results);
    num.write(results);
    den.write(results);
    overflow.write(results);
}

void run_mutual_of(const Problem& problem, const Configuration& with, std::ostream& results) {
    Array<int32_t> partner(problem.rows());
    Array<float> value(problem.rows()), score(problem.rows()), score_back(problem.sizes[1]);
    Array<int32_t> best(problem.rows()), best_back(problem.sizes[1]);
    const MutualArgs<float> args{
        {problem.candidates.data(), problem.scores.data(), problem.rows(), problem.k()},
        {problem.back_indices.data(), problem.back_scores.data(), problem.sizes[1], problem.sizes[5]},
        partner.data(),
        value.data(),
        best.data(),
        score.data(),
        best_back.data(),
        score_back.data()};
    run_mutual_best(args, with.block, &stream_of_caller);
    partner.write(results);
    value.write(results);
}

void run_all(std::istream& problems, std::ostream& results, char** first, char** last, bool evidence_only) {
    const Array<int64_t> count(problems);
    for (int64_t i = 0; i < count[0]; ++i) {
        const Problem problem(problems);
        for (char** text = first; text < last; ++text) {
            const Configuration with(*text);
            cuda_on_cpu::settings().seed = with.seed;
            cuda_on_cpu::settings().workers = with.workers;
            const DeviceGuard guard(kDevice);
            run_evidence_of(problem, with, results);
            if (evidence_only) continue;
            run_counts_of(problem, with, results);
            run_mutual_of(problem, with, results);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        cuda_on_cpu::expect_stream(&stream_of_caller);
        if (argc == 2 && std::string(argv[1]) == "--host") return host_checks(&stream_of_caller);
#if !defined(HARNESS_ASAN) && !defined(HARNESS_TSAN)
        cuda_on_cpu::report_touched_memory();
#endif
        const bool evidence_only = std::string(argv[1]) == "--evidence";
        char** const given = evidence_only ? argv + 2 : argv + 1;
        std::ifstream problems(given[0], std::ios::binary);
        std::ofstream results(given[1], std::ios::binary);
        run_all(problems, results, given + 2, argv + argc, evidence_only);
        if (cuda_on_cpu::current_device() != 0) throw std::runtime_error("the former device is not current again");
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 70;
    }
}
