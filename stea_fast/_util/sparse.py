"""Sparse structure in plain arrays: rows of entries by offsets, distinct keys, groups, padding, matching.

`indptr` is always int64 [rows + 1]: the entries of row i stand at [indptr[i], indptr[i + 1]).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stea_fast._util.array_ops import Array, ops_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array
BLOCK = 1 << 16  # elements that are looked at together: few enough to stay in the processor's cache


def blocks(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """[begin, end) in pieces of `BLOCK`, so that a pass over an array of any size, or a mapped one, needs no memory."""
    return ((start, min(start + BLOCK, end)) for start in range(begin, end, BLOCK))


def are_offsets(indptr: np.ndarray, rows: int, entries: int) -> bool:
    """Whether `indptr` divides the entries into rows: from 0 to their number, and never less than before.

    Neighbours are compared, not subtracted: a difference of hostile numbers wraps around.
    """
    return (
        indptr.shape == (rows + 1,)
        and indptr[0] == 0
        and indptr[-1] == entries
        and all((indptr[begin + 1 : end + 1] >= indptr[begin:end]).all() for begin, end in blocks(0, rows))
    )


def offsets_of_counts(counts: Array) -> Array:
    """indptr of rows with these numbers of entries."""
    return ops_of(counts).offsets(counts)


def offsets(groups: Array, count: int) -> Array:
    """indptr of `count` groups, from the group of every item: where each group begins once the items are in order."""
    ops = ops_of(groups)
    return ops.offsets(ops.histogram(groups, count))


def rows_of(indptr: Array) -> Array:
    """int64 [entries]: the row of every entry."""
    ops = ops_of(indptr)
    return ops.repeat(ops.arange(len(indptr) - 1), indptr[1:] - indptr[:-1])


def concatenated_runs(starts: Array, lengths: Array) -> Array:
    """start, start + 1, …, for one run after the other."""
    ops, indptr = ops_of(starts), offsets_of_counts(lengths)
    return ops.repeat(starts - indptr[:-1], lengths) + ops.arange(int(indptr[-1]))


def run_starts(ordered: Array) -> Array:
    """bool [n]: which elements (rows, of a matrix) differ from the one before; the first does."""
    first = ops_of(ordered).all_true(len(ordered))
    differs = ordered[1:] != ordered[:-1]
    first[1:] = differs.any(1) if ordered.ndim == 2 else differs
    return first


def first_of_each(keys: Array) -> tuple[Array, Array]:
    """The distinct keys in increasing order, and the place at which each of them stands first."""
    order = ops_of(keys).order(keys)
    ordered = keys[order]
    first = run_starts(ordered)
    return ordered[first], order[first]


def distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values in increasing order. `np.unique` hashes integers, which is slower than sorting."""
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def entries_at(matrix: csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """float32 [n]: the entries of a matrix at (rows, columns), 0 where none is stored."""
    if not len(rows):  # SciPy answers an empty question with a sparse array
        return np.zeros(0, dtype=np.float32)
    return np.asarray(matrix[rows, columns], dtype=np.float32).ravel()


def reduce_groups(ufunc: np.ufunc, values: np.ndarray, indptr: np.ndarray, empty: float) -> np.ndarray:
    """What the ufunc makes of the values of every group; `empty` where a group has none."""
    out = np.full(len(indptr) - 1, empty, dtype=values.dtype)
    filled = np.flatnonzero(np.diff(indptr))  # `reduceat` would give an empty group the first value of the next
    if len(filled):
        out[filled] = ufunc.reduceat(values, indptr[filled])
    return out


def best_of_rows(rows: Array, values: Array, k: int, num_rows: int) -> Array:
    """The positions of the k largest values of every row, rows in order, best first; ties keep their order."""
    ops = ops_of(rows)
    order = ops.lexsort((-values, rows))
    indptr = offsets(rows, num_rows)
    return order[ops.arange(len(order)) - indptr[rows[order]] < k]


def padded_rows(
    indptr: np.ndarray, values: np.ndarray, fill: float
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """[rows, longest row]: the values of every row, then `fill`; and the row and column of every value in it."""
    rows = rows_of(indptr)
    columns = np.arange(len(rows)) - indptr[rows]
    width = max(int(np.diff(indptr).max(initial=0)), 1)
    padded = np.full((len(indptr) - 1, width), fill, dtype=values.dtype)
    padded[rows, columns] = values
    return padded, (rows, columns)


def best_matching(
    rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, shape: tuple[int, int], alone: float
) -> np.ndarray:
    """int [rows]: the column of every row in a one-to-one matching with the largest sum of weights; -1 for none.

    Args:
        rows, columns: the distinct pairs that may be matched.
        weights: float64, one per pair; not 0, which SciPy's bipartite matching takes for "no edge".
        shape: how many rows and columns there are.
        alone: what a row that stays without a column counts, as SciPy matches every row: not 0 either.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    height, width = shape
    every = np.arange(height)  # each row gets a column of its own that stands for "stays alone"
    matrix = csr_array(
        (
            np.concatenate([weights, np.full(height, alone)]),
            (np.concatenate([rows, every]), np.concatenate([columns, width + every])),
        ),
        shape=(height, width + height),
    )
    _, column = min_weight_full_bipartite_matching(matrix, maximize=True)
    return np.where(column < width, column, -1)
