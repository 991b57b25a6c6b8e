#include "../checks.h"

#include <algorithm>
#include <cmath>

namespace stea {
namespace {

// Loops collect what is wrong in the bits of one number, its sign in the loops over integers: a jump, or a truth value,
// would keep the compiler from making vectors of them. Differences are of unsigned numbers, which may wrap.
bool has_sign(uint64_t bits) { return (bits >> 63) != 0; }
bool has_sign(uint32_t bits) { return (bits >> 31) != 0; }

}  // namespace

bool are_offsets(const int64_t* offsets, int64_t rows, int64_t size) {
    uint64_t wrong = 0;
    for (int64_t row = 0; row < rows; ++row) {
        const auto next = static_cast<uint64_t>(offsets[row + 1]);
        wrong |= next | (next - static_cast<uint64_t>(offsets[row]));
    }
    return offsets[0] == 0 && offsets[rows] == size && !has_sign(wrong);
}

bool all_within(const int32_t* values, int64_t count, int64_t end) {
    if (end <= 0) return count == 0;
    const auto last = static_cast<uint32_t>(std::min<int64_t>(end - 1, INT32_MAX));
    uint32_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
        const auto value = static_cast<uint32_t>(values[i]);
        wrong |= value | (last - value);
    }
    return !has_sign(wrong);
}

bool all_below(const int32_t* values, int64_t count, int64_t end) {
    const auto last = static_cast<int32_t>(std::min<int64_t>(end - 1, INT32_MAX));
    uint32_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) wrong |= static_cast<uint32_t>(values[i] > last);
    return wrong == 0;
}

bool are_probabilities(const float* values, int64_t count) {
    constexpr float kMost = 1.0f + 0x1p-10f;
    uint32_t right = 1;
    for (int64_t i = 0; i < count; ++i) {
        right &= static_cast<uint32_t>(values[i] >= 0.0f) & static_cast<uint32_t>(values[i] <= kMost);  // not of NaN
    }
    return right != 0;
}

bool are_finite_from(double least, const double* values, int64_t count) {
    return std::all_of(values, values + count,
                       [least](double value) { return least <= value && std::isfinite(value); });
}

int64_t relations_of(const GraphView& graph) {
    if (graph.num_edges == 0) return 0;
    const auto last = static_cast<uint32_t>(std::min<int64_t>(graph.num_entities - 1, INT32_MAX));
    uint32_t wrong = 0;
    int32_t largest = 0;
    for (int64_t i = 0; i < graph.num_edges; ++i) {
        const auto neighbor = static_cast<uint32_t>(graph.edges[i].neighbor);
        wrong |= neighbor | (last - neighbor) | static_cast<uint32_t>(graph.edges[i].relation);
        largest = std::max(largest, graph.edges[i].relation);
    }
    return has_sign(wrong) ? -1 : int64_t{largest} + 1;
}

}  // namespace stea
