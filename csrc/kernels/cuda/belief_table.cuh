// The believed targets of a row's neighbours as a hash table in shared or global memory.
//
// A slot is one integer: target n' above, number of the edge (r, n) among the row's edges below; a neighbour believes a
// target once, so no integer occurs twice. Slots are probed one after the other, and the larger integer keeps a slot:
// the smaller one moves on. Whatever the order of the insertions, the slots end up the same (ordered linear probing),
// so sums over them have a fixed order although threads insert at random.
#pragma once

#include "views.h"

namespace stea::cuda {

using Slot = unsigned long long;
constexpr Slot kFree = 0;
constexpr uint32_t kLeastSlots = 32;

__device__ inline Slot slot_of(int32_t target, uint32_t edge) {
    return (static_cast<Slot>(static_cast<uint32_t>(target) + 1u) << 32) | edge;
}
__device__ inline int32_t target_in(Slot slot) { return static_cast<int32_t>(static_cast<uint32_t>(slot >> 32) - 1u); }
__device__ inline uint32_t edge_in(Slot slot) { return static_cast<uint32_t>(slot); }

// At most half of the slots are taken: probing ends.
__host__ __device__ inline Slot slots_for(Slot nodes) {
    Slot slots = kLeastSlots;
    while (slots < 2 * nodes) slots *= 2;
    return slots;
}

struct BeliefTable {
    Slot* slots;
    Slot mask;  // number of slots - 1

    __device__ Slot home(int32_t target) const {
        const Slot mixed = static_cast<Slot>(static_cast<uint32_t>(target)) * 0x9E3779B97F4A7C15ull;
        return (mixed >> 32) & mask;
    }

    __device__ void insert(int32_t target, uint32_t edge) {
        Slot carried = slot_of(target, edge);
        for (Slot at = home(target); carried != kFree; at = (at + 1) & mask) {
            const Slot before = atomicMax(&slots[at], carried);
            carried = before < carried ? before : carried;
        }
    }

    // Calls found(edge) for every filed belief in this target, in a fixed order.
    template <typename Found>
    __device__ void for_each(int32_t target, Found&& found) const {
        const Slot least = slot_of(target, 0);
        for (Slot at = home(target);; at = (at + 1) & mask) {
            const Slot slot = slots[at];
            if (slot < least) return;  // a belief in the target would not have moved on from here
            if (target_in(slot) == target) found(edge_in(slot));
        }
    }
};

// Threads `first`, `first + stride`, ... each file the beliefs of an edge's neighbour.
__device__ inline void file_beliefs(BeliefTable table, const BeliefsView& beliefs, const Edge* edges, int64_t degree,
                                    int64_t first, int64_t stride) {
    for (int64_t j = first; j < degree; j += stride) {
        const int32_t neighbor = edges[j].neighbor;
        for (int64_t b = beliefs.indptr[neighbor]; b < beliefs.indptr[neighbor + 1]; ++b) {
            table.insert(beliefs.targets[b], static_cast<uint32_t>(j));
        }
    }
}

// w(n, n'). The belief is known to exist; rows of beliefs are as short as lists of candidates.
__device__ inline float belief_weight(const BeliefsView& beliefs, int32_t neighbor, int32_t target) {
    int64_t b = beliefs.indptr[neighbor];
    while (beliefs.targets[b] != target) ++b;
    return beliefs.weights[b];
}

}  // namespace stea::cuda
