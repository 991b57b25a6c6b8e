"""A sparse set of candidate pairs, seen from both sides at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stea_fast._util.sparse import distinct as distinct
from stea_fast._util.sparse import offsets, padded_rows, reduce_groups

TINY = 1e-200  # no value is 0: a row of nothing else could not be scaled


@dataclass(frozen=True, eq=False)
class Grouping:
    """Items in groups: `order` puts those of group g into the places [indptr[g], indptr[g + 1])."""

    order: np.ndarray | slice
    indptr: np.ndarray

    def _reduce(self, ufunc: np.ufunc, values: np.ndarray, empty: float) -> np.ndarray:
        return reduce_groups(ufunc, values[self.order], self.indptr, empty)

    def maximum(self, values: np.ndarray) -> np.ndarray:
        """The largest value of every group, -inf for an empty one."""
        return self._reduce(np.maximum, values, -np.inf)

    def log_sum_exp(self, values: np.ndarray, group_of: np.ndarray) -> np.ndarray:
        """log Σ exp of every group, -inf for an empty one."""
        top = self.maximum(values)
        shift = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return shift + np.log(self._reduce(np.add, np.exp(values - shift[group_of]), 0.0))


class PairSet:
    """Distinct (row, column) pairs in increasing order.

    Attributes:
        rows, columns: int64 [m]
        by_row, by_column: the pairs grouped by either side.
    """

    def __init__(self, keys: np.ndarray, shape: tuple[int, int]) -> None:
        """`keys` are row · number of columns + column, distinct and increasing."""
        self.keys, self.shape = keys, shape
        self.rows, self.columns = np.divmod(keys, shape[1])
        self.by_row = Grouping(slice(None), offsets(self.rows, shape[0]))
        self.by_column = Grouping(np.argsort(self.columns, kind="stable"), offsets(self.columns, shape[1]))

    def __len__(self) -> int:
        return len(self.keys)

    def mutual_best(self, values: np.ndarray) -> np.ndarray:
        """bool [m]: the pairs with the largest value of both their row and their column."""
        row_best, column_best = self.by_row.maximum(values), self.by_column.maximum(values)
        return (values == row_best[self.rows]) & (values == column_best[self.columns])

    def balanced(self, values: np.ndarray, tails: Sequence[np.ndarray], times: int) -> np.ndarray:
        """Values [m] ≥ 0 and the tails of rows and of columns, scaled until each row and column adds up to one."""
        values, tails = np.maximum(values, TINY), [np.array(tail) for tail in tails]
        for _ in range(times):
            for group_of, tail in zip((self.rows, self.columns), tails, strict=True):
                total = np.bincount(group_of, values, minlength=len(tail)) + tail
                np.divide(tail, total, out=tail, where=total > 0)
                values /= total[group_of]
                np.maximum(values, TINY, out=values)
        return np.minimum(values, 1.0)

    def padded_columns(self) -> tuple[np.ndarray, np.ndarray]:
        """int32 [rows, longest], the columns of every row padded with -1, and the place of every pair in its row."""
        padded, (_, places) = padded_rows(self.by_row.indptr, self.columns.astype(np.int32), -1)
        return padded, places


def best_of_rows(rows: np.ndarray, values: np.ndarray, k: int, num_rows: int) -> np.ndarray:
    """The positions of the k largest values of every row, rows in order, best first; ties keep their order."""
    order = np.lexsort((-values, rows))
    indptr = offsets(rows, num_rows)
    return order[np.arange(len(order)) - indptr[rows[order]] < k]


class PairScoreCache:
    """Scores of pairs by key, each computed once: the pairs seldom change from sweep to sweep."""

    def __init__(self, keys: np.ndarray, values: np.ndarray, compute: Callable[[np.ndarray], np.ndarray]) -> None:
        order = np.argsort(keys)
        self.keys, self.values, self.compute = keys[order], values[order], compute

    def __call__(self, keys: np.ndarray) -> np.ndarray:
        """The values of distinct increasing keys."""
        new = keys[~np.isin(keys, self.keys, assume_unique=True)]
        if len(new):
            merged, values = np.concatenate([self.keys, new]), np.concatenate([self.values, self.compute(new)])
            order = np.argsort(merged)
            self.keys, self.values = merged[order], values[order]
        return self.values[np.searchsorted(self.keys, keys)]
