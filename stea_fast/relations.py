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
    order = _concatenated_runs(starts.ravel(), lengths.ravel())
    inverted = np.where(r2 < num_target_relations, r2 + num_target_relations, r2 - num_target_relations)
    indptr = np.concatenate([runs[::2], runs[2::2] + len(r2)])
    columns = np.concatenate([r2, inverted[order]])
    return csr_array((np.concatenate([probs, probs[order]]), columns, indptr), shape=(2 * num_relations, width))


def _concatenated_runs(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """start, start + 1, …, for one run after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
