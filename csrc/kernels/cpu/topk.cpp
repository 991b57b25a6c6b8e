#include "topk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "parallel_tasks.h"

namespace stea {
namespace {

// NaN is worst. Blocks add none, but a pool from outside may hold it, and what sorts by an order that is none can leave
// its range.
float worth(const Entry& entry) {
    return entry.score == entry.score ? entry.score : -std::numeric_limits<float>::infinity();
}

bool better(const Entry& a, const Entry& b) {
    return worth(a) > worth(b) || (worth(a) == worth(b) && a.index < b.index);
}

// Pools this small are kept in order, which gives the exact threshold at any time; larger ones are cut back when full.
constexpr int64_t kSmallPool = 64;

void insert_in_order(const PoolView& pools, int64_t line, Entry entry) {
    Entry* entries = pools.entries + line * pools.capacity;
    const bool full = pools.sizes[line] >= pools.keep;
    int64_t place = full ? pools.keep - 1 : pools.sizes[line]++;  // of a full one the worst goes
    for (; place > 0 && better(entry, entries[place - 1]); --place) entries[place] = entries[place - 1];
    entries[place] = entry;
    if (pools.sizes[line] >= pools.keep) pools.threshold[line] = entries[pools.keep - 1].score;
}

// The best to the front, in any order.
void cut_back(const PoolView& pools, int64_t line) {
    Entry* entries = pools.entries + line * pools.capacity;
    int32_t& size = pools.sizes[line];
    if (size < pools.keep) return;
    std::nth_element(entries, entries + pools.keep - 1, entries + size, better);
    size = static_cast<int32_t>(pools.keep);
    pools.threshold[line] = entries[pools.keep - 1].score;
}

inline void offer(const PoolView& pools, int64_t line, Entry entry) {
    if (!(entry.score > pools.threshold[line])) return;
    pools.best[line] = std::max(pools.best[line], entry.score);
    if (pools.keep <= kSmallPool) return insert_in_order(pools, line, entry);
    int32_t& size = pools.sizes[line];
    pools.entries[line * pools.capacity + size++] = entry;
    // The first threshold as early as possible; after that, when there is no room.
    const bool first_full = size == pools.keep && pools.threshold[line] == -std::numeric_limits<float>::infinity();
    if (first_full || size == pools.capacity) cut_back(pools, line);
}

struct ColumnEntry {
    int32_t column;
    Entry entry;
};

// What the tiles of a wave found for the columns, by range of columns.
class Wave {
  public:
    static constexpr int64_t kRanges = 8;

    Wave(int64_t num_tiles, int64_t num_columns)
        : width_((num_columns + kRanges - 1) / kRanges), found_(static_cast<size_t>(num_tiles * kRanges)) {}

    void add(int64_t tile, int32_t column, Entry entry) { list(tile, column / width_).push_back({column, entry}); }

    void apply(int64_t range, const PoolView& columns) {
        for (int64_t tile = 0; tile < static_cast<int64_t>(found_.size()) / kRanges; ++tile) {
            for (const ColumnEntry& item : list(tile, range)) offer(columns, item.column, item.entry);
        }
    }

  private:
    std::vector<ColumnEntry>& list(int64_t tile, int64_t range) {
        return found_[static_cast<size_t>(tile * kRanges + range)];
    }

