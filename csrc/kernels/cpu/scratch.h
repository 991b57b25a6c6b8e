// Per-thread working memory. Compiled once, for the baseline CPU: the per-tier code only reads and
// writes through the plain pointers, so no symbol shared by the linker can hold AVX instructions.
#pragma once

#include <cstdint>

#include "../views.h"

namespace stea {

// Plain growing memory, uninitialised.
template <typename T>
struct Buffer {
    T* data = nullptr;
    int64_t capacity = 0;

    Buffer() = default;
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    void reserve(int64_t needed);  // keeps the contents
};

// One belief of one neighbour, filed under the believed target.
struct Node {
    uint32_t key;  // what the kernel knows the edge e -> n by
    float weight;  // w(n, n')
};

// Nodes come in blocks, for the vector lanes; what a block has to spare is filled with nodes of key 0 and weight 0.
constexpr uint32_t kBlock = 4;

struct BlockHead {
    uint32_t earlier;  // place after the block of the same target that was filled before, or 0; and the marks below
    uint32_t target;
};

// Marks in the bits of `earlier` that no place needs.
constexpr uint32_t kGroup = 1u << 31;          // all nodes of the block are of one pair (n, n')
constexpr uint32_t kGroupGoesOn = 1u << 30;    // and so is the earlier block, of the same pair
constexpr uint32_t kPlace = kGroupGoesOn - 1;  // the place itself

// An edge (r', n') of a candidate whose n' is filed.
struct Hit {
    uint32_t place;    // of n'
    int32_t relation;  // r'
};

struct KeyCount {
    int64_t key;  // -1 = empty
    int64_t count;
};

// What speaks for one target so far: the product of the factors 1 - x, and the sum of the x.
struct Support {
    double product;
    double sum;  // 0 = nothing
};

// A target beyond a counterpart, and what leads there.
struct Reached {
    int32_t target;
    Strength strength;
};

struct RankedPlace {
    double product;
    int32_t place;
};

// A walk from a row over the counterpart of one neighbour to the targets beyond.
struct Visit {
    const Edge* first;  // facts [first, last) about the neighbour
    const Edge* last;
    int32_t counterpart;
    double weight;        // w(n, n')
    int64_t edges;        // of the counterpart
    double least_factor;  // what this visit and all later ones multiply into the product of one target, at least
};

extern template struct Buffer<double>;
extern template struct Buffer<float>;
extern template struct Buffer<int32_t>;
extern template struct Buffer<int64_t>;
extern template struct Buffer<uint32_t>;
extern template struct Buffer<Edge>;
extern template struct Buffer<Node>;
extern template struct Buffer<BlockHead>;
extern template struct Buffer<Hit>;
extern template struct Buffer<Support>;
extern template struct Buffer<Visit>;
extern template struct Buffer<Reached>;
extern template struct Buffer<RankedPlace>;

// Numbers the distinct values it meets from 0, in order of appearance.
struct Numbering {
    Buffer<int32_t> number_of;  // [range] -1 = not met
    Buffer<int32_t> values;     // [range + 1] value of every number, and room to write one ahead
    int64_t size = 0;

    explicit Numbering(int64_t range);
};

struct Sizes {
    int64_t num_targets;
    int64_t num_source_relations;  // R
    int64_t num_target_relations;  // R'
};

// The neighbourhood of one source row as the target graph would see it: for every target n', the edges (r, n) whose
// neighbour is believed to be n', in a list of blocks. The nodes of one row are few and contiguous, so they stay in
// the first-level cache.
//
// A target's list is known by the place after its last node; 0 means that nothing is filed. Filing the next node
// there, or in a new block if that place begins one, needs no other knowledge of the list.
struct NeighborhoodScratch {
    Buffer<uint32_t> place_of;  // [targets]
    Buffer<Node> nodes;         // [blocks, kBlock]; the first block stays unused
    Buffer<BlockHead> heads;    // [blocks]
    Buffer<Hit> hits;           // [hits] of all candidates searched so far, and room to write one ahead
    Buffer<int64_t> hits_end;   // end of the hits of every candidate searched so far
    uint32_t num_places = kBlock;
    int64_t num_hits = 0;
    int64_t num_searched = 0;

