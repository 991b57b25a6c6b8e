#include "../checks.h"

#include <algorithm>

namespace stea {

bool are_offsets(const int64_t* offsets, int64_t rows, int64_t size) {
    if (offsets[0] != 0 || offsets[rows] != size) return false;
    bool rising = true;
    for (int64_t row = 0; row < rows; ++row) rising &= offsets[row] <= offsets[row + 1];
    return rising;
}

bool all_within(const int32_t* values, int64_t count, int64_t end) {
    const auto bound = static_cast<uint32_t>(std::clamp<int64_t>(end, 0, int64_t{INT32_MAX} + 1));
    bool within = true;
    for (int64_t i = 0; i < count; ++i) within &= static_cast<uint32_t>(values[i]) < bound;
    return within;
}

bool all_below(const int32_t* values, int64_t count, int64_t end) {
    const auto last = static_cast<int32_t>(std::min<int64_t>(end - 1, INT32_MAX));
    bool below = true;
    for (int64_t i = 0; i < count; ++i) below &= values[i] <= last;
    return below;
}

bool are_probabilities(const float* values, int64_t count) {
    constexpr float kMost = 1.0f + 0x1p-10f;
    bool usable = true;
    for (int64_t i = 0; i < count; ++i) usable &= (values[i] >= 0.0f) & (values[i] <= kMost);
    return usable;
}

bool are_increasing(const int64_t* values, int64_t count, int64_t end) {
    if (count == 0) return true;
    bool rising = true;
    for (int64_t i = 1; i < count; ++i) rising &= values[i - 1] < values[i];
    return rising && values[0] >= 0 && values[count - 1] < end;
}

int64_t relations_of(const GraphView& graph) {
    const auto bound = static_cast<uint32_t>(std::min<int64_t>(graph.num_entities, int64_t{INT32_MAX} + 1));
    bool within = true;
    uint32_t largest = 0;
    for (int64_t i = 0; i < graph.num_edges; ++i) {
        within &= static_cast<uint32_t>(graph.edges[i].neighbor) < bound;
        largest = std::max(largest, static_cast<uint32_t>(graph.edges[i].relation));
    }
    if (!within || largest > INT32_MAX) return -1;
    return graph.num_edges > 0 ? int64_t{largest} + 1 : 0;
}

}  // namespace stea
