// What the int8 search knows of its lines (rows or columns), and how their candidates are settled.
#pragma once

#include <cmath>
#include <vector>

#include "../int8_search.h"
#include "../topk.h"
#include "tier.h"

namespace stea {

// One line. Weights are shares of the largest, and scores are divided by the product of both sides' largest (made
// powers of two), so that single precision holds them all.
struct Line {
    float weight;
    float unit;  // weight * scale of the rounded row
    float residual;
    float length;
    float offset;
    float threshold;  // only scores that can reach it matter
    int32_t scored;   // how many of its pairs were scored exactly
    bool excluded;
};

// What the score of a row and a column may differ from `rounded_score` by.
inline float score_error(const Line& row, const Line& column) {
    return row.weight * column.weight * (row.residual + row.length * column.residual) +
           kFuzz * (std::abs(row.offset) + std::abs(column.offset));
}

inline float rounded_score(const Line& row, const Line& column, int32_t product) {
    return row.unit * column.unit * static_cast<float>(product) - row.offset - column.offset;
}

// The lines of one side, before anything is known of their scores but floors.
std::vector<Line> make_lines(const SearchSide& side, double weight_scale, double score_scale);

// Fills in what follows from the rounded row.
void set_rounded(Line& line, const RoundedRow& row);

// Candidates that wait to be settled, of some lines; scores are those of `rounded_score`.
struct Pending {
    Pending(int64_t lines, int64_t k, int64_t least_capacity);
    Entry* of(int64_t slot) { return entries.data() + slot * capacity; }
    void clear();

    int64_t capacity;
    int32_t first_limit;
    std::vector<Entry> entries;  // [lines, capacity]
    std::vector<int32_t> sizes;
    std::vector<int32_t> limits;  // the size at which a line is looked through
};

// What one thread needs to look a line through.
struct SettleScratch {
    struct Judged {
        float upper;
        Entry entry;
    };
    std::vector<float> lower;
    std::vector<Judged> judged;
};

// One direction of a search: the lines of one side as queries, those of the other as keys.
class Direction {
  public:
    struct Lines {
        const SearchSide& side;
        std::vector<Line>& lines;
    };

    Direction(Lines queries, Lines keys, bool queries_are_rows, const SearchBest& best, Metric metric,
              double score_scale, const Tier& tier);

    // From now on sums of exp(beta * score - anchor) are corrected wherever a score becomes known exactly.
    void correct_sums(double beta, double anchor);

    // Takes a candidate of a query whose pending ones are in `slot`; true if the query's threshold has changed.
    bool offer(Pending& pending, int64_t slot, int64_t query, Entry entry, SettleScratch& scratch) const;

    // Scores all pending ones that can still be among the best.
    void settle(Pending& pending, int64_t slot, int64_t query, SettleScratch& scratch) const;

  private:
    float error(int64_t query, int64_t key) const;
    void drop_hopeless(Pending& pending, int64_t slot, int64_t query, SettleScratch& scratch) const;
    void score_exactly(int64_t query, const int32_t* keys, int64_t count, double* scores) const;
    void keep(int64_t query, int32_t key, double score) const;
    double worst(int64_t query) const;
    void raise_threshold(int64_t query, double score) const;

    const SearchSide& queries_;
    const SearchSide& keys_;
    std::vector<Line>& lines_;
    const std::vector<Line>& other_lines_;
    bool queries_are_rows_;
    SearchBest best_;
    Metric metric_;
    double score_scale_;
    const Tier& tier_;
    double beta_ = 0.0;
    double anchor_ = 0.0;
};

}  // namespace stea
