#include "int8_lines.h"

#include <algorithm>
#include <limits>

namespace stea {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kZeroVectorWeight = 1e-6f;  // of a zero vector: its products are 0, whatever they are multiplied with
constexpr int64_t kExactBatch = 8;          // pairs scored before what remains is looked at again
constexpr float kDeviations = 5.0f;         // of an error of rounding, which no pair in a million exceeds
constexpr int32_t kLeastGrowth = 16;        // places that must be free after looking through a line

// An error is at most as large as if all its components had the worst sign; after the turn they are as good as random,
// and their sum is smaller by the square root of their number.
float likely_share(int64_t width) { return std::min(1.0f, kDeviations / std::sqrt(static_cast<float>(width))); }

// Not above the number.
float round_down(double number) { return std::nextafter(static_cast<float>(number), -kInfinity); }

}  // namespace

std::vector<Line> make_lines(const SearchSide& side, double weight_scale, double score_scale) {
    std::vector<Line> lines(static_cast<size_t>(side.values.count));
    for (size_t i = 0; i < lines.size(); ++i) {
        const double weight = side.weights[i] / weight_scale;
        Line& line = lines[i];
        line.weight = weight > 0.0 ? static_cast<float>(weight) : kZeroVectorWeight;
        line.offset = static_cast<float>(side.offsets[i] / score_scale);
        // All that a zero vector is compared with scores alike, or nearly: it is left to another way of searching.
        line.threshold = side.norms[i] > 0.0 ? -kInfinity : kInfinity;
        if (side.floors != nullptr && side.norms[i] > 0.0) {
            const auto floor = static_cast<float>(side.floors[i] / score_scale);
            line.threshold = floor - kFuzz * std::abs(floor);
        }
        line.guess = -kInfinity;
        line.quanta = static_cast<float>(2.0 * side.quanta[i] / score_scale);
        line.scored = 0;
        line.excluded = side.excluded != nullptr && side.excluded[i] != 0;
        set_rounded(line, kZeroRow);
    }
    return lines;
}

void set_rounded(Line& line, const RoundedRow& row) {
    line.unit = line.weight * row.scale;
    line.residual = row.residual;
    line.length = row.length;
}

Pending::Pending(int64_t lines, int64_t best, int64_t least_capacity)
    : k(best),
      capacity(std::max(least_capacity, 3 * best)),
      entries(static_cast<size_t>(lines * capacity)),
      sizes(static_cast<size_t>(lines), 0),
      likely(static_cast<size_t>(lines * best), -kInfinity),
      least_likely(static_cast<size_t>(lines), -kInfinity) {}

void Pending::clear() {
    std::fill(sizes.begin(), sizes.end(), 0);
    std::fill(likely.begin(), likely.end(), -kInfinity);
    std::fill(least_likely.begin(), least_likely.end(), -kInfinity);
}

Direction::Direction(Lines queries, Lines keys, bool queries_are_rows, const SearchBest& best, Metric metric,
                     double score_scale, const Effort& effort, const Tier& tier)
    : queries_(queries.side),
      keys_(keys.side),
      lines_(queries.lines),
      other_lines_(keys.lines),
      queries_are_rows_(queries_are_rows),
      likely_error_(effort.certain ? 1.0f : likely_share(queries.side.values.width)),
      most_scored_(effort.most_scored),
      best_(best),
      metric_(metric),
      score_scale_(score_scale),
      tier_(tier) {}

void Direction::correct_sums(double beta, double anchor) {
    beta_ = beta;
    anchor_ = anchor;
}

float Direction::error(int64_t query, int64_t key) const {
    const Line& line = lines_[static_cast<size_t>(query)];
    const Line& other = other_lines_[static_cast<size_t>(key)];
    return queries_are_rows_ ? score_error(line, other) : score_error(other, line);
}

void Direction::make_room(Pending& pending, int64_t slot, int64_t query, SettleScratch& scratch) const {
    Pending::Entry* entries = pending.entries.data() + slot * pending.capacity;
    int32_t& size = pending.sizes[static_cast<size_t>(slot)];
    size = static_cast<int32_t>(drop_hopeless(query, entries, entries + size, scratch) - entries);
    if (size > pending.capacity - kLeastGrowth) settle(pending, slot, query, pending.capacity / 2, scratch);
}