    int64_t width_;
    std::vector<std::vector<ColumnEntry>> found_;
};

// A part of the columns at a time, so that thresholds rise while a row is being read.
void scan_row(const ScoreBlock& block, int64_t row, const PoolView& rows, const PoolView& columns, const Tier& tier,
              std::vector<Entry>& found, Wave& wave, int64_t tile) {
    constexpr int64_t kPart = 512;
    for (int64_t begin = 0; begin < block.columns; begin += kPart) {
        const int64_t end = std::min(begin + kPart, block.columns);
        const int64_t count =
            tier.scan_scores(block, row, begin, end, rows.threshold[row], columns.threshold, found.data());
        for (int64_t i = 0; i < count; ++i) {
            const Entry entry = found[static_cast<size_t>(i)];
            offer(rows, row, {entry.score, block.first_column + entry.index});
            if (entry.score > columns.threshold[entry.index]) {
                wave.add(tile, entry.index, {entry.score, block.first_row + static_cast<int32_t>(row)});
            }
        }
    }
}

int64_t count_tiles(const ScoreBlock& block) { return (block.rows + kTileRows - 1) / kTileRows; }

void rescale(const PartitionView& sums, const PoolView& pools, int64_t lines, double beta) {
    for (int64_t line = 0; line < lines; ++line) {
        if (sums.sums[line] > 0.0) sums.sums[line] *= std::exp(beta * (sums.anchor[line] - pools.best[line]));
        sums.anchor[line] = pools.best[line];
    }
}

}  // namespace

void merge_block(const ScoreBlock& block, const PoolView& rows, const PoolView& columns, const TopkOptions& options) {
    if (block.rows == 0 || block.columns == 0) return;
    std::vector<std::vector<Entry>> found(static_cast<size_t>(options.n_threads));
    for (auto& buffer : found) buffer.resize(512);
    // While the columns have no threshold, everything is kept for them: short waves give them one soon.
    const int64_t num_tiles = count_tiles(block);
    const bool without_threshold = std::isinf(columns.threshold[0]);
    int64_t wave_size = without_threshold ? 1 : num_tiles;
    for (int64_t begin = 0; begin < num_tiles; begin += wave_size, wave_size = std::max(wave_size, begin)) {
        const int64_t tiles = std::min(wave_size, num_tiles - begin);
        Wave wave(tiles, block.columns);
        parallel_tasks(tiles, options.n_threads, [&](int worker, int64_t tile) {
            const int64_t first = (begin + tile) * kTileRows;
            for (int64_t row = first; row < std::min(first + kTileRows, block.rows); ++row) {
                scan_row(block, row, rows, columns, options.tier, found[static_cast<size_t>(worker)], wave, tile);
            }
        });
        parallel_tasks(Wave::kRanges, options.n_threads, [&](int, int64_t range) { wave.apply(range, columns); });
    }
}

void add_to_partition(const ScoreBlock& block, const PoolView& row_pool, const PoolView& column_pool,
                      const PartitionView& rows, const PartitionView& columns, double beta,
                      const TopkOptions& options) {
    rescale(rows, row_pool, block.rows, beta);
    rescale(columns, column_pool, block.columns, beta);
    const int64_t num_tiles = count_tiles(block);
    const auto padded = static_cast<size_t>((block.columns + 7) / 8 * 8);
    std::vector<float> column_sums(static_cast<size_t>(num_tiles) * padded, 0.0f);
    parallel_tasks(num_tiles, options.n_threads, [&](int, int64_t tile) {
        float* tile_sums = column_sums.data() + static_cast<size_t>(tile) * padded;
        for (int64_t row = tile * kTileRows; row < std::min((tile + 1) * kTileRows, block.rows); ++row) {
            rows.sums[row] += options.tier.add_exponentials(block, row, static_cast<float>(beta), rows.anchor[row],
                                                            columns.anchor, tile_sums);
        }
    });
    for (int64_t tile = 0; tile < num_tiles; ++tile) {
        const float* tile_sums = column_sums.data() + static_cast<size_t>(tile) * padded;
        for (int64_t column = 0; column < block.columns; ++column) columns.sums[column] += tile_sums[column];
    }
}

void sort_pools(const PoolView& pools, int64_t lines, int n_threads) {
    constexpr int64_t kChunk = 1024;
    parallel_tasks((lines + kChunk - 1) / kChunk, n_threads, [&](int, int64_t chunk) {
        for (int64_t line = chunk * kChunk; line < std::min((chunk + 1) * kChunk, lines); ++line) {
            cut_back(pools, line);
            Entry* entries = pools.entries + line * pools.capacity;
            std::sort(entries, entries + pools.sizes[line], better);
        }
    });
}

namespace {

void products_of_row(const Tier& tier, const float* query, const float* keys, int64_t width, const int32_t* indices,
                     int64_t k, bool distance, double* out) {
    tier.exact_products_float(query, keys, width, indices, k, distance, out);
}

void products_of_row(const Tier& tier, const double* query, const double* keys, int64_t width, const int32_t* indices,
                     int64_t k, bool distance, double* out) {
    tier.exact_products_double(query, keys, width, indices, k, distance, out);
}

}  // namespace

template <typename Number>
void exact_products(const Number* queries, const Number* keys, int64_t rows, int64_t width, const int32_t* indices,
                    int64_t k, bool distance, double* out, const TopkOptions& options) {
    constexpr int64_t kChunk = 64;
    parallel_tasks((rows + kChunk - 1) / kChunk, options.n_threads, [&](int, int64_t chunk) {
        for (int64_t row = chunk * kChunk; row < std::min((chunk + 1) * kChunk, rows); ++row) {
            products_of_row(options.tier, queries + row * width, keys, width, indices + row * k, k, distance,
                            out + row * k);
        }
    });
}

template void exact_products<float>(const float*, const float*, int64_t, int64_t, const int32_t*, int64_t, bool,
                                    double*, const TopkOptions&);
template void exact_products<double>(const double*, const double*, int64_t, int64_t, const int32_t*, int64_t, bool,
                                     double*, const TopkOptions&);

}  // namespace stea
