#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "encoding.h"
#include "int8_panels.h"
#include "over_rows.h"
#include "parallel_tasks.h"

namespace stea {
namespace {

using Hits = std::vector<std::vector<Negative>>;  // of every query

// The hits of all queries, ordered by entity; those of one entity by query.
struct Pushers {
    std::vector<int64_t> starts;  // [num_entities + 1]
    std::vector<Pusher> entries;

    Pushers(const Hits& hits, int64_t num_entities) : starts(static_cast<size_t>(num_entities) + 2) {
        for (const std::vector<Negative>& row : hits) {
            for (const Negative& hit : row) ++starts[static_cast<size_t>(hit.entity) + 2];
        }
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        entries.resize(static_cast<size_t>(starts.back()));
        for (size_t query = 0; query < hits.size(); ++query) {
            for (const Negative& hit : hits[query]) {
                const int64_t place = starts[static_cast<size_t>(hit.entity) + 1]++;
                entries[static_cast<size_t>(place)] = {static_cast<int32_t>(query), hit.weight};
            }
        }
        starts.pop_back();
    }
};

void push_entities(const NegativeBlock& block, const Hits& hits, const RunOptions& options) {
    const Pushers pushers(hits, block.num_entities);
    over_rows(pushers.starts.data(), block.num_entities, options, [&](int64_t entity) {
        const int64_t begin = pushers.starts[static_cast<size_t>(entity)];
        const int64_t end = pushers.starts[static_cast<size_t>(entity) + 1];
        if (begin < end) options.tier.push_entity(block, entity, pushers.entries.data() + begin, end - begin);
    });
}

// Room of one thread for the hits of a query.
class Finder {
  public:
    Finder(const NegativeBlock& block, const Tier& tier) : block_(block), tier_(tier) {}

    std::vector<Negative> hits_of(const NegativeBlock& block, int64_t query) {
        room_.resize(static_cast<size_t>(block_.num_entities));
        const int64_t count = tier_.negative_row(block, query, room_.data());
        return {room_.begin(), room_.begin() + count};
    }

  private:
    const NegativeBlock& block_;
    const Tier& tier_;
    std::vector<Negative> room_;
};

// The queries [begin, end) alone.
NegativeBlock part_of(const NegativeBlock& block, int64_t begin, int64_t end) {
    NegativeBlock part = block;
    part.num_queries = end - begin;
    part.queries += begin * block.width;
    part.base += begin;
    part.centre += begin;
    part.ends += 2 * begin;
    part.losses += begin;
    part.pushes += begin;
    part.pulled += begin * block.width;
    return part;
}

int64_t steps_of(int64_t width) { return (width + kStepBytes - 1) / kStepBytes; }
int64_t up_to(int64_t count, int64_t size) { return (count + size - 1) / size * size; }

// All entities as whole numbers of 8 bits.
class EntityBytes {
  public:
    EntityBytes(const NegativeBlock& block, const Int8Tier& bytes, const RunOptions& options)
        : padded_(up_to(block.num_entities, kSliverColumns)),
          steps_(steps_of(block.width)),
          scales_(static_cast<size_t>(padded_)),
          corrections_(static_cast<size_t>(padded_)),
          slivers_(padded_ * steps_ * kStepBytes) {
        constexpr int64_t kStride = kSliverColumns * kStepBytes;
        const auto round_sliver = [&](int, int64_t sliver) {
            const FlushedDenormals flushed;
            const int64_t begin = sliver * kSliverColumns;
            for (int64_t j = begin; j < std::min(begin + kSliverColumns, block.num_entities); ++j) {
                uint8_t* place = slivers_.data() + sliver * steps_ * kStride + (j - begin) * kStepBytes;
                const ByteRow row =
                    bytes.round_bytes(block.z + j * block.width, block.width, {place, kStride, 0, Bits::k8});
                scales_[static_cast<size_t>(j)] = row.scale;
                corrections_[static_cast<size_t>(j)] = static_cast<int32_t>(-128u * static_cast<uint32_t>(row.sum));
            }
        };
        parallel_tasks(padded_ / kSliverColumns, options.n_threads, round_sliver, options.poll);
    }

