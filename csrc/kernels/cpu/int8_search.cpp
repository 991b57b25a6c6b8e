#include "int8_search.h"

#include <algorithm>
#include <limits>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "parallel_tasks.h"

namespace stea {
namespace {

constexpr int64_t kRowCapacity = 256;
constexpr int64_t kColumnCapacity = 64;  // there are many more columns than rows of a block
constexpr int64_t kFirstRows = 2 * kSliverRows;
constexpr int64_t kMostBlocks = 64;          // of a wave
constexpr double kMostProducts = 2e11;       // of a wave
constexpr int64_t kSliversBetweenSums = 32;  // after which sums in single precision are added to those in double
constexpr int64_t kLinesPerTask = 256;
constexpr float kMostReach = 0x1p30f;  // of any unit vectors: far less

double power_of_two_above(const double* values, int64_t count) {
    const double largest = *std::max_element(values, values + count);
    int exponent = 0;
    std::frexp(largest, &exponent);
    return largest > 0.0 ? std::ldexp(1.0, exponent) : 1.0;
}

bool any_offset(const SearchSide& side) {
    const auto differs = [](auto value) { return value != 0; };
    return std::any_of(side.offsets, side.offsets + side.values.count, differs) ||
           (side.excluded != nullptr && std::any_of(side.excluded, side.excluded + side.values.count, differs));
}

// So many that they keep all threads busy for a while, and not so many that the columns wait for long.
int64_t most_rows_of(int64_t rows, const ColumnPanels& panels) {
    const double per_row = 2.0 * static_cast<double>(panels.count() * panels.steps() * kStepBytes);
    const auto affordable = static_cast<int64_t>(kMostProducts / per_row);
    return std::min(rows, std::clamp<int64_t>(affordable / kBlockRows, 1, kMostBlocks) * kBlockRows);
}

}  // namespace

// What one thread works with.
struct Int8Search::Worker {
    Worker(int64_t k, int64_t turn_scratch)
        : lines(kBlockRows),
          reach(kBlockRows),
          pending(kBlockRows, k, kRowCapacity),
          hits(static_cast<size_t>(3 * (kBlockRows * kSliverColumns + kSumLanes))),
          row_lanes(static_cast<size_t>(kBlockRows * kSumLanes)),
          turning(static_cast<size_t>(turn_scratch)) {}

    ScanHits room() {
        const int64_t size = kBlockRows * kSliverColumns + kSumLanes;
        return {hits.data(), hits.data() + size, hits.data() + 2 * size};
    }

