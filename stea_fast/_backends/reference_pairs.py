"""The definition of the kernels over a pair set: short, obvious NumPy.

Every backend offers the functions of this module as its `pairs`, with these arguments:

    indptr, columns  the pairs: int64 [rows + 1] and int32 [pairs], the columns of every row distinct and increasing
    order            int32, what puts values into groups: group g has those at order[indptr[g]], …, increasing within a
                     group; None where the values of a group stand side by side
    values           float64, one per pair
    n_threads        ignored here

Where a pair is known by its position, that is its place in the order of (row, column).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stea_fast._util.sparse import best_of_rows, distinct, offsets, reduce_groups, rows_of

ValuedPairs = tuple[np.ndarray, np.ndarray, np.ndarray]  # indptr, columns, and a value of each pair
LEAST_VALUE = 1e-200  # no balanced value is 0: a row of nothing else could not be scaled


def transpose(indptr: np.ndarray, columns: np.ndarray, num_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs by column: int64 [num_columns + 1] and the positions of the pairs, increasing within a column."""
    return offsets(columns, num_columns), np.argsort(columns, kind="stable").astype(np.int32)


def union(
    indptr: np.ndarray, columns: np.ndarray, of_rows: np.ndarray, of_columns: tuple[np.ndarray, np.ndarray],
    num_columns: int, *, n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The pairs, with what neighbours propose: columns of every row, int32 [rows, k], where -1 stands for none, and
    pairs that columns propose: their rows and columns, both int32, the latter increasing.

    Returns the united pairs, as they were given.
    """
    i, a = np.nonzero(of_rows >= 0)
    proposed = i * num_columns + of_rows[i, a], of_columns[0].astype(np.int64) * num_columns + of_columns[1]
    keys = distinct(np.concatenate([_keys(indptr, columns, num_columns), *proposed]))
    rows, united = np.divmod(keys, max(num_columns, 1))
    return offsets(rows, len(indptr) - 1), united.astype(np.int32)


def positions(
    indptr: np.ndarray, columns: np.ndarray, other_indptr: np.ndarray, other_columns: np.ndarray, num_columns: int,
    *, n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """int32 [pairs]: where every pair stands in another set with the same rows, -1 where it does not."""
    wanted, known = _keys(indptr, columns, num_columns), _keys(other_indptr, other_columns, num_columns)
    places = np.searchsorted(known, wanted)
    is_there = np.append(known, -1)[places] == wanted
    return np.where(is_there, places, -1).astype(np.int32)


def known_values(
    indptr: np.ndarray, columns: np.ndarray, sets: Sequence[ValuedPairs], num_columns: int, *, n_threads: int = 1
) -> np.ndarray:
    """float64 [pairs]: the value of every pair in the first of these sets that has it, NaN where none has.

    Each is the `indptr`, `columns` and `values` of pairs with the same rows.
    """
    values = np.full(len(columns), np.nan)
    for other_indptr, other_columns, known in sets:
        places = positions(indptr, columns, other_indptr, other_columns, num_columns)
        taken = (places >= 0) & np.isnan(values)
        values[taken] = known[places[taken]]
    return values


def _keys(indptr: np.ndarray, columns: np.ndarray, num_columns: int) -> np.ndarray:
    return rows_of(indptr) * num_columns + columns


def best(
    indptr: np.ndarray, order: np.ndarray | None, values: np.ndarray, *, k: int, least: float, n_threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the k largest values above `least` of every group, best first; ties keep their order.

    Returns int64 [groups + 1], where each group begins, and int32 positions.
    """
    groups, places = rows_of(indptr), np.arange(len(values)) if order is None else order
    above = values[places] > least
    groups, places = groups[above], places[above]
    chosen = best_of_rows(groups, values[places], k, len(indptr) - 1)
    return offsets(groups[chosen], len(indptr) - 1), places[chosen].astype(np.int32)


def log_sums(indptr: np.ndarray, order: np.ndarray | None, values: np.ndarray, *, n_threads: int = 1) -> np.ndarray:
    """float64 [groups]: log Σ exp of every group, -inf for an empty one."""
    ordered = values if order is None else values[order]
    top = reduce_groups(np.maximum, ordered, indptr, -np.inf)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return shift + np.log(reduce_groups(np.add, np.exp(ordered - shift[rows_of(indptr)]), indptr, 0.0))


def joint_probabilities(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, row_sums: np.ndarray, column_sums: np.ndarray,
    *, n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """float64 [pairs]: √(p_row·p_column) with p_row = exp(value - row_sums[row]), p_column likewise; at most 1."""
    twice = (values - row_sums[rows_of(indptr)]) + (values - column_sums[columns])
    return np.exp(np.minimum(0.5 * twice, 0.0))


def largest(indptr: np.ndarray, order: np.ndarray | None, values: np.ndarray, *, n_threads: int = 1) -> np.ndarray:
    """float64 [groups]: the largest value of every group, -inf for an empty one."""
    return reduce_groups(np.maximum, values if order is None else values[order], indptr, -np.inf)


def mutual_best(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, largest_of_columns: np.ndarray, *, n_threads: int = 1
) -> np.ndarray:
    """bool [pairs]: those with the largest value of their row that is also that of their column."""
    row_best = reduce_groups(np.maximum, values, indptr, -np.inf)
    return (values == row_best[rows_of(indptr)]) & (values == largest_of_columns[columns])


def scale_rows(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, tails: np.ndarray, column_factors: np.ndarray,
    *, n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Half an iteration of Sinkhorn's, in which pairs become a(i)·v(i, j)·b(j): each row adds up to one with its tail.

    Values are at least LEAST_VALUE. Returns a(i) = 1/(Σ v(i, j)·b(j) + tail(i)), float64 [rows], and Σ a(i)·v(i, j) of
    every column, float64 [columns], from which follow the factors of the columns.
    """
    rows, values = rows_of(indptr), np.maximum(values, LEAST_VALUE)
    a = inverse(np.bincount(rows, values * column_factors[columns], minlength=len(tails)) + tails)
    return a, np.bincount(columns, a[rows] * values, minlength=len(column_factors)).astype(np.float64)


def inverse(totals: np.ndarray) -> np.ndarray:
    """1/total; 1 where all has underflowed."""
    return 1.0 / np.where(totals > 0, totals, 1.0)


def scaled(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, row_factors: np.ndarray, column_factors: np.ndarray,
    *, n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """float64 [pairs]: a(i)·v(i, j)·b(j), within [LEAST_VALUE, 1]."""
    values = np.maximum(values, LEAST_VALUE)
    return np.clip(values * row_factors[rows_of(indptr)] * column_factors[columns], LEAST_VALUE, 1.0)


def totals(
    evidence: np.ndarray, witnesses: np.ndarray, logits: np.ndarray, *, weight: float, lone: float, n_threads: int = 1
) -> np.ndarray:
    """float64 [pairs]: logits + weight · evidence, the latter times `lone` where there is a single witness."""
    weighted = evidence.astype(np.float64) * weight
    return np.where(witnesses == 1, weighted * lone, weighted) + logits


def damped(
    values: np.ndarray, earlier: np.ndarray, places: np.ndarray, *, share: float, n_threads: int = 1
) -> np.ndarray:
    """float64 [pairs]: the values, with this share of the earlier ones at these places; of 0 where that is -1."""
    old = np.append(earlier, 0.0)[places]  # the last is for what was not there
    return (1.0 - share) * values + share * old