    int64_t padded() const { return padded_; }
    int64_t steps() const { return steps_; }
    ByteColumns columns(int64_t first) const {
        return {slivers_.data() + first * steps_ * kStepBytes, corrections_.data() + first, scales_.data() + first};
    }

  private:
    int64_t padded_;
    int64_t steps_;
    std::vector<float> scales_;
    std::vector<int32_t> corrections_;
    AlignedBytes slivers_;
};

constexpr int64_t kMostProducts = int64_t{1} << 23;  // of a block of queries: they stay in a cache

// What one thread needs for a block of queries: their bytes and their products with all entities.
class QueryBlock {
  public:
    QueryBlock(const EntityBytes& entities, const Int8Tier& bytes)
        : entities_(entities), bytes_(bytes), slivers_(kBlockRows * entities.steps() * kStepBytes) {}

    static int64_t rows(int64_t padded) {
        return std::clamp(kMostProducts / padded / kSliverRows * kSliverRows, kSliverRows, kBlockRows);
    }

    // Fills the products of these queries and lets the block point to them.
    void multiply(NegativeBlock* block) {
        const int64_t count = up_to(block->num_queries, kSliverRows);
        constexpr int64_t kStride = kSliverRows * kStepBytes;
        for (int64_t query = 0; query < block->num_queries; ++query) {
            uint8_t* place =
                slivers_.data() + query / kSliverRows * entities_.steps() * kStride + query % kSliverRows * kStepBytes;
            scales_[query] =
                bytes_.round_bytes(block->queries + query * block->width, block->width, {place, kStride, 128, Bits::k8})
                    .scale;
        }
        products_.resize(static_cast<size_t>(count * entities_.padded()));
        const ByteRows rows{slivers_.data(), count, entities_.steps(), scales_};
        for (int64_t first = 0; first < entities_.padded(); first += kSliverColumns) {
            bytes_.multiply_bytes(rows, entities_.columns(first), products_.data() + first, entities_.padded());
        }
        block->products = products_.data();
        block->stride = entities_.padded();
        block->rough = true;
    }

  private:
    const EntityBytes& entities_;
    const Int8Tier& bytes_;
    AlignedBytes slivers_;
    float scales_[kBlockRows] = {};
    std::vector<float> products_;
};

}  // namespace

void run_negatives(const NegativeBlock& block, const RunOptions& options) {
    std::vector<Finder> finders(static_cast<size_t>(options.n_threads), Finder(block, options.tier));
    Hits hits(static_cast<size_t>(block.num_queries));
    parallel_tasks(
        block.num_queries, options.n_threads,
        [&](int worker, int64_t query) {
            const FlushedDenormals flushed;
            hits[static_cast<size_t>(query)] = finders[static_cast<size_t>(worker)].hits_of(block, query);
        },
        options.poll);
    push_entities(block, hits, options);
}

void run_byte_negatives(const NegativeBlock& block, const Int8Tier& bytes, const RunOptions& options) {
    const EntityBytes entities(block, bytes, options);
    const int64_t rows = QueryBlock::rows(entities.padded());
    std::vector<std::unique_ptr<QueryBlock>> rooms(static_cast<size_t>(options.n_threads));
    std::vector<Finder> finders(static_cast<size_t>(options.n_threads), Finder(block, options.tier));
    Hits hits(static_cast<size_t>(block.num_queries));
    parallel_tasks((block.num_queries + rows - 1) / rows, options.n_threads,
                   [&](int worker, int64_t number) {
                       const FlushedDenormals flushed;
                       std::unique_ptr<QueryBlock>& room = rooms[static_cast<size_t>(worker)];
                       if (!room) room = std::make_unique<QueryBlock>(entities, bytes);
                       const int64_t begin = number * rows;
                       NegativeBlock part = part_of(block, begin, std::min(begin + rows, block.num_queries));
                       room->multiply(&part);
                       for (int64_t query = 0; query < part.num_queries; ++query) {
                           hits[static_cast<size_t>(begin + query)] =
                               finders[static_cast<size_t>(worker)].hits_of(part, query);
                       }
                   },
                   options.poll);
    push_entities(block, hits, options);
}

}  // namespace stea