    explicit NeighborhoodScratch(int64_t num_targets);
    void reserve_nodes(int64_t needed);
};

// Static, here and below: every translation unit has its own.
static inline int64_t relation_key(int32_t relation, int32_t target_relation) {
    return (static_cast<int64_t>(relation) << 32) | target_relation;
}

// Where a key starts looking for its slot (before masking).
static inline uint64_t key_slot(int64_t key) { return (static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15ull) >> 32; }

// Open-addressing map from a non-negative key to an integer sum. Additions are buffered, so that the
// cache misses of many of them overlap.
struct KeyCounter {
    static constexpr int64_t kPending = 256;
    KeyCount* slots = nullptr;
    uint64_t mask = 0;
    int64_t size = 0;
    int64_t num_pending = 0;
    KeyCount pending[kPending];

    explicit KeyCounter(int64_t possible_keys);
    ~KeyCounter();
    KeyCounter(const KeyCounter&) = delete;
    KeyCounter& operator=(const KeyCounter&) = delete;
    void flush();  // files the pending additions

  private:
    void grow();
};

struct EvidenceScratch {
    NeighborhoodScratch neighborhood;
    Buffer<double> products;   // [k rounded up] of the factors of every candidate
    Buffer<double> taken_out;  // [k rounded up] -log of what was taken out of the product
    Buffer<double> sums;       // [k rounded up] of the x

    explicit EvidenceScratch(const Sizes& sizes) : neighborhood(sizes.num_targets) {}
};

struct CountScratch {
    NeighborhoodScratch neighborhood;
    Numbering columns;           // target relations met by the row
    KeyCounter num;              // relation_key(r, r') -> fixed-point num
    Buffer<int64_t> den;         // [R] fixed-point den
    Buffer<double> row_weights;  // weights of the row's beliefs, padded for the vector lanes
    Buffer<double> products;     // [columns, triples of a block, padded where they have lanes]
    Buffer<Edge> triples;        // [triples of a block], and room to write one ahead
    Buffer<float> lane_weights;  // [targets filed by the row, lanes]; 0 where nothing is filed, and between rows

    explicit CountScratch(const Sizes& sizes);
    void reserve_lanes(int64_t needed);
};

// A group is one belief (n, n') of one neighbour n.
struct BlanketScratch {
    NeighborhoodScratch neighborhood;
    Buffer<double> weight;     // [groups] w(n, n')
    Buffer<double> rest;       // [groups] L(n, n') without the share of e, then exp(-that)
    Buffer<double> product;    // [groups] product of the factors that the present candidate adds
    Buffer<int32_t> reached;   // groups reached by the present candidate
    Buffer<int32_t> group_of;  // [nodes in the order of filing]
    Buffer<uint32_t> shift;    // [nodes in the order of filing] of the edge's relation in the relation table

    explicit BlanketScratch(const Sizes& sizes) : neighborhood(sizes.num_targets) {}
};

// What speaks for the targets that a row has touched so far, by places from 1 on in the order of touching.
struct ProposalScratch {
    Buffer<int32_t> place_of;    // [targets] 0 = not touched
    Buffer<int32_t> touched;     // [places] the target
    Buffer<Support> support;     // [places] and one more, which has none
    Buffer<int64_t> fan_out;     // [degree] edges behind every fact of the row
    Buffer<Visit> visits;        // of the row, in their order
    Buffer<Reached> reached;     // by one visit
    Buffer<int32_t> contenders;  // places of the targets that can still be among the best
    Buffer<RankedPlace> ranked;  // [2k] the best of them so far
    int32_t num_touched = 0;
    int64_t num_visits = 0;
    int64_t num_contenders = 0;
    bool has_contenders = false;  // false: all that is touched contends

    explicit ProposalScratch(const Sizes& sizes);
    void reserve_support(int64_t more);
};

}  // namespace stea
