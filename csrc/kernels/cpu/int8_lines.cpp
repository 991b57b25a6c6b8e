#include "int8_lines.h"

#include <algorithm>
#include <limits>

namespace stea {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kZeroVectorWeight = 1e-6f;  // of a zero vector: its products are 0, whatever they are multiplied with
constexpr int64_t kExactBatch = 16;         // pairs scored before what remains is looked at again
constexpr int32_t kMostScored = 2048;       // a line with more to score is left to another way of searching
constexpr int32_t kLeastGrowth = 16;        // candidates that a line takes before it is looked through again

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

Pending::Pending(int64_t lines, int64_t k, int64_t least_capacity)
    : capacity(std::max(least_capacity, 3 * k)),
      first_limit(static_cast<int32_t>(std::max<int64_t>(kLeastGrowth, 2 * k))),
      entries(static_cast<size_t>(lines * capacity)),
      sizes(static_cast<size_t>(lines)),
      limits(static_cast<size_t>(lines)) {
    clear();
}

void Pending::clear() {
    std::fill(sizes.begin(), sizes.end(), 0);
    std::fill(limits.begin(), limits.end(), first_limit);
}

Direction::Direction(Lines queries, Lines keys, bool queries_are_rows, const SearchBest& best, Metric metric,
                     double score_scale, const Tier& tier)
    : queries_(queries.side),
      keys_(keys.side),
      lines_(queries.lines),
      other_lines_(keys.lines),
      queries_are_rows_(queries_are_rows),
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

bool Direction::offer(Pending& pending, int64_t slot, int64_t query, Entry entry, SettleScratch& scratch) const {
    int32_t& size = pending.sizes[static_cast<size_t>(slot)];
    pending.of(slot)[size++] = entry;
    if (size < pending.limits[static_cast<size_t>(slot)]) return false;
    drop_hopeless(pending, slot, query, scratch);
    if (size > pending.capacity - kLeastGrowth) settle(pending, slot, query, scratch);
    const int64_t limit = size + std::max(kLeastGrowth, size / 2);
    pending.limits[static_cast<size_t>(slot)] = static_cast<int32_t>(std::min(limit, pending.capacity));
    return true;
}

// The k-th best of all lower bounds is reached by k candidates: others must be able to reach it too.
void Direction::drop_hopeless(Pending& pending, int64_t slot, int64_t query, SettleScratch& scratch) const {
    Entry* entries = pending.of(slot);
    int32_t& size = pending.sizes[static_cast<size_t>(slot)];
    std::vector<float>& lower = scratch.lower;
    lower.clear();
    for (int32_t i = 0; i < size; ++i) lower.push_back(entries[i].score - error(query, entries[i].index));
    for (int32_t i = 0; i < best_.sizes[query]; ++i) {
        lower.push_back(static_cast<float>(best_.scores[query * best_.k + i] / score_scale_));
    }
    if (static_cast<int64_t>(lower.size()) < best_.k) return;
    std::nth_element(lower.begin(), lower.begin() + (best_.k - 1), lower.end(), std::greater<float>());
    raise_threshold(query, static_cast<double>(lower[static_cast<size_t>(best_.k - 1)]));
    const float threshold = lines_[static_cast<size_t>(query)].threshold;
    Entry* end = std::remove_if(entries, entries + size, [&](const Entry& entry) {
        return entry.score + error(query, entry.index) < threshold;
    });
    size = static_cast<int32_t>(end - entries);
}

// To what is certainly reached: lowered by the rounding of scores to quanta and of thresholds to floats.
void Direction::raise_threshold(int64_t query, double score) const {
    const double lowered = score - 2.0 * queries_.quanta[query] / score_scale_;
    const auto single = static_cast<float>(lowered);
    float& threshold = lines_[static_cast<size_t>(query)].threshold;
    threshold = std::max(threshold, single - 0.5f * kFuzz * std::abs(single));
}

double Direction::worst(int64_t query) const { return best_.scores[(query + 1) * best_.k - 1]; }

// In the order of their upper bounds: once the k-th best exact score is above the next one, nothing else matters.
void Direction::settle(Pending& pending, int64_t slot, int64_t query, SettleScratch& scratch) const {
    Entry* entries = pending.of(slot);
    int32_t& size = pending.sizes[static_cast<size_t>(slot)];
    auto& judged = scratch.judged;
    judged.clear();
    for (int32_t i = 0; i < size; ++i) {
        judged.push_back({entries[i].score + error(query, entries[i].index), entries[i]});
    }
    std::sort(judged.begin(), judged.end(), [](const auto& a, const auto& b) {
        return a.upper > b.upper || (a.upper == b.upper && a.entry.index < b.entry.index);
    });
    Line& line = lines_[static_cast<size_t>(query)];
    int32_t keys[kExactBatch];
    double scores[kExactBatch];
    for (size_t begin = 0; begin < judged.size() && judged[begin].upper >= line.threshold; begin += kExactBatch) {
        int64_t count = 0;
        for (; count < kExactBatch && begin + static_cast<size_t>(count) < judged.size(); ++count) {
            const auto& next = judged[begin + static_cast<size_t>(count)];
            if (next.upper < line.threshold) break;
            keys[count] = next.entry.index;
        }
        score_exactly(query, keys, count, scores);
        for (int64_t i = 0; i < count; ++i) {
            keep(query, keys[i], scores[i]);
            if (best_.sums == nullptr) continue;
            const double rounded = static_cast<double>(judged[begin + static_cast<size_t>(i)].entry.score) * score_scale_;
            best_.sums[query] += std::exp(beta_ * scores[i] - anchor_) - std::exp(beta_ * rounded - anchor_);
        }
        if (best_.sizes[query] == best_.k) raise_threshold(query, worst(query) / score_scale_);
        line.scored += static_cast<int32_t>(count);
        if (line.scored > kMostScored) {
            best_.unsettled[query] = 1;
            line.threshold = kInfinity;
        }
    }
    size = 0;
}

void Direction::score_exactly(int64_t query, const int32_t* keys, int64_t count, double* scores) const {
    const bool distance = metric_ == Metric::kDistance;
    const int64_t width = keys_.values.width;
    if (keys_.values.floats != nullptr) {
        tier_.exact_products_float(queries_.values.floats + query * width, keys_.values.floats, width, keys, count,
                                   distance, scores);
    } else {
        tier_.exact_products_double(queries_.values.doubles + query * width, keys_.values.doubles, width, keys, count,
                                    distance, scores);
    }
    for (int64_t i = 0; i < count; ++i) {
        double score = distance ? -scores[i] : scores[i];
        if (metric_ == Metric::kCosine) {
            const double norms = queries_.norms[query] * keys_.norms[keys[i]];
            score = norms > 0.0 ? score / norms : 0.0;
        }
        if (queries_.means != nullptr) score = 2.0 * score - queries_.means[query] - keys_.means[keys[i]];
        scores[i] = std::nearbyint(score / queries_.quanta[query]) * queries_.quanta[query];
    }
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
