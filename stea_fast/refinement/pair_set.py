"""A sparse set of candidate pairs of a range of rows, seen from both sides at once, with the encoder's scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from stea_fast._util.sparse import concatenated_runs, offsets, offsets_of_counts
from stea_fast.types import PairScores


@dataclass(frozen=True, eq=False)
class PairSet:
    """Distinct (row, column) pairs in increasing order.

    Attributes:
        indptr, columns: int64 [rows + 1] and int32 [m], the pairs of every row.
        scores: float64 [m], the encoder's.
        first_row: the number of the first row.
        num_columns: how many columns there are.
        kernels: the backend's functions over pairs.
        n_threads: how many threads they may take.
    """

    indptr: np.ndarray
    columns: np.ndarray
    scores: np.ndarray
    first_row: int
    num_columns: int
    kernels: Any
    n_threads: int

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def rows(self) -> np.ndarray:
        """int32 [m]: the row of every pair."""
        numbers = np.arange(self.first_row, self.first_row + len(self.indptr) - 1, dtype=np.int32)
        return np.repeat(numbers, np.diff(self.indptr))

    @cached_property
    def by_column(self) -> tuple[np.ndarray, np.ndarray]:
        """int64 [n2 + 1] and int32 [m]: the positions of the pairs of every column."""
        return self.kernels.transpose(self.indptr, self.columns, self.num_columns)

    def _groups(self) -> tuple[tuple[np.ndarray, np.ndarray | None], ...]:
        """The pairs by row and by column, as the kernels take groups."""
        return (self.indptr, None), self.by_column

    def log_sums(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """log Σ exp of every row, and of every column; -inf for an empty one."""
        return tuple(self.kernels.log_sums(*groups, values, n_threads=self.n_threads) for groups in self._groups())

    def joint_probabilities(self, values: np.ndarray, sums: tuple[np.ndarray, ...]) -> np.ndarray:
        """float64 [m]: √(p_row·p_column) by the logarithms of the sums of rows and of columns."""
        return self.kernels.joint_probabilities(self.indptr, self.columns, values, *sums, n_threads=self.n_threads)

    def scale_rows(self, values: np.ndarray, tails: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Factors that make each row add up to one with its tail, given those of the columns; and the columns' sums."""
        return self.kernels.scale_rows(self.indptr, self.columns, values, tails, factors, n_threads=self.n_threads)

    def scaled(self, values: np.ndarray, of_rows: np.ndarray, of_columns: np.ndarray) -> np.ndarray:
        """float64 [m]: values ≥ 0 times the factors of their rows and columns, at most 1."""
        return self.kernels.scaled(self.indptr, self.columns, values, of_rows, of_columns, n_threads=self.n_threads)

    def largest_of_columns(self, values: np.ndarray) -> np.ndarray:
        """float64 [n2]: the largest value of every column; -inf for one without pairs."""
        return self.kernels.largest(*self.by_column, values, n_threads=self.n_threads)

    def mutual_best(self, values: np.ndarray, largest_of_columns: np.ndarray) -> np.ndarray:
        """bool [m]: the pairs with the largest value of their row that is also that of their column."""
        return self.kernels.mutual_best(self.indptr, self.columns, values, largest_of_columns, n_threads=self.n_threads)

    def best(self, values: np.ndarray, k: int, least: float = -np.inf) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Of every row, and of every column: the positions of the k largest values above `least`, best first.

        Each as int64 [n + 1], where a row begins, and int32 positions; ties keep their order.
        """
        rows, columns = (
            self.kernels.best(*groups, values, k=k, least=least, n_threads=self.n_threads) for groups in self._groups()
        )
        return rows, columns

    def positions_in(self, other: PairSet) -> np.ndarray:
        """int32 [m]: where the pairs stand in another set of the same shape, -1 where they do not."""
        return self.kernels.positions(
            self.indptr, self.columns, other.indptr, other.columns, self.num_columns, n_threads=self.n_threads
        )

    def united(self, of_rows: np.ndarray, of_columns: np.ndarray, before: PairSet, score: PairScores) -> PairSet:
        """These pairs with proposed ones: columns for every row and rows for every column, -1 for none.

        Scores that these pairs or those of `before` have are kept: from sweep to sweep few pairs are new.
        """
        indptr, columns = self.kernels.union(
            self.indptr, self.columns, of_rows, of_columns, first_row=self.first_row, n_threads=self.n_threads
        )
        union = self.like(indptr, columns, np.empty(len(columns)))
        unknown = np.ones(len(columns), dtype=bool)
        for other in (before, self):
            if not len(other):
                continue
            places = union.positions_in(other)
            known = places >= 0
            np.copyto(union.scores, other.scores[places], where=known)
            unknown &= ~known
        new = np.flatnonzero(unknown)
        if len(new):
            rows = np.searchsorted(indptr, new, side="right") - 1
            union.scores[new] = score(rows + self.first_row, columns[new].astype(np.int64))
        return union

    def with_best_of(self, rows: np.ndarray, k: int) -> PairSet:
        """Without all but the k best-scored pairs of the rows that a mask [rows] names."""
        counts = np.diff(self.indptr)
        long = np.flatnonzero(rows & (counts > k))
        if not len(long):
            return self
        places = concatenated_runs(self.indptr[long], counts[long]).astype(np.int32)
        groups = offsets_of_counts(counts[long]), places
        _, best = self.kernels.best(*groups, self.scores, k=k, least=-np.inf, n_threads=self.n_threads)
        kept = np.ones(len(self), dtype=bool)
        kept[places] = False
        kept[best] = True
        counts[long] = k
        return self.like(offsets_of_counts(counts), self.columns[kept], self.scores[kept])

    def like(self, indptr: np.ndarray, columns: np.ndarray, scores: np.ndarray) -> PairSet:
        """Other pairs of the same rows."""
        return replace(self, indptr=indptr, columns=columns, scores=scores)


def from_keys(
    keys: np.ndarray, scores: np.ndarray, rows: tuple[int, int], num_columns: int, kernels: Any, n_threads: int
) -> PairSet:
    """A set of distinct increasing keys, row · number of columns + column, of a range of rows, and their scores."""
    begin, end = rows
    of_row, columns = np.divmod(keys, num_columns)
    indptr = offsets(of_row - begin, end - begin)
    return PairSet(indptr, columns.astype(np.int32), scores, begin, num_columns, kernels, n_threads)
