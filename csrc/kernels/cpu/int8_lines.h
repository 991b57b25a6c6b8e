// What the int8 search knows of its lines (rows or columns), and how their candidates are settled.
#pragma once

#include <cmath>
#include <vector>

#include "../int8_search.h"
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
    float guess;      // the part of the threshold that is likely, and not yet certain
    float quanta;     // two, by which a score may change where it is rounded
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

// A key that may be among the best of a query.
struct Candidate {
    float upper;  // what the score may be: `rounded_score` and the error
    float error;  // by `score_error`
    int32_t key;
};

// A key whose similarity is known.
struct ExactCandidate {
    double plain;   // the similarity that the score is made of
    float rounded;  // the score by `rounded_score`
    int32_t key;
};

// Candidates of a row that may matter to their columns too, once the row is done with them: dropped, or scored.
struct SharedPairs {
    struct Dropped {
        int32_t query;
        Candidate candidate;
    };
    struct Scored {
        int32_t query;
        ExactCandidate candidate;
    };
    std::vector<Dropped> dropped;
    std::vector<Scored> scored;
};

// Candidates that wait to be settled, of some lines.
struct Pending {
    struct Entry {
        float upper;
        uint32_t key : 31;
        uint32_t shared : 1;
    };

    Pending(int64_t lines, int64_t k, int64_t least_capacity);
    void clear();

    int64_t k;
    int64_t capacity;
    std::vector<Entry> entries;  // [lines, capacity]
    std::vector<int32_t> sizes;
    std::vector<float> likely;        // [lines, k], the largest first: scores that are likely to be exceeded
    std::vector<float> least_likely;  // the last of them
};

// What one thread needs to look a line through.
struct SettleScratch {
    std::vector<int32_t> keys;
    std::vector<double> plain;
    SharedPairs shared;  // added to
};

// One direction of a search: the lines of one side as queries, those of the other as keys.
class Direction {
  public:
    struct Lines {
        const SearchSide& side;
        std::vector<Line>& lines;
    };

    Direction(Lines queries, Lines keys, bool queries_are_rows, const SearchBest& best, Metric metric,
              double score_scale, const Effort& effort, const Tier& tier);

    // From now on sums of exp(beta * score - anchor) are corrected wherever a score becomes known exactly.
    void correct_sums(double beta, double anchor);

    // Takes a candidate of a query whose pending ones are in `slot`; true if the query's threshold may have changed.
    // With `shared`, scratch.shared will have it when the query is done with it.
    bool offer(Pending& pending, int64_t slot, int64_t query, const Candidate& candidate, bool shared,
               SettleScratch& scratch) const {
        int32_t& size = pending.sizes[static_cast<size_t>(slot)];
        pending.entries[static_cast<size_t>(slot * pending.capacity + size)] = {
            candidate.upper, static_cast<uint32_t>(candidate.key), shared};
        ++size;
        const float likely = candidate.upper - (1.0f + likely_error_) * candidate.error;
        const bool raised = likely > pending.least_likely[static_cast<size_t>(slot)];
        if (raised) raise_guess(pending, slot, query, likely);
        if (size < pending.capacity) return raised;
        make_room(pending, slot, query, scratch);
        return true;
    }

    // Takes a candidate whose similarity is known.
    void take_exact(Pending& pending, int64_t slot, int64_t query, const ExactCandidate& candidate) const;

    // At the end of a search: scores all pending ones that can still be among the best, and finds out whether the guess
    // was right.
    void finish(Pending& pending, int64_t slot, int64_t query, SettleScratch& scratch) const;

  private:
    void settle(Pending& pending, int64_t slot, int64_t query, int64_t may_remain, SettleScratch& scratch) const;
    float error(int64_t query, int64_t key) const;
    void raise_guess(Pending& pending, int64_t slot, int64_t query, float likely) const;
    void make_room(Pending& pending, int64_t slot, int64_t query, SettleScratch& scratch) const;
    void prefetch_keys(const Pending::Entry* begin, const Pending::Entry* end) const;
    void take_scored(int64_t query, const Pending::Entry& entry, double plain, SettleScratch& scratch) const;
    void correct_sum(int64_t query, float rounded, double score) const;
    void score_exactly(int64_t query, const int32_t* keys, int64_t count, double* plain) const;
    double final_score(int64_t query, int64_t key, double plain) const;
    void keep(int64_t query, int32_t key, double score) const;
    Pending::Entry* drop_hopeless(int64_t query, Pending::Entry* begin, Pending::Entry* end,
                                  SettleScratch& scratch) const;
    float worst(int64_t query) const;
    float lowered(int64_t query, float score) const;

    const SearchSide& queries_;
    const SearchSide& keys_;
    std::vector<Line>& lines_;
    const std::vector<Line>& other_lines_;
    bool queries_are_rows_;
    float likely_error_;  // as a share of the largest possible one
    int32_t most_scored_;
    SearchBest best_;
    Metric metric_;
    double score_scale_;
    const Tier& tier_;
    double beta_ = 0.0;
    double anchor_ = 0.0;
};

}  // namespace stea