// Removes what cannot reach the threshold, and returns the new end.
Pending::Entry* Direction::drop_hopeless(int64_t query, Pending::Entry* begin, Pending::Entry* end,
                                         SettleScratch& scratch) const {
    const float threshold = lines_[static_cast<size_t>(query)].threshold;
    Pending::Entry* kept = begin;
    for (const Pending::Entry* entry = begin; entry < end; ++entry) {
        if (entry->upper >= threshold) {
            *kept++ = *entry;
        } else if (entry->shared) {
            const auto key = static_cast<int32_t>(entry->key);
            scratch.shared.dropped.push_back({static_cast<int32_t>(query), {entry->upper, error(query, key), key}});
        }
    }
    return kept;
}

// The k-th best score is likely to be above the k-th best of what each is likely to be above: then others that cannot
// reach that do not matter.
void Direction::raise_guess(Pending& pending, int64_t slot, int64_t query, float likely) const {
    float* largest = pending.likely.data() + slot * pending.k;
    int64_t place = pending.k - 1;
    for (; place > 0 && largest[place - 1] < likely; --place) largest[place] = largest[place - 1];
    largest[place] = likely;
    const float least = largest[pending.k - 1];
    pending.least_likely[static_cast<size_t>(slot)] = least;
    if (least == -kInfinity) return;
    Line& line = lines_[static_cast<size_t>(query)];
    line.guess = lowered(query, least);
    line.threshold = std::max(line.threshold, line.guess);
}

// By the rounding of scores to quanta and of thresholds to floats.
float Direction::lowered(int64_t query, float score) const {
    return score - (lines_[static_cast<size_t>(query)].quanta + 0.5f * kFuzz * std::abs(score));
}

// The k-th best score so far, not rounded up.
float Direction::worst(int64_t query) const {
    return round_down(best_.scores[(query + 1) * best_.k - 1] / score_scale_);
}

// Those of the largest upper bounds first: once the k-th best exact score is above the others', these do not matter.
void Direction::settle(Pending& pending, int64_t slot, int64_t query, int64_t may_remain,
                       SettleScratch& scratch) const {
    Pending::Entry* begin = pending.entries.data() + slot * pending.capacity;
    Pending::Entry* const first = begin;
    Pending::Entry* end = begin + pending.sizes[static_cast<size_t>(slot)];
    Line& line = lines_[static_cast<size_t>(query)];
    if (end - begin > best_.k) {
        std::nth_element(begin, begin + best_.k, end, [](const Pending::Entry& a, const Pending::Entry& b) {
            return a.upper > b.upper || (a.upper == b.upper && a.key < b.key);
        });
    }
    for (int64_t batch = best_.k; end - begin > may_remain; batch = kExactBatch) {
        const int64_t count = std::min<int64_t>(batch, end - begin);
        scratch.keys.clear();
        for (int64_t i = 0; i < count; ++i) scratch.keys.push_back(static_cast<int32_t>(begin[i].key));
        scratch.plain.resize(static_cast<size_t>(count));
        prefetch_keys(begin + count, end);
        score_exactly(query, scratch.keys.data(), count, scratch.plain.data());
        for (int64_t i = 0; i < count; ++i)
            take_scored(query, begin[i], scratch.plain[static_cast<size_t>(i)], scratch);
        begin += count;
        if (best_.sizes[query] == best_.k) {
            line.threshold = std::max(line.threshold, lowered(query, worst(query)));
        }
        line.scored += static_cast<int32_t>(count);
        if (line.scored > most_scored_) {
            best_.unsettled[query] = 1;
            line.threshold = kInfinity;
        }
        end = drop_hopeless(query, begin, end, scratch);
    }
    pending.sizes[static_cast<size_t>(slot)] = static_cast<int32_t>(std::copy(begin, end, first) - first);
}

