"""Expected statement counts: the result of the `relation_counts` kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from stea_fast.graph import KG


@dataclass(frozen=True, eq=False)
class RelationCounts:
    """Counts behind P(r ⊆ r'), as integers in units of 2^-scale_bits, so that sums have no order.

    Attributes:
        keys: int64 [m], r * 2R' + r' of the observed pairs, increasing; r < R, r' < 2R'.
        num: int64 [m], above 0
        den: int64 [R]
    """

    keys: np.ndarray
    num: np.ndarray
    den: np.ndarray
    scale_bits: int

    @classmethod
    def observed(cls, keys: np.ndarray, num: np.ndarray, den: np.ndarray, bits: int) -> RelationCounts:
        """Without the pairs whose count rounds to nothing."""
        kept = num > 0
        if not kept.all():
            keys, num = keys[kept], num[kept]
        return cls(keys, num, den, bits)


def scale_bits(source: KG) -> int:
    """The finest unit in which no sum over the graph's statements can overflow."""
    return 61 - int(source.num_triples).bit_length()


def merge(parts: Iterable[RelationCounts]) -> RelationCounts:
    """Add up the counts of disjoint row ranges."""
    parts = list(parts)
    keys, num = sum_by_key(np.concatenate([p.keys for p in parts]), np.concatenate([p.num for p in parts]))
    return RelationCounts(keys, num, np.sum([p.den for p in parts], axis=0), parts[0].scale_bits)


def sum_by_key(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys in increasing order, and the exact integer sum of the values of each."""
    if keys.size == 0:
        return keys, values
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[first], np.add.reduceat(values, first)