    ScanLines lines;
    std::vector<float> reach;
    Pending pending;
    std::vector<int32_t> hits;
    std::vector<float> row_lanes;
    std::vector<float> turning;
    SettleScratch settling;
};

Int8Search::Int8Search(const ColumnPanels& panels, const SearchProblem& problem, const Tier& tier, int n_threads)
    : panels_(panels),
      problem_(problem),
      n_threads_(n_threads),
      score_scale_(power_of_two_above(problem.rows.weights, problem.rows.values.count) *
                   power_of_two_above(problem.columns.weights, problem.columns.values.count)),
      factor_(problem.beta * score_scale_),
      with_sums_(problem.row_best.sums != nullptr),
      has_offsets_(any_offset(problem.rows) || any_offset(problem.columns)),
      column_coarseness_(0.0f),
      rows_(
          make_lines(problem_.rows, power_of_two_above(problem.rows.weights, problem.rows.values.count), score_scale_)),
      columns_(make_lines(problem_.columns, power_of_two_above(problem.columns.weights, problem.columns.values.count),
                          score_scale_)),
      of_rows_({problem_.rows, rows_}, {problem_.columns, columns_}, true, problem.row_best, problem.metric,
               score_scale_, problem.effort, tier),
      of_columns_({problem_.columns, columns_}, {problem_.rows, rows_}, false, problem.column_best, problem.metric,
                  score_scale_, problem.effort, tier),
      pending_(panels.count(), problem.column_best.k, kColumnCapacity),
      most_rows_(most_rows_of(problem.rows.values.count, panels)),
      wave_(panels, most_rows_, with_sums_),
      scan_columns_(rounded_up_to(panels.count(), kSliverColumns)),
      column_correction_(scan_columns_.inverse.size()),
      column_reach_(scan_columns_.inverse.size()),
      workers_(static_cast<size_t>(n_threads)) {
    for (size_t j = 0; j < columns_.size(); ++j) {
        const RoundedRow& rounded = panels.row(static_cast<int64_t>(j));
        set_rounded(columns_[j], rounded);
        if (panels.bits() == Bits::k8) column_correction_[j] = static_cast<int32_t>(-128 * int64_t{rounded.sum});
        column_coarseness_ = std::max(column_coarseness_, rounded.residual / rounded.scale);
        if (with_sums_) {
            scan_columns_.factor[j] = columns_[j].unit * static_cast<float>(factor_);
            scan_columns_.shift[j] = columns_[j].offset * static_cast<float>(factor_);
        }
    }
    if (with_sums_) {
        of_rows_.correct_sums(problem.beta, problem.anchor);
        of_columns_.correct_sums(problem.beta, problem.anchor);
    }
}

Int8Search::~Int8Search() = default;

void return_freed_memory() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

Int8Search::Worker& Int8Search::worker(int number) {
    std::unique_ptr<Worker>& place = workers_[static_cast<size_t>(number)];
    if (!place) place = std::make_unique<Worker>(problem_.row_best.k, panels_.turn().scratch_size());
    return *place;
}

// While the columns have no threshold, everything is kept for them: short waves give them one soon.
int64_t Int8Search::wave_size() const {
    const bool has_floors = problem_.columns.floors != nullptr;
    const int64_t wanted = has_floors ? most_rows_ : std::clamp(done_, std::min(kFirstRows, most_rows_), most_rows_);
    return std::min(wanted, static_cast<int64_t>(rows_.size()) - done_);
}

int64_t Int8Search::advance(const Poll& poll) {
    const int64_t count = wave_size();
    if (count == 0) return 0;
    Wave& wave = wave_;
    wave.begin(done_, count);
    round_rows(wave, poll);
    prepare_columns(wave);
    parallel_tasks(
        wave.blocks, n_threads_, [&](int number, int64_t block) { scan_block(wave, block, worker(number)); }, poll);
    parallel_tasks(
        wave.ranges, n_threads_, [&](int number, int64_t range) { offer_to_columns(wave, range, worker(number)); },
        poll);
    if (with_sums_) add_column_sums(wave);
    done_ += count;
    return count;
}

void Int8Search::round_rows(Wave& wave, const Poll& poll) {
    const int64_t steps = panels_.steps();
    const Turn turn = panels_.turn().view();
    std::vector<float> coarseness(static_cast<size_t>(wave.blocks), 0.0f);
    const auto round_block = [&](int number, int64_t block) {
        for (int64_t i = block * wave.block_size; i < block * wave.block_size + wave.block_rows(block); ++i) {
            const int64_t row = wave.first + i;
            if (!(problem_.rows.norms[row] > 0.0)) continue;
            uint8_t* sliver = wave.slivers.data() + i / kSliverRows * steps * kSliverRows * kStepBytes;
            const SliverPlace place{sliver + i % kSliverRows * kStepBytes, kSliverRows * kStepBytes, wave.row_bias,
                                    panels_.bits()};
            const RoundedRow rounded = round_line(panels_.tier(), problem_.rows.values, problem_.rows.norms[row], row,
                                                  turn, worker(number).turning.data(), place);
            set_rounded(rows_[static_cast<size_t>(row)], rounded);
            float& largest = coarseness[static_cast<size_t>(block)];
            largest = std::max(largest, rounded.residual / rounded.scale);
        }
    };
    parallel_tasks(wave.blocks, n_threads_, round_block, poll);
    wave.coarseness = std::max(kFuzz, *std::max_element(coarseness.begin(), coarseness.end()));
}

void Int8Search::prepare_columns(const Wave& wave) {
    const auto count = static_cast<int64_t>(columns_.size());
    parallel_tasks((count + kLinesPerTask - 1) / kLinesPerTask, n_threads_, [&](int, int64_t task) {
        for (int64_t j = task * kLinesPerTask; j < std::min((task + 1) * kLinesPerTask, count); ++j) {
            const Line& line = columns_[static_cast<size_t>(j)];
            scan_columns_.set(j, line);
            const float reach = std::ceil(wave.coarseness * line.weight / line.unit) + 1.0f;
            column_reach_[static_cast<size_t>(j)] = static_cast<int32_t>(reach < kMostReach ? reach : kMostReach);
        }
    });
}

void Int8Search::prepare_rows(const Wave& wave, int64_t first, int64_t count, Worker& worker) const {
    worker.lines = ScanLines(kBlockRows);
    worker.pending.clear();
    std::fill(worker.row_lanes.begin(), worker.row_lanes.end(), 0.0f);
    for (int64_t i = 0; i < count; ++i) {
        const auto place = static_cast<size_t>(i);
        const Line& line = rows_[static_cast<size_t>(wave.first + first + i)];
        worker.lines.set(i, line);
        worker.reach[place] = column_coarseness_ * line.length * line.weight / line.unit * (1.0f + kFuzz) + 1.0f;
        if (with_sums_) {
            worker.lines.factor[place] = line.unit;
            worker.lines.shift[place] = line.offset * static_cast<float>(factor_) + static_cast<float>(problem_.anchor);
        }
    }
}

void Int8Search::scan_block(Wave& wave, int64_t block, Worker& worker) {
    const int64_t first = block * wave.block_size;
    const int64_t count = wave.block_rows(block);
    const int64_t steps = panels_.steps();
    prepare_rows(wave, first, count, worker);
    const ScanRows rows{wave.slivers.data() + first * steps * kStepBytes,
                        panels_.bits(),
                        rounded_up_to(count, kSliverRows),
                        steps,
                        worker.lines.inverse.data(),
                        worker.lines.threshold.data(),
                        worker.lines.offset.data(),
                        worker.reach.data(),
                        has_offsets_};
    const int64_t slivers = wave.padded_columns / kSliverColumns;
    for (int64_t sliver = 0; sliver < slivers; ++sliver) {
        const int64_t column = sliver * kSliverColumns;
        const ScanColumns columns{panels_.sliver(sliver),
                                  column_correction_.data() + column,
                                  column_reach_.data() + column,
                                  scan_columns_.inverse.data() + column,
                                  scan_columns_.threshold.data() + column,
                                  scan_columns_.offset.data() + column};
        ScanSums sums{};
        if (with_sums_) {
            sums = {worker.lines.factor.data(),
                    worker.lines.shift.data(),
                    scan_columns_.factor.data() + column,
                    scan_columns_.shift.data() + column,
                    worker.row_lanes.data(),
                    wave.column_sums.data() + block * wave.padded_columns + column};
        }
        const int64_t hits = panels_.tier().scan(rows, columns, sums, worker.room());
        if (hits > 0) take_hits(wave, block, sliver, hits, worker);
        if (with_sums_ && (sliver % kSliversBetweenSums == kSliversBetweenSums - 1 || sliver + 1 == slivers)) {
            for (int64_t i = 0; i < count; ++i) {
                float* lanes = worker.row_lanes.data() + i * kSumLanes;
                double& sum = problem_.row_best.sums[wave.first + first + i];
                for (int64_t lane = 0; lane < kSumLanes; ++lane) sum += static_cast<double>(lanes[lane]);
                std::fill_n(lanes, kSumLanes, 0.0f);
            }
        }
    }
    for (int64_t i = 0; i < count; ++i) of_rows_.finish(worker.pending, i, wave.first + first + i, worker.settling);
    pass_on(wave, block, worker);
}

void Int8Search::take_hits(Wave& wave, int64_t block, int64_t sliver, int64_t hits, Worker& worker) {
    const ScanHits found = worker.room();
    const int64_t first_row = wave.first + block * wave.block_size;
    const int64_t end_row = first_row + wave.block_rows(block);
    for (int64_t hit = 0; hit < hits; ++hit) {
        const int64_t row = first_row + found.rows[hit];
        const int64_t column = sliver * kSliverColumns + found.columns[hit];
        if (row >= end_row || column >= panels_.count()) continue;
        Line& row_line = rows_[static_cast<size_t>(row)];
        const Line& column_line = columns_[static_cast<size_t>(column)];
        const int32_t product = found.sums[hit] - column_reach_[static_cast<size_t>(column)];
        const float error = score_error(row_line, column_line);
        const float upper = rounded_score(row_line, column_line, product) + error;
        const bool for_row = upper >= row_line.threshold && !column_line.excluded;
        const bool for_column = upper >= column_line.threshold && !row_line.excluded;
        if (for_row) {
            // The column waits until the row has scored the pair or dropped it: none is scored twice.
            const Candidate candidate{upper, error, static_cast<int32_t>(column)};
            if (of_rows_.offer(worker.pending, found.rows[hit], row, candidate, for_column, worker.settling)) {
                worker.lines.set_threshold(found.rows[hit], row_line);
            }
        } else if (for_column) {
            const auto query = static_cast<int32_t>(column);
            wave.list_of(block, query).candidates.push_back({query, {upper, error, static_cast<int32_t>(row)}});
        }
    }
    pass_on(wave, block, worker);
}

// To the columns, what rows are done with.
void Int8Search::pass_on(Wave& wave, int64_t block, Worker& worker) {
    SharedPairs& shared = worker.settling.shared;
    for (const SharedPairs::Dropped& pair : shared.dropped) {
        const int32_t column = pair.candidate.key;
        wave.list_of(block, column)
            .candidates.push_back({column, {pair.candidate.upper, pair.candidate.error, pair.query}});
    }
    for (const SharedPairs::Scored& pair : shared.scored) {
        const int32_t column = pair.candidate.key;
        wave.list_of(block, column)
            .exact.push_back({column, {pair.candidate.plain, pair.candidate.rounded, pair.query}});
    }
    shared.dropped.clear();
    shared.scored.clear();
}

void Int8Search::offer_to_columns(Wave& wave, int64_t range, Worker& worker) {
    for (int64_t block = 0; block < wave.blocks; ++block) {
        const Wave::Found& found = wave.list(block, range);
        for (const SharedPairs::Scored& pair : found.exact) {
            of_columns_.take_exact(pending_, pair.query, pair.query, pair.candidate);
        }
        for (const SharedPairs::Dropped& pair : found.candidates) {
            if (pair.candidate.upper < columns_[static_cast<size_t>(pair.query)].threshold) continue;
            of_columns_.offer(pending_, pair.query, pair.query, pair.candidate, false, worker.settling);
        }
    }
}

void Int8Search::add_column_sums(const Wave& wave) {
    const auto count = static_cast<int64_t>(columns_.size());
    parallel_tasks((count + kLinesPerTask - 1) / kLinesPerTask, n_threads_, [&](int, int64_t task) {
        for (int64_t block = 0; block < wave.blocks; ++block) {
            const float* sums = wave.column_sums.data() + block * wave.padded_columns;
            for (int64_t j = task * kLinesPerTask; j < std::min((task + 1) * kLinesPerTask, count); ++j) {
                problem_.column_best.sums[j] += static_cast<double>(sums[j]);
            }
        }
    });
}

void Int8Search::settle_columns(const Poll& poll) {
    const auto count = static_cast<int64_t>(columns_.size());
    const auto settle_some = [&](int number, int64_t task) {
        for (int64_t j = task * kLinesPerTask; j < std::min((task + 1) * kLinesPerTask, count); ++j) {
            of_columns_.finish(pending_, j, j, worker(number).settling);
        }
    };
    parallel_tasks((count + kLinesPerTask - 1) / kLinesPerTask, n_threads_, settle_some, poll);
}

}  // namespace stea
