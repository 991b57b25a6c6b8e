"""A sparse set of candidate pairs, seen from both sides at once, with the encoder's score of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stea_fast._util.sparse import concatenated_runs, offsets, offsets_of_counts, rows_of
from stea_fast.types import Beliefs, PairScores


@dataclass(frozen=True, eq=False)
class PairSet:
    """Distinct (row, column) pairs in increasing order.

    Attributes:
        indptr, columns: int64 [n1 + 1] and int32 [m], the pairs of every row.
        scores: float64 [m], the encoder's.
        num_columns: how many columns there are.
        kernels: the backend's functions over pairs.
        n_threads: how many threads they may take.
    """

    indptr: np.ndarray
    columns: np.ndarray
    scores: np.ndarray
    num_columns: int
    kernels: Any
    n_threads: int

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def rows(self) -> np.ndarray:
        """int32 [m]: the row of every pair."""
        return np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), np.diff(self.indptr))

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

    def balanced(self, values: np.ndarray, tails: tuple[np.ndarray, ...], times: int) -> np.ndarray:
        """Values [m] ≥ 0, scaled until each row and column adds up to one with its tail."""
        return self.kernels.balance(self.indptr, self.columns, values, *tails, times=times, n_threads=self.n_threads)

    def mutual_best(self, values: np.ndarray) -> np.ndarray:
        """bool [m]: the pairs with the largest value of both their row and their column."""
        return self.kernels.mutual_best(self.indptr, self.columns, self.by_column, values, n_threads=self.n_threads)

    def best(self, values: np.ndarray, k: int, least: float = -np.inf) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Of every row, and of every column: the positions of the k largest values above `least`, best first.

        Each as int64 [n + 1], where a row begins, and int32 positions; ties keep their order.
        """
        rows, columns = (
            self.kernels.best(*groups, values, k=k, least=least, n_threads=self.n_threads) for groups in self._groups()
        )
        return rows, columns

    def beliefs(self, values: np.ndarray, k: int, least: float) -> tuple[Beliefs, Beliefs]:
        """The k largest values above `least` of every row, and of every column, as what these are believed to be."""
        (begin1, best1), (begin2, best2) = self.best(values, k, least)
        return (
            Beliefs(begin1, self.columns[best1], values[best1].astype(np.float32)),
            Beliefs(begin2, self.rows[best2], values[best2].astype(np.float32)),
        )

    def positions_in(self, other: PairSet) -> np.ndarray:
        """int32 [m]: where the pairs stand in another set of the same shape, -1 where they do not."""
        return self.kernels.positions(
            self.indptr, self.columns, other.indptr, other.columns, self.num_columns, n_threads=self.n_threads
        )

    def united(self, of_rows: np.ndarray, of_columns: np.ndarray, before: PairSet, score: PairScores) -> PairSet:
        """These pairs with proposed ones: columns for every row and rows for every column, -1 for none.

        Scores that these pairs or those of `before` have are kept: from sweep to sweep few pairs are new.
        """
        indptr, columns = self.kernels.union(self.indptr, self.columns, of_rows, of_columns, n_threads=self.n_threads)
        union = self._like(indptr, columns, np.empty(len(columns)))
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
            union.scores[new] = score(rows, columns[new].astype(np.int64))
        return union

    def with_best_of(self, rows: np.ndarray, k: int) -> PairSet:
        """Without all but the k best-scored pairs of the rows that a mask [n1] names."""
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
        return self._like(offsets_of_counts(counts), self.columns[kept], self.scores[kept])

    def _like(self, indptr: np.ndarray, columns: np.ndarray, scores: np.ndarray) -> PairSet:
        return PairSet(indptr, columns, scores, self.num_columns, self.kernels, self.n_threads)


def from_keys(keys: np.ndarray, scores: np.ndarray, shape: tuple[int, int], kernels: Any, n_threads: int) -> PairSet:
    """A set of distinct increasing keys, row · number of columns + column, and their scores."""
    rows, columns = np.divmod(keys, shape[1])
    return PairSet(offsets(rows, shape[0]), columns.astype(np.int32), scores, shape[1], kernels, n_threads)


def padded(best: tuple[np.ndarray, np.ndarray], k: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Where the best of every row stand in a table [rows, k], and their positions in the set."""
    indptr, positions = best
    rows = rows_of(indptr)
    return (rows, np.arange(len(rows)) - indptr[rows]), positions
