"""A sparse set of candidate pairs of a range of rows, seen from both sides at once, with the encoder's scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from stea_fast._util.array_ops import Array, Ops, ops_of
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
        is_part: whether others have further rows; then few columns occur, and only these have numbers.
        kernels: the backend's functions over pairs.
        n_threads: how many threads they may take.
    """

    indptr: Array
    columns: Array
    scores: Array
    first_row: int
    num_columns: int
    is_part: bool
    kernels: Any
    n_threads: int

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def rows(self) -> Array:
        """int32 [m]: the row of every pair."""
        numbers = self.ops.int32(self.ops.arange(len(self.indptr) - 1)) + self.first_row
        return self.ops.repeat(numbers, self.counts)

    @property
    def ops(self) -> Ops:
        """The operations of its kind of arrays."""
        return ops_of(self.columns)

    @property
    def counts(self) -> Array:
        """int64 [rows]: how many pairs every row has."""
        return self.indptr[1:] - self.indptr[:-1]

    @cached_property
    def _occurring(self) -> tuple[Array, Array, tuple[Array, Array]]:
        """The columns that count, the place of every pair's column among them, and the pairs by these columns."""
        indptr, order = self.kernels.transpose(self.indptr, self.columns, self.num_columns)
        if not self.is_part:
            return self.ops.arange(self.num_columns), self.columns, (indptr, order)
        occurring = self.ops.nonzero(indptr[1:] > indptr[:-1])
        begins = self.ops.chain([indptr[occurring], indptr[-1:]])
        places = self.ops.full(len(self), 0, "int32")
        numbers = self.ops.int32(self.ops.arange(len(occurring)))
        places[order] = self.ops.repeat(numbers, begins[1:] - begins[:-1])
        return occurring, places, (begins, order)

    @property
    def occurring(self) -> Array:
        """int64 [c]: the columns that have pairs, or all, increasing. What is said of columns is said of these."""
        return self._occurring[0]

    @property
    def by_column(self) -> tuple[Array, Array]:
        """int64 [c + 1] and int32 [m]: the positions of the pairs of every column that counts."""
        return self._occurring[2]

    @property
    def _narrow(self) -> tuple[Array, Array]:
        """The pairs with the columns that occur numbered by their places."""
        return self.indptr, self._occurring[1]

    def _groups(self) -> tuple[tuple[Array, Array | None], ...]:
        """The pairs by row and by column, as the kernels take groups."""
        return (self.indptr, None), self.by_column

    def log_sums(self, values: Array) -> tuple[Array, ...]:
        """log Σ exp of every row, -inf for an empty one, and of every column that counts."""
        return tuple(self.kernels.log_sums(*groups, values, n_threads=self.n_threads) for groups in self._groups())

    def joint_probabilities(self, values: Array, sums: tuple[Array, ...]) -> Array:
        """float64 [m]: √(p_row·p_column) by the logarithms of the sums of rows and of columns."""
        return self.kernels.joint_probabilities(*self._narrow, values, *sums, n_threads=self.n_threads)

    def scale_rows(self, values: Array, tails: Array, factors: Array) -> tuple[Array, Array]:
        """Factors that make each row add up to one with its tail, given those of the columns; and the columns' sums."""
        return self.kernels.scale_rows(*self._narrow, values, tails, factors, n_threads=self.n_threads)

    def scaled(self, values: Array, of_rows: Array, of_columns: Array) -> Array:
        """float64 [m]: values ≥ 0 times the factors of their rows and columns, at most 1."""
        return self.kernels.scaled(*self._narrow, values, of_rows, of_columns, n_threads=self.n_threads)

    def totals(self, evidence: Array, witnesses: Array, logits: Array, weight: float, lone: float) -> Array:
        """float64 [m]: logits and weighted evidence together; a share of the latter where there is a single witness."""
        return self.kernels.totals(evidence, witnesses, logits, weight=weight, lone=lone, n_threads=self.n_threads)

    def damped(self, values: Array, earlier: Array, places: Array, share: float) -> Array:
        """float64 [m]: the values, with a share of those of another set, in which the pairs have these places."""
        return self.kernels.damped(values, earlier, places, share=share, n_threads=self.n_threads)

    def places_of_rows(self, rows: Array) -> Array:
        """int64: the positions of all pairs of increasing rows."""
        return concatenated_runs(self.indptr[rows], self.counts[rows])

    def largest_of_columns(self, values: Array) -> Array:
        """float64 [c]: the largest value of every column that counts."""
        return self.kernels.largest(*self.by_column, values, n_threads=self.n_threads)

    def mutual_best(self, values: Array, largest_of_columns: Array) -> Array:
        """bool [m]: the pairs with the largest value of their row that is also that of their column."""
        return self.kernels.mutual_best(*self._narrow, values, largest_of_columns, n_threads=self.n_threads)

    def best(self, values: Array, k: int, least: float = -np.inf) -> tuple[tuple[Array, Array], ...]:
        """Of every row, and of every column that occurs: the positions of the k largest values above `least`.

        Each as int64 [n + 1], where a row begins, and int32 positions, best first; ties keep their order.
        """
        rows, columns = (
            self.kernels.best(*groups, values, k=k, least=least, n_threads=self.n_threads) for groups in self._groups()
        )
        return rows, columns

    def positions_in(self, other: PairSet) -> Array:
        """int32 [m]: where the pairs stand in another set of the same shape, -1 where they do not."""
        return self.kernels.positions(
            self.indptr, self.columns, other.indptr, other.columns, self.num_columns, n_threads=self.n_threads
        )

    def united(self, of_rows: Array, of_columns: tuple[Array, Array], before: PairSet, score: PairScores) -> PairSet:
        """These pairs with proposed ones: columns for every row, -1 for none, and pairs that columns propose.

        The latter are the places of their rows, from 0 on, and their columns, which increase. Scores that these pairs
        or those of `before` have are kept: from sweep to sweep few pairs are new.
        """
        indptr, columns = self.kernels.union(
            self.indptr, self.columns, of_rows, of_columns, self.num_columns, n_threads=self.n_threads
        )
        sets = [(each.indptr, each.columns, each.scores) for each in (before, self)]
        scores = self.kernels.known_values(indptr, columns, sets, self.num_columns, n_threads=self.n_threads)
        new = self.ops.nonzero(self.ops.lib.isnan(scores))
        if len(new):
            rows = self.ops.places(indptr[1:], new + 1)  # the first row that ends behind it
            scores[new] = score(rows + self.first_row, self.ops.int64(columns[new]))
        return self.like(indptr, columns, scores)

    def with_best_of(self, rows: Array, k: int) -> PairSet:
        """Without all but the k best-scored pairs of the rows that a mask [rows] names."""
        counts = self.counts
        long = self.ops.nonzero(rows & (counts > k))
        if not len(long):
            return self
        places = self.ops.int32(concatenated_runs(self.indptr[long], counts[long]))
        groups = offsets_of_counts(counts[long]), places
        _, best = self.kernels.best(*groups, self.scores, k=k, least=-np.inf, n_threads=self.n_threads)
        kept = self.ops.all_true(len(self))
        kept[places] = False
        kept[best] = True
        counts[long] = k
        return self.like(offsets_of_counts(counts), self.columns[kept], self.scores[kept])

    def like(self, indptr: Array, columns: Array, scores: Array) -> PairSet:
        """Other pairs of the same rows."""
        return replace(self, indptr=indptr, columns=columns, scores=scores)

    def bare(self) -> PairSet:
        """The same pairs without what was made of them: their order by column alone has a number per column."""
        return replace(self)


def from_keys(
    keys: Array, scores: Array, rows: tuple[int, int], num_columns: int, kernels: Any, n_threads: int,
    *, is_part: bool = False,
) -> PairSet:  # fmt: skip
    """A set of distinct increasing keys, row · number of columns + column, of a range of rows, and their scores."""
    begin, end = rows
    indptr = offsets(keys // num_columns - begin, end - begin)
    columns = ops_of(keys).int32(keys % num_columns)
    return PairSet(indptr, columns, scores, begin, num_columns, is_part, kernels, n_threads)
