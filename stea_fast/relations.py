"""Relation alignment from seeds and current beliefs only; no test link is ever read."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from stea_fast import _backends, _validate
from stea_fast._backends.counts import RelationCounts
from stea_fast.graph import KG
from stea_fast.types import Beliefs, RelationAlignment

PRIOR = 0.1  # what PARIS assumes of a pair of relations before anything is known
SMOOTHING = 1.0  # how many statements that assumption is worth


def align_relations(
    kg1: KG,
    kg2: KG,
    beliefs1: Beliefs,
    beliefs2: Beliefs,
    *,
    smoothing: float = SMOOTHING,
    prior: float = PRIOR,
    backend: str = "auto",
    n_threads: int | None = None,
) -> RelationAlignment:
    """P(r ⊆ r') and P(r' ⊆ r) for all observed pairs of relations.

    P(r ⊆ r') = (num(r, r') + smoothing·prior) / (den(r) + smoothing), where num counts the statements of r
    that are also made by r', and den those whose both ends have a counterpart, each as an expectation under
    the beliefs. Pairs never seen together are not stored.

    Args:
        beliefs1: what the entities of kg1 are believed to be in kg2; gives P(r ⊆ r').
        beliefs2: the same from the other side; gives P(r' ⊆ r).
    """
    smoothing = _validate.number(smoothing, "smoothing", minimum=0.0)
    prior = _validate.number(prior, "prior", minimum=0.0, maximum=1.0)
    _check_beliefs(beliefs1, "beliefs1", kg1, kg2)
    _check_beliefs(beliefs2, "beliefs2", kg2, kg1)
    kernels = _backends.resolve(backend)
    threads = _backends.thread_count(n_threads)

    def one_side(source: KG, target: KG, beliefs: Beliefs) -> csr_array:
        counts = kernels.relation_counts(source, target, beliefs, rows=(0, source.num_entities), n_threads=threads)
        return containment(counts, target.num_relations, smoothing, prior)

    return RelationAlignment.trusted(one_side(kg1, kg2, beliefs1), one_side(kg2, kg1, beliefs2))


def _check_beliefs(beliefs: Beliefs, name: str, source: KG, target: KG) -> None:
    """The kernels rely on it: nothing of this may be wrong."""
    for part, dtype in (("indptr", np.int64), ("targets", np.int32), ("weights", np.float32)):
        found = getattr(getattr(beliefs, part, None), "dtype", None)
        if found != dtype:
            raise TypeError(f"{name}.{part} must be an array of {np.dtype(dtype)}, got {found}")
    indptr, targets, weights = beliefs.indptr, beliefs.targets, beliefs.weights
    if indptr.shape != (source.num_entities + 1,) or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(f"{name}.indptr must be {source.num_entities + 1} increasing offsets from 0")
    if targets.shape != (indptr[-1],) or weights.shape != targets.shape:
        raise ValueError(f"{name} must have {indptr[-1]} targets and weights, got {targets.shape} and {weights.shape}")
    _validate.in_range(targets, f"{name}.targets", target.num_entities, "target entities")
    if weights.size and not (weights.min() >= 0 and weights.max() <= 1):
        raise ValueError(f"{name}.weights must lie in [0, 1], got {weights.min()} to {weights.max()}")


def containment(counts: RelationCounts, num_target_relations: int, smoothing: float, prior: float) -> csr_array:
    """[2R, 2R'] float32: the smoothed probability of every observed pair, completed by the inverses."""
    width = 2 * num_target_relations
    r, r2 = np.divmod(counts.keys, width)
    scale = 2.0**-counts.scale_bits
    denominator = np.maximum(counts.den * scale + smoothing, 1e-300)
    probs = np.minimum((counts.num * scale + smoothing * prior) / denominator[r], 1.0).astype(np.float32)
    # r ⊆ r' says the same as r⁻ ⊆ r'⁻: the second half of the matrix repeats the first with inverted columns.
    indptr = np.zeros(2 * len(counts.den) + 1, dtype=np.int64)
    lengths = np.bincount(r, minlength=len(counts.den))
    np.cumsum(np.concatenate([lengths, lengths]), out=indptr[1:])
    inverted = (r2 + num_target_relations) % width
    order = _halves_swapped(r2 < num_target_relations, r, lengths)
    columns = np.concatenate([r2, inverted[order]]).astype(np.int32)
    data = np.concatenate([probs, probs[order]])
    return csr_array((data, columns, indptr), shape=(len(indptr) - 1, width))


def _halves_swapped(is_first_half: np.ndarray, rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The order in which each row's second half of columns comes before its first: what inversion does to it."""
    starts = np.cumsum(lengths) - lengths
    second = ~is_first_half
    second_before = np.cumsum(second) - second  # in the whole array, likewise below
    first_before = np.arange(len(rows)) - second_before
    second_in_row = np.bincount(rows[second], minlength=len(lengths))
    second_starts = np.cumsum(second_in_row) - second_in_row
    place = np.where(
        second,
        starts[rows] + second_before - second_starts[rows],
        starts[rows] + second_in_row[rows] + first_before - (starts - second_starts)[rows],
    )
    order = np.empty(len(rows), dtype=np.int64)
    order[place] = np.arange(len(rows))
    return order
