"""The kernels over a pair set compiled by Numba, on one thread. Contracts as in `reference_pairs.py`."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log

import numpy as np

from stea_fast._backends.numba_rows import kernel
from stea_fast._backends.reference_pairs import LEAST_VALUE, ValuedPairs, damped, totals

__all__ = ["damped", "totals"]  # a pass over arrays is a kernel already


def transpose(indptr: np.ndarray, columns: np.ndarray, num_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs by column."""
    return _transpose(columns, num_columns)


@kernel
def _transpose(columns, num_columns):  # type: ignore[no-untyped-def]
    indptr = np.zeros(num_columns + 1, dtype=np.int64)
    for column in columns:
        indptr[column + 1] += 1
    indptr = np.cumsum(indptr)
    following, order = indptr.copy(), np.empty(len(columns), dtype=np.int32)
    for i in range(len(columns)):
        order[following[columns[i]]] = i
        following[columns[i]] += 1
    return indptr, order


def union(
    indptr: np.ndarray, columns: np.ndarray, of_rows: np.ndarray, of_columns: tuple[np.ndarray, np.ndarray],
    num_columns: int, *, n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The pairs, with what neighbours propose."""
    return _union(indptr, columns, of_rows, *of_columns)


@kernel
def _union(indptr, columns, of_rows, back_rows, back_columns):  # type: ignore[no-untyped-def]
    """Every row's pairs and proposals side by side, then sorted and without repetition."""
    n1 = len(indptr) - 1
    room = np.zeros(n1 + 1, dtype=np.int64)
    room[1:] = indptr[1:] - indptr[:-1] + of_rows.shape[1]
    for row in back_rows:
        room[row + 1] += 1
    room = np.cumsum(room)
    offered, end = np.empty(room[-1], dtype=np.int32), room[:-1].copy()
    for row in range(n1):
        for i in range(indptr[row], indptr[row + 1]):
            offered[end[row]] = columns[i]
            end[row] += 1
        for column in of_rows[row]:
            if column >= 0:
                offered[end[row]] = column
                end[row] += 1
    for i in range(len(back_rows)):
        offered[end[back_rows[i]]] = back_columns[i]
        end[back_rows[i]] += 1
    united, count = np.zeros(n1 + 1, dtype=np.int64), 0
    for row in range(n1):
        before = -1
        for column in np.sort(offered[room[row] : end[row]]):
            if column != before:
                offered[count] = column  # never ahead of what is still to be read
                count += 1
            before = column
        united[row + 1] = count
    return united, offered[:count].copy()


def positions(
    indptr: np.ndarray, columns: np.ndarray, other_indptr: np.ndarray, other_columns: np.ndarray, num_columns: int,
    *, n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """Where every pair stands in another set with the same rows."""
    return _positions(indptr, columns, other_indptr, other_columns)


@kernel
def _positions(indptr, columns, other_indptr, other_columns):  # type: ignore[no-untyped-def]
    places = np.full(len(columns), -1, dtype=np.int32)
    for row in range(len(indptr) - 1):
        at, end = other_indptr[row], other_indptr[row + 1]
        for i in range(indptr[row], indptr[row + 1]):
            while at < end and other_columns[at] < columns[i]:
                at += 1
            if at < end and other_columns[at] == columns[i]:
                places[i] = at
    return places


def known_values(
    indptr: np.ndarray, columns: np.ndarray, sets: Sequence[ValuedPairs], num_columns: int, *, n_threads: int = 1
) -> np.ndarray:
    """The value of every pair in the first of these sets that has it."""
    values = np.full(len(columns), np.nan)
    for other in sets:
        _take_values(indptr, columns, *other, values)
    return values


@kernel
def _take_values(indptr, columns, other_indptr, other_columns, known, values):  # type: ignore[no-untyped-def]
    places = _positions(indptr, columns, other_indptr, other_columns)
    for i in range(len(columns)):
        if places[i] >= 0 and np.isnan(values[i]):
            values[i] = known[places[i]]


def _ordered(order: np.ndarray | None, count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int32) if order is None else order


def best(
    indptr: np.ndarray, order: np.ndarray | None, values: np.ndarray, *, k: int, least: float, n_threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the k largest values above `least` of every group."""
    return _best(indptr, _ordered(order, len(values)), values, k, least)


@kernel
def _best(indptr, order, values, k, least):  # type: ignore[no-untyped-def]
    kept, places = np.zeros(len(indptr), dtype=np.int64), np.empty(len(order), dtype=np.int32)
    count = 0
    for group in range(len(indptr) - 1):
        members = order[indptr[group] : indptr[group + 1]]
        members = members[values[members] > least]
        for i in np.argsort(-values[members], kind="mergesort")[:k]:
            places[count] = members[i]
            count += 1
        kept[group + 1] = count
    return kept, places[:count].copy()


def log_sums(indptr: np.ndarray, order: np.ndarray | None, values: np.ndarray, *, n_threads: int = 1) -> np.ndarray:
    """The log Σ exp of every group."""
    return _log_sums(indptr, _ordered(order, len(values)), values)


@kernel
def _log_sums(indptr, order, values):  # type: ignore[no-untyped-def]
    sums = np.full(len(indptr) - 1, -inf)
    for group in range(len(sums)):
        most, total = -inf, 0.0
        for i in range(indptr[group], indptr[group + 1]):
            most = max(most, values[order[i]])
        if most > -inf:
            for i in range(indptr[group], indptr[group + 1]):
                total += exp(values[order[i]] - most)
            sums[group] = most + log(total)
    return sums


def joint_probabilities(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, row_sums: np.ndarray, column_sums: np.ndarray,
    *, n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """√(p_row·p_column) of every pair."""
    return _joint_probabilities(indptr, columns, values, row_sums, column_sums)


@kernel
def _joint_probabilities(indptr, columns, values, row_sums, column_sums):  # type: ignore[no-untyped-def]
    probs = np.empty(len(columns))
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            twice = (values[i] - row_sums[row]) + (values[i] - column_sums[columns[i]])
            probs[i] = exp(min(0.5 * twice, 0.0))
    return probs


def largest(indptr: np.ndarray, order: np.ndarray | None, values: np.ndarray, *, n_threads: int = 1) -> np.ndarray:
    """The largest value of every group."""
    return _largest(indptr, _ordered(order, len(values)), values)


@kernel
def _largest(indptr, order, values):  # type: ignore[no-untyped-def]
    most = np.full(len(indptr) - 1, -inf)
    for group in range(len(most)):
        for i in range(indptr[group], indptr[group + 1]):
            most[group] = max(most[group], values[order[i]])
    return most


def mutual_best(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, largest_of_columns: np.ndarray, *, n_threads: int = 1
) -> np.ndarray:
    """Which pairs have the largest value of their row, and that of their column."""
    return _mutual_best(indptr, columns, values, largest_of_columns)


@kernel
def _mutual_best(indptr, columns, values, largest_of_columns):  # type: ignore[no-untyped-def]
    is_best = np.zeros(len(columns), dtype=np.bool_)
    for row in range(len(indptr) - 1):
        row_best = -inf
        for i in range(indptr[row], indptr[row + 1]):
            row_best = max(row_best, values[i])
        for i in range(indptr[row], indptr[row + 1]):
            is_best[i] = values[i] == row_best and values[i] == largest_of_columns[columns[i]]
    return is_best


def scale_rows(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, tails: np.ndarray, column_factors: np.ndarray,
    *, n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The factors of the rows, and what their pairs then add to the columns."""
    return _scale_rows(indptr, columns, values, tails, column_factors)


@kernel
def _scale_rows(indptr, columns, values, tails, column_factors):  # type: ignore[no-untyped-def]
    a, sums = np.empty(len(tails)), np.zeros(len(column_factors))
    for row in range(len(indptr) - 1):
        total = tails[row]
        for i in range(indptr[row], indptr[row + 1]):
            total += max(values[i], LEAST_VALUE) * column_factors[columns[i]]
        a[row] = 1.0 / total if total > 0.0 else 1.0
        for i in range(indptr[row], indptr[row + 1]):
            sums[columns[i]] += max(values[i], LEAST_VALUE) * a[row]
    return a, sums


def scaled(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, row_factors: np.ndarray, column_factors: np.ndarray,
    *, n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """The values times the factors of their rows and columns."""
    return _scaled(indptr, columns, values, row_factors, column_factors)


@kernel
def _scaled(indptr, columns, values, a, b):  # type: ignore[no-untyped-def]
    out = np.empty(len(columns))
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            out[i] = min(max(max(values[i], LEAST_VALUE) * a[row] * b[columns[i]], LEAST_VALUE), 1.0)
    return out
