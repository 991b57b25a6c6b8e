// Structure of the pair set: union of rows, positions, the other side's view.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "../pair_set.h"
#include "over_groups.h"

namespace stea {
namespace {

// Columns that propose a row, for every row, increasing.
struct Back {
    std::vector<int64_t> indptr;
    std::vector<int32_t> columns;
};

Back by_row(const Proposed& proposed, int64_t rows) {
    Back back{std::vector<int64_t>(static_cast<size_t>(rows) + 1, 0),
              std::vector<int32_t>(static_cast<size_t>(proposed.back))};
    for (int64_t i = 0; i < proposed.back; ++i) ++back.indptr[static_cast<size_t>(proposed.back_rows[i]) + 1];
    std::partial_sum(back.indptr.begin(), back.indptr.end(), back.indptr.begin());
    std::vector<int64_t> next(back.indptr.begin(), back.indptr.end() - 1);
    for (int64_t i = 0; i < proposed.back; ++i) {
        back.columns[static_cast<size_t>(next[static_cast<size_t>(proposed.back_rows[i])]++)] =
            proposed.back_columns[i];
    }
    return back;
}

// Calls found(i, position in `other`, or -1) for every pair i of a row: both rows are merged.
template <typename Found>
void find_row(const PairRows& pairs, const PairRows& other, int64_t row, Found&& found) {
    int64_t at = other.indptr[row];
    const int64_t end = other.indptr[row + 1];
    for (int64_t i = pairs.indptr[row]; i < pairs.indptr[row + 1]; ++i) {
        while (at < end && other.columns[at] < pairs.columns[i]) ++at;
        found(i, at < end && other.columns[at] == pairs.columns[i] ? at : int64_t{-1});
    }
}

}  // namespace

void transpose_pairs(const PairRows& pairs, int64_t* indptr, int32_t* order) {
    std::fill_n(indptr, pairs.num_columns + 1, 0);
    for (int64_t i = 0; i < pairs.size(); ++i) ++indptr[pairs.columns[i] + 1];
    std::partial_sum(indptr, indptr + pairs.num_columns + 1, indptr);
    std::vector<int64_t> next(indptr, indptr + pairs.num_columns);
    for (int64_t i = 0; i < pairs.size(); ++i) {
        order[next[static_cast<size_t>(pairs.columns[i])]++] = static_cast<int32_t>(i);
    }
}

LooseRows unite_rows(const PairRows& pairs, const Proposed& proposed, const PairOptions& options) {
    const Back back = by_row(proposed, pairs.rows);
    const auto rows = static_cast<size_t>(pairs.rows);
    LooseRows united{std::vector<int64_t>(rows + 1, 0), std::vector<int64_t>(rows), {}};
    int64_t room = 0;
    for (size_t row = 0; row < rows; ++row) {
        united.begin[row] = room;
        room += pairs.indptr[row + 1] - pairs.indptr[row] + back.indptr[row + 1] - back.indptr[row] + proposed.k;
    }
    united.numbers.resize(static_cast<size_t>(room));
    WorkerLocal<std::vector<int32_t>> scratch(options.n_threads);
    over_groups(pairs.indptr, pairs.rows, options, [&](int worker, int64_t row) {
        const auto i = static_cast<size_t>(row);
        std::vector<int32_t>& offered = scratch.of(worker);
        offered.clear();
        std::copy_if(proposed.of_rows + row * proposed.k, proposed.of_rows + (row + 1) * proposed.k,
                     std::back_inserter(offered), [](int32_t column) { return column >= 0; });
        std::sort(offered.begin(), offered.end());
        const auto middle = static_cast<std::ptrdiff_t>(offered.size());
        offered.insert(offered.end(), back.columns.begin() + back.indptr[i], back.columns.begin() + back.indptr[i + 1]);
        std::inplace_merge(offered.begin(), offered.begin() + middle, offered.end());
        offered.erase(std::unique(offered.begin(), offered.end()), offered.end());
        int32_t* first = united.numbers.data() + united.begin[i];
        int32_t* last = std::set_union(pairs.columns + pairs.indptr[row], pairs.columns + pairs.indptr[row + 1],
                                       offered.begin(), offered.end(), first);
        united.indptr[i + 1] = last - first;
    });
    std::partial_sum(united.indptr.begin(), united.indptr.end(), united.indptr.begin());
    return united;
}

void write_rows(const LooseRows& rows, int32_t* numbers, const PairOptions& options) {
    const auto count = static_cast<int64_t>(rows.begin.size());
    over_groups(rows.indptr.data(), count, options, [&](int, int64_t row) {
        const auto i = static_cast<size_t>(row);
        std::copy_n(rows.numbers.data() + rows.begin[i], rows.indptr[i + 1] - rows.indptr[i], numbers + rows.indptr[i]);
    });
}

void find_positions(const PairRows& pairs, const PairRows& other, int32_t* positions, const PairOptions& options) {
    over_groups(pairs.indptr, pairs.rows, options, [&](int, int64_t row) {
        find_row(pairs, other, row, [&](int64_t i, int64_t at) { positions[i] = static_cast<int32_t>(at); });
    });
}

void take_values(const PairRows& pairs, const PairRows& other, const double* values_of_other, double* values,
                 const PairOptions& options) {
    over_groups(pairs.indptr, pairs.rows, options, [&](int, int64_t row) {
        find_row(pairs, other, row, [&](int64_t i, int64_t at) {
            if (at >= 0 && std::isnan(values[i])) values[i] = values_of_other[at];
        });
    });
}

}  // namespace stea
