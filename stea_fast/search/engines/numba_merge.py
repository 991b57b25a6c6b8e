"""The merging of blocks by Numba: what `native_merge` does, where there is no compiled module.

Kernels release the GIL and run on a range of lines each, in a thread pool as those of `_backends/numba.py`: Numba's own
parallel loops may run on an OpenMP that ends every forked process in which it is used again.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from stea_fast._backends.numba_rows import kernel
from stea_fast._util.threads import run_blocks
from stea_fast.search.embeddings import Embeddings
from stea_fast.search.exact import gathered_products

LINES = 256  # rows or columns of a block that one thread takes at a time


def merge(block, first_row, first_column, row_pools, column_pools, row_keep, column_keep, n_threads):
    """Offer every score of the block to its row and its column."""
    _over_lines(_merge_rows, block[0].shape[0], n_threads, *block, first_column, *_parts(row_pools), row_keep)
    _over_lines(_merge_columns, block[0].shape[1], n_threads, *block, first_row, *_parts(column_pools), column_keep)


def partition(block, row_pools, column_pools, row_keep, column_keep, rows, columns, beta, n_threads):
    """Add a merged block to the partition sums."""
    _over_lines(_sum_rows, block[0].shape[0], n_threads, *block, row_pools[3], *rows, beta)
    _over_lines(_sum_columns, block[0].shape[1], n_threads, *block, column_pools[3], *columns, beta)


def sort(pools, keep, n_threads):
    """Cut every pool back to the best and order it."""
    _over_lines(_sort_pools, len(pools[1]), n_threads, *_parts(pools), keep)


def products(queries: Embeddings, keys: Embeddings, indices: np.ndarray, distance: bool, n_threads: int) -> np.ndarray:
    """float64 [n, k]: inner products, or squared distances, of every row with its candidates."""
    return gathered_products(queries, keys, indices, distance)


def _over_lines(lines_kernel, count, n_threads, *arguments):
    """Call the kernel for ranges of its lines, each of which it owns: results do not depend on the ranges."""
    bounds = [*range(0, count, LINES), count]
    run_blocks(lambda begin, end: lines_kernel(begin, end, *arguments), list(pairwise(bounds)), n_threads)


def _parts(pools):
    entries, sizes, threshold, best = pools
    return entries["score"], entries["index"], sizes, threshold, best


@kernel
def _score(values, row_scale, column_scale, row_offset, column_offset, i, j):
    return values[i, j] * (row_scale[i] * column_scale[j]) - row_offset[i] - column_offset[j]


@kernel
def _cut_back(scores, indices, size, keep):
    """The best to the front, ordered by (score, index); returns how many are left."""
    by_index = np.argsort(indices[:size], kind="mergesort")
    order = by_index[np.argsort(-scores[:size][by_index], kind="mergesort")]
    kept = min(size, keep)
    best_scores, best_indices = scores[:size][order[:kept]], indices[:size][order[:kept]]
    scores[:kept], indices[:kept] = best_scores, best_indices
    return kept


@kernel
def _offer(score, index, line, scores, indices, sizes, threshold, best, keep):
    size = sizes[line]
    scores[line, size], indices[line, size] = score, index
    size += 1
    if score > best[line]:
        best[line] = score
    if size == scores.shape[1] or (size == keep and threshold[line] == -np.inf):
        size = _cut_back(scores[line], indices[line], size, keep)
        threshold[line] = scores[line, keep - 1]
    sizes[line] = size


@kernel
def _merge_rows(
    begin, end, values, row_scale, column_scale, row_offset, column_offset, first, scores, indices, sizes, threshold, best, keep
):  # fmt: skip
    for i in range(begin, end):
        for j in range(values.shape[1]):
            score = _score(values, row_scale, column_scale, row_offset, column_offset, i, j)
            if score > threshold[i]:
                _offer(score, first + j, i, scores, indices, sizes, threshold, best, keep)


@kernel
def _merge_columns(
    begin, end, values, row_scale, column_scale, row_offset, column_offset, first, scores, indices, sizes, threshold, best, keep
):  # fmt: skip
    for i in range(values.shape[0]):
        for j in range(begin, end):
            score = _score(values, row_scale, column_scale, row_offset, column_offset, i, j)
            if score > threshold[j]:
                _offer(score, first + i, j, scores, indices, sizes, threshold, best, keep)


@kernel
def _sum_rows(begin, end, values, row_scale, column_scale, row_offset, column_offset, best, sums, anchor, beta):
    for i in range(begin, end):
        total = sums[i] * np.exp(beta * (anchor[i] - best[i])) if sums[i] > 0 else 0.0
        for j in range(values.shape[1]):
            total += np.exp(beta * (_score(values, row_scale, column_scale, row_offset, column_offset, i, j) - best[i]))
        sums[i], anchor[i] = total, best[i]


@kernel
def _sum_columns(begin, end, values, row_scale, column_scale, row_offset, column_offset, best, sums, anchor, beta):
    for j in range(begin, end):
        if sums[j] > 0:
            sums[j] *= np.exp(beta * (anchor[j] - best[j]))
        anchor[j] = best[j]
    for i in range(values.shape[0]):
        for j in range(begin, end):
            sums[j] += np.exp(
                beta * (_score(values, row_scale, column_scale, row_offset, column_offset, i, j) - anchor[j])
            )


@kernel
def _sort_pools(begin, end, scores, indices, sizes, threshold, best, keep):
    for line in range(begin, end):
        sizes[line] = _cut_back(scores[line], indices[line], sizes[line], keep)
