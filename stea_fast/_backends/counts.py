"""Expected statement counts: the result of the `relation_counts` kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from stea_fast._util.sparse import concatenated_runs, run_starts
from stea_fast.data.graph import KG

# Ten times what real pairs of graphs have (ContEA: 114,798). Without an end, two entities with R relations between them
# would cost memory by the square of R.
MOST_PAIRS = 1 << 20


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
        """Without the pairs whose count rounds to nothing, and at most `MOST_PAIRS`: those that count most."""
        kept = np.flatnonzero(num > 0)
        if len(kept) > MOST_PAIRS:
            kept = np.sort(kept[np.argsort(-num[kept], kind="stable")[:MOST_PAIRS]])
        if len(kept) < len(num):
            keys, num = keys[kept], num[kept]
        return cls(keys, num, den, bits)


def scale_bits(source: KG) -> int:
    """The finest unit in which no sum over the graph's statements can overflow."""
    return 61 - int(source.num_triples).bit_length()


def merge(parts: Iterable[RelationCounts]) -> RelationCounts:
    """Add up the counts of disjoint row ranges."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    keys, num = sum_by_key(np.concatenate([p.keys for p in parts]), np.concatenate([p.num for p in parts]))
    return RelationCounts(keys, num, np.sum([p.den for p in parts], axis=0), parts[0].scale_bits)


def sum_by_key(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys in increasing order, and the exact integer sum of the values of each."""
    if keys.size == 0:
        return keys, values
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.flatnonzero(run_starts(keys))
    return keys[first], np.add.reduceat(values, first)


def containment(counts: RelationCounts, num_target_relations: int, smoothing: float, prior: float) -> csr_array:
    """[2R, 2R'] float32: the smoothed probability of every observed pair, completed by the inverses."""
    num_relations, width = len(counts.den), 2 * num_target_relations
    # Each row's pairs with r', then those with r'⁻: two runs of the keys, which are in increasing order.
    runs = np.searchsorted(counts.keys, np.arange(2 * num_relations + 1) * num_target_relations)
    row_lengths = np.diff(runs[::2])
    r2 = (counts.keys - np.repeat(np.arange(num_relations) * width, row_lengths)).astype(np.int32)
    scale = 2.0**-counts.scale_bits
    denominator = np.maximum(counts.den * scale + smoothing, 1e-300)
    ratio = counts.num * scale
    ratio += smoothing * prior
    ratio /= np.repeat(denominator, row_lengths)
    probs = np.minimum(ratio, 1.0, out=ratio).astype(np.float32)
    # r ⊆ r' says the same as r⁻ ⊆ r'⁻: the second half of the matrix repeats the first with inverted columns,
    # which in every row exchange the places of the two runs.
    starts, lengths = runs[:-1].reshape(-1, 2)[:, ::-1], np.diff(runs).reshape(-1, 2)[:, ::-1]
    order = concatenated_runs(starts.ravel(), lengths.ravel())
    inverted = np.where(r2 < num_target_relations, r2 + num_target_relations, r2 - num_target_relations)
    indptr = np.concatenate([runs[::2], runs[2::2] + len(r2)])
    columns = np.concatenate([r2, inverted[order]])
    return csr_array((np.concatenate([probs, probs[order]]), columns, indptr), shape=(2 * num_relations, width))
