"""What shards of rows say of columns, put together in the order of the shards: so no worker can change a bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stea_fast._util.array_ops import Array, ops_of

PairsByOwner = list[tuple[Array, Array]]  # for every shard: places of its rows, and columns, which increase

UNKNOWN_TAIL = 0.1  # share of the encoder's mass outside the set, for balancing, where no partition sum is known


class OfColumns(NamedTuple):
    """What a shard says of the columns that it has pairs of.

    Attributes:
        columns: int64 [c], increasing.
        values: float64 [c].
    """

    columns: Array
    values: Array


class ColumnPairs(NamedTuple):
    """Some pairs of every column, those of a column best first.

    Attributes:
        rows, columns: int32 [m].
        values: float64 [m], what they are ranked by.
        others: further arrays of m numbers, as there may be.
    """

    rows: Array
    columns: Array
    values: Array
    others: tuple[Array, ...] = ()


def chained(parts: Sequence[Array]) -> Array:
    """What the shards say, one after the other; that of the only shard as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def by_owner(parts: Sequence[PairsByOwner]) -> PairsByOwner:
    """What all shards propose for each of them, in the order of the shards: so columns increase."""
    return [
        (chained([rows for rows, _ in own]), chained([columns for _, columns in own]))
        for own in zip(*parts, strict=True)
    ]


def largest(parts: Sequence[OfColumns], num_columns: int) -> Array:
    """The largest of what the shards say of every column; -inf where none does."""
    ops = ops_of(parts[0].values)
    most = ops.full(num_columns, -np.inf)
    for columns, values in parts:
        most[columns] = ops.lib.maximum(most[columns], values)
    return most


def log_sum(parts: Sequence[OfColumns], num_columns: int) -> Array:
    """For every column the logarithm of the sum of what these are the logarithms of; -inf where none is."""
    most = largest(parts, num_columns)
    if len(parts) == 1:
        return most
    shift = np.where(np.isfinite(most), most, 0.0)
    total = np.zeros_like(shift)
    for columns, values in parts:
        total[columns] += np.exp(values - shift[columns])
    with np.errstate(divide="ignore"):
        return shift + np.log(total)


def factors(parts: Sequence[Array], sums: Sequence[Array], tails: Array) -> Array:
    """What columns are to be multiplied by, to add up to one with their tails.

    Args:
        parts: the columns that every shard has pairs of.
        sums: what it says that they add up to.
        tails: float64 [columns].
    """
    ops = ops_of(tails)
    total = ops.copy(tails)
    for columns, values in zip(parts, sums, strict=True):
        total[columns] += values
    return 1.0 / ops.where(total > 0, total, 1.0)


def wholes_and_tails(whole: Array, listed: Array, log_all: Array | None) -> tuple[Array, Array]:
    """Of rows or columns: the logarithm of everything, tail included, and the share of it that the tail has.

    Args:
        whole: log Σ exp(T) of the pairs.
        listed: log Σ exp(β·s) of the same pairs.
        log_all: log Σ exp(β·s) of all pairs there could be; None where it is not known.
    """
    ops = ops_of(whole)
    if log_all is None:
        log_tail = np.log(UNKNOWN_TAIL) + listed
    else:
        with np.errstate(divide="ignore"):
            log_tail = log_all + ops.log(1.0 - ops.exp(ops.at_most(listed - log_all, 0.0)))
        whole = ops.log_add(whole, log_tail)
    with np.errstate(invalid="ignore"):  # -inf - -inf, of what is empty
        shares = ops.where(ops.is_finite(whole), log_tail - whole, -np.inf)
    return whole, ops.exp(shares)


def best_pairs(parts: Sequence[ColumnPairs], k: int, num_columns: int, kernels: Any) -> tuple[Array, ColumnPairs]:
    """The k best of what every shard has of a column; of equal ones those of the earlier rows.

    Returns int64 [num_columns + 1], where the pairs of a column begin, and the pairs.
    """
    rows, columns, values = (chained([part[i] for part in parts]) for i in range(3))
    others = tuple(map(chained, zip(*(part.others for part in parts), strict=True)))
    begin_of_all = ops_of(columns).positions(np.array([0, len(columns)], dtype=np.int64))
    groups = kernels.transpose(begin_of_all, columns, num_columns)
    indptr, best = kernels.best(*groups, values, k=k, least=-np.inf)
    return indptr, ColumnPairs(rows[best], columns[best], values[best], tuple(other[best] for other in others))
