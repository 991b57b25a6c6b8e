#include "scratch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace stea {

template <typename T>
Buffer<T>::~Buffer() {
    std::free(data);
}

template <typename T>
void Buffer<T>::reserve(int64_t needed) {
    if (needed <= capacity) return;
    const int64_t larger = std::max(needed, 2 * capacity);
    void* memory = std::realloc(data, static_cast<size_t>(larger) * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    data = static_cast<T*>(memory);
    capacity = larger;
}

template struct Buffer<double>;
template struct Buffer<float>;
template struct Buffer<int32_t>;
template struct Buffer<int64_t>;
template struct Buffer<uint32_t>;
template struct Buffer<Edge>;
template struct Buffer<Node>;
template struct Buffer<BlockHead>;
template struct Buffer<Hit>;
template struct Buffer<Support>;
template struct Buffer<Visit>;
template struct Buffer<Reached>;
template struct Buffer<RankedPlace>;

Numbering::Numbering(int64_t range) {
    number_of.reserve(range);
    std::fill_n(number_of.data, range, -1);
    values.reserve(range + 1);
}

NeighborhoodScratch::NeighborhoodScratch(int64_t num_targets) {
    place_of.reserve(num_targets);
    std::fill_n(place_of.data, num_targets, 0);
}

void NeighborhoodScratch::reserve_nodes(int64_t needed) {
    const int64_t blocks = needed + 2;  // every node may need its own; the first is unused, and one is written ahead
    if (blocks <= heads.capacity) return;
    if (blocks > INT32_MAX / (2 * kBlock)) throw std::length_error("one entity has too many (edge, belief) pairs");
    heads.reserve(blocks);
    nodes.reserve(heads.capacity * kBlock);
}

CountScratch::CountScratch(const Sizes& sizes)
    : neighborhood(sizes.num_targets),
      columns(2 * sizes.num_target_relations),
      num(sizes.num_source_relations * 2 * sizes.num_target_relations) {
    den.reserve(sizes.num_source_relations);
    std::fill_n(den.data, sizes.num_source_relations, 0);
}

void CountScratch::reserve_lanes(int64_t needed) {
    const int64_t before = lane_weights.capacity;
    lane_weights.reserve(needed);
    std::fill(lane_weights.data + before, lane_weights.data + lane_weights.capacity, 0.0f);
}

ProposalScratch::ProposalScratch(const Sizes& sizes) {
    place_of.reserve(sizes.num_targets);
    std::fill_n(place_of.data, sizes.num_targets, 0);
    reserve_support(0);
    support.data[1] = Support{1.0, 0.0};
}

void ProposalScratch::reserve_support(int64_t more) {
    const int64_t places = num_touched + more + 2;  // the first is unused, and one is kept ready
    support.reserve(places);
    touched.reserve(places);
}

namespace {

KeyCount* allocate_slots(uint64_t count) {
    auto* slots = static_cast<KeyCount*>(std::malloc(count * sizeof(KeyCount)));
    if (slots == nullptr) throw std::bad_alloc();
    std::fill_n(slots, count, KeyCount{-1, 0});
    return slots;
}

KeyCount& find_slot(KeyCount* slots, uint64_t mask, int64_t key) {
    uint64_t at = key_slot(key) & mask;
    while (slots[at].key != key && slots[at].key >= 0) at = (at + 1) & mask;
    return slots[at];
}

}  // namespace

// Growing costs more than clearing what may stay empty, within limits.
KeyCounter::KeyCounter(int64_t possible_keys) {
    constexpr int64_t kMostSlots = int64_t{1} << 17;
    uint64_t count = 4 * kPending;
    while (count < static_cast<uint64_t>(std::min(2 * possible_keys, kMostSlots))) count *= 2;
    slots = allocate_slots(count);
    mask = count - 1;
}

KeyCounter::~KeyCounter() { std::free(slots); }

void KeyCounter::flush() {
    while (2 * static_cast<uint64_t>(size + num_pending) > mask) grow();
    for (int64_t i = 0; i < num_pending; ++i) __builtin_prefetch(slots + (key_slot(pending[i].key) & mask), 1);
    for (int64_t i = 0; i < num_pending; ++i) {
        KeyCount& slot = find_slot(slots, mask, pending[i].key);
        size += slot.key < 0;
        slot = KeyCount{pending[i].key, slot.count + pending[i].count};
    }
    num_pending = 0;
}

void KeyCounter::grow() {
    const uint64_t larger_mask = 2 * mask + 1;
    KeyCount* larger = allocate_slots(larger_mask + 1);
    for (uint64_t i = 0; i <= mask; ++i) {
        if (slots[i].key >= 0) find_slot(larger, larger_mask, slots[i].key) = slots[i];
    }
    std::free(slots);
    slots = larger;
    mask = larger_mask;
}

}  // namespace stea