void Direction::take_scored(int64_t query, const Pending::Entry& entry, double plain, SettleScratch& scratch) const {
    const auto key = static_cast<int32_t>(entry.key);
    const double score = final_score(query, key, plain);
    keep(query, key, score);
    if (!entry.shared && best_.sums == nullptr) return;
    const float rounded = entry.upper - error(query, key);
    if (best_.sums != nullptr) correct_sum(query, rounded, score);
    if (entry.shared) scratch.shared.scored.push_back({static_cast<int32_t>(query), {plain, rounded, key}});
}

void Direction::take_exact(Pending& pending, int64_t slot, int64_t query, const ExactCandidate& candidate) const {
    const double score = final_score(query, candidate.key, candidate.plain);
    keep(query, candidate.key, score);
    if (best_.sums != nullptr) correct_sum(query, candidate.rounded, score);
    const float certain = round_down(score / score_scale_);
    if (certain > pending.least_likely[static_cast<size_t>(slot)]) raise_guess(pending, slot, query, certain);
}

// Those that will be scored first in the next batch.
void Direction::prefetch_keys(const Pending::Entry* begin, const Pending::Entry* end) const {
    const int64_t width = keys_.values.width;
    for (const Pending::Entry* entry = begin; entry < std::min(begin + 2, end); ++entry) {
        const int64_t first = entry->key * width;
        const bool single = keys_.values.floats != nullptr;
        const char* row = single ? reinterpret_cast<const char*>(keys_.values.floats + first)
                                 : reinterpret_cast<const char*>(keys_.values.doubles + first);
        const int64_t bytes = width * static_cast<int64_t>(single ? sizeof(float) : sizeof(double));
        for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
    }
}

void Direction::correct_sum(int64_t query, float rounded, double score) const {
    const double added = static_cast<double>(rounded) * score_scale_;
    best_.sums[query] += std::exp(beta_ * score - anchor_) - std::exp(beta_ * added - anchor_);
}

void Direction::finish(Pending& pending, int64_t slot, int64_t query, SettleScratch& scratch) const {
    settle(pending, slot, query, 0, scratch);
    const bool right =
        best_.sizes[query] == best_.k && lowered(query, worst(query)) >= lines_[static_cast<size_t>(query)].guess;
    if (!right && lines_[static_cast<size_t>(query)].guess > -kInfinity) best_.unsettled[query] = 1;
}

void Direction::score_exactly(int64_t query, const int32_t* keys, int64_t count, double* plain) const {
    const bool distance = metric_ == Metric::kDistance;
    const int64_t width = keys_.values.width;
    if (keys_.values.floats != nullptr) {
        tier_.exact_products_float(queries_.values.floats + query * width, keys_.values.floats, width, keys, count,
                                   distance, plain);
    } else {
        tier_.exact_products_double(queries_.values.doubles + query * width, keys_.values.doubles, width, keys, count,
                                    distance, plain);
    }
    for (int64_t i = 0; i < count; ++i) {
        if (distance) plain[i] = -plain[i];
        if (metric_ != Metric::kCosine) continue;
        const double norms = queries_.norms[query] * keys_.norms[keys[i]];
        plain[i] = norms > 0.0 ? plain[i] / norms : 0.0;
    }
}

double Direction::final_score(int64_t query, int64_t key, double plain) const {
    const double quantum = queries_.quanta[query];
    const double score = queries_.means == nullptr ? plain : 2.0 * plain - queries_.means[query] - keys_.means[key];
    return std::nearbyint(score / quantum) * quantum;
}

void Direction::keep(int64_t query, int32_t key, double score) const {
    int32_t* keys = best_.indices + query * best_.k;
    double* scores = best_.scores + query * best_.k;
    int32_t& size = best_.sizes[query];
    const auto before = [&](int64_t place) {
        return score > scores[place] || (score == scores[place] && key < keys[place]);
    };
    int64_t place = size;
    if (place == best_.k) {
        if (!before(--place)) return;
    } else {
        ++size;
    }
    for (; place > 0 && before(place - 1); --place) {
        scores[place] = scores[place - 1];
        keys[place] = keys[place - 1];
    }
    scores[place] = score;
    keys[place] = key;
}

}  // namespace stea
