"""What shards of rows say of columns, put together in the order of the shards: so no worker can change a bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

UNKNOWN_TAIL = 0.1  # share of the encoder's mass outside the set, for balancing, where no partition sum is known


class ColumnPairs(NamedTuple):
    """Some pairs of every column, those of a column best first.

    Attributes:
        rows, columns: int32 [m].
        values: float64 [m], what they are ranked by.
        others: further arrays of m numbers, as there may be.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    others: tuple[np.ndarray, ...] = ()


def log_sum(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The logarithm of the sum of what these are the logarithms of; -inf where all are."""
    if len(parts) == 1:
        return parts[0]
    most = np.maximum.reduce(parts)
    shift = np.where(np.isfinite(most), most, 0.0)
    total = np.zeros_like(shift)
    for part in parts:
        total += np.exp(part - shift)
    with np.errstate(divide="ignore"):
        return shift + np.log(total)


def factors(parts: Sequence[np.ndarray], tails: np.ndarray) -> np.ndarray:
    """What columns with these sums are to be multiplied by, to add up to one with their tails."""
    total = tails.copy()
    for part in parts:
        total += part
    return 1.0 / np.where(total > 0, total, 1.0)


def wholes_and_tails(
    whole: np.ndarray, listed: np.ndarray, log_all: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Of rows or columns: the logarithm of everything, tail included, and the share of it that the tail has.

    Args:
        whole: log Σ exp(T) of the pairs.
        listed: log Σ exp(β·s) of the same pairs.
        log_all: log Σ exp(β·s) of all pairs there could be; None where it is not known.
    """
    if log_all is None:
        log_tail = np.log(UNKNOWN_TAIL) + listed
    else:
        with np.errstate(divide="ignore"):
            log_tail = log_all + np.log(1.0 - np.exp(np.minimum(listed - log_all, 0.0)))
        whole = np.logaddexp(whole, log_tail)
    empty = np.full_like(whole, -np.inf)
    return whole, np.exp(np.subtract(log_tail, whole, where=np.isfinite(whole), out=empty))


def best_pairs(parts: Sequence[ColumnPairs], k: int, num_columns: int, kernels: Any) -> tuple[np.ndarray, ColumnPairs]:
    """The k best of what every shard has of a column; of equal ones those of the earlier rows.

    Returns int64 [num_columns + 1], where the pairs of a column begin, and the pairs.
    """
    rows, columns, values = (np.concatenate([part[i] for part in parts]) for i in range(3))
    others = tuple(np.concatenate(arrays) for arrays in zip(*(part.others for part in parts), strict=True))
    begin_of_all = np.array([0, len(columns)], dtype=np.int64)
    groups = kernels.transpose(begin_of_all, columns, num_columns)
    indptr, best = kernels.best(*groups, values, k=k, least=-np.inf)
    return indptr, ColumnPairs(rows[best], columns[best], values[best], tuple(other[best] for other in others))
