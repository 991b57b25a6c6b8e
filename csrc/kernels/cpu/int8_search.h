// The int8 search over all rows and columns, with threads.
#pragma once

#include <memory>
#include <vector>

#include "int8_lines.h"
#include "int8_panels.h"
#include "int8_wave.h"
#include "interruption.h"

namespace stea {

struct SearchProblem {
    SearchSide rows;
    SearchSide columns;  // those of the panels, which have 16 bits if there are sums
    SearchBest row_best;
    SearchBest column_best;
    Metric metric;
    Effort effort;
    double beta;  // of the sums; not looked at if there are none
    double anchor;
};

// What a search has freed goes back to the system: lists that grew on many threads leave holes, which the next search,
// with other lists, would not fill.
void return_freed_memory();

class Int8Search {
  public:
    Int8Search(const ColumnPanels& panels, const SearchProblem& problem, const Tier& tier, int n_threads);
    ~Int8Search();

    // Scans and settles some more rows, and returns how many; 0 when all are done. Throws Interrupted, as below.
    int64_t advance(const Poll& poll);

    // Settles the columns; after all rows.
    void settle_columns(const Poll& poll);

  private:
    struct Worker;

    int64_t wave_size() const;
    Worker& worker(int number);
    void round_rows(Wave& wave, const Poll& poll);
    void prepare_columns(const Wave& wave);
    void prepare_rows(const Wave& wave, int64_t first, int64_t count, Worker& worker) const;
    void scan_block(Wave& wave, int64_t block, Worker& worker);
    void take_hits(Wave& wave, int64_t block, int64_t sliver, int64_t hits, Worker& worker);
    void pass_on(Wave& wave, int64_t block, Worker& worker);
    void offer_to_columns(Wave& wave, int64_t range, Worker& worker);
    void add_column_sums(const Wave& wave);

    const ColumnPanels& panels_;
    SearchProblem problem_;
    int n_threads_;
    double score_scale_;
    double factor_;  // beta * score_scale
    bool with_sums_;
    bool has_offsets_;
    float column_coarseness_;  // largest residual / scale
    std::vector<Line> rows_;
    std::vector<Line> columns_;
    Direction of_rows_;
    Direction of_columns_;
    Pending pending_;  // of the columns
    int64_t done_ = 0;
    int64_t most_rows_;  // of a wave
    Wave wave_;
    ScanLines scan_columns_;
    std::vector<int32_t> column_correction_;
    std::vector<int32_t> column_reach_;
    std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace stea
