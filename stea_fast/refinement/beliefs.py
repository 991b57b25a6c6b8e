"""From candidate probabilities to beliefs w(n, n'): what a neighbour is taken to be."""

from __future__ import annotations

import numpy as np

from stea_fast.types import Beliefs

KINDS = ("soft", "argmax", "mutual")


def soft(indices: np.ndarray, probs: np.ndarray) -> Beliefs:
    """Every candidate with its probability."""
    return _pack((indices >= 0) & (probs > 0), indices, probs)


def argmax(indices: np.ndarray, probs: np.ndarray) -> Beliefs:
    """The most probable candidate of every row, with weight 1 (the paper's indicator)."""
    chosen = _best(indices, probs)
    return _pack(chosen, indices, np.ones_like(probs))


def mutual(forward: tuple[np.ndarray, np.ndarray], backward: tuple[np.ndarray, np.ndarray]) -> tuple[Beliefs, Beliefs]:
    """Pairs that are each other's most probable candidate, with weight √(q(e → e')·q(e' → e)), seen from both sides."""
    best1, prob1 = _best_of(*forward)
    best2, prob2 = _best_of(*backward)
    sources = np.flatnonzero((best1 >= 0) & (best2[best1] == np.arange(len(best1))))
    targets = best1[sources]
    weights = np.sqrt(prob1[sources] * prob2[targets])
    return (
        from_pairs(sources, targets, weights, len(best1)),
        from_pairs(targets, sources, weights, len(best2)),
    )


def from_pairs(rows: np.ndarray, targets: np.ndarray, weights: np.ndarray, num_rows: int) -> Beliefs:
    """Beliefs of (row, target, weight) triples."""
    order = np.argsort(rows, kind="stable")
    indptr = np.zeros(num_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=num_rows), out=indptr[1:])
    return Beliefs(indptr, targets[order].astype(np.int32), weights[order].astype(np.float32))


def transpose(beliefs: Beliefs, num_targets: int) -> Beliefs:
    """The same weights seen from the other side."""
    rows = np.repeat(np.arange(len(beliefs.indptr) - 1), np.diff(beliefs.indptr))
    return from_pairs(beliefs.targets, rows, beliefs.weights, num_targets)


def _pack(chosen: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> Beliefs:
    indptr = np.zeros(len(indices) + 1, dtype=np.int64)
    np.cumsum(chosen.sum(axis=1), out=indptr[1:])
    return Beliefs(indptr, indices[chosen].astype(np.int32), weights[chosen].astype(np.float32))


def _best(indices: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """bool [n, k]: marks the first of the most probable candidates of every row that has one."""
    masked = np.where(indices >= 0, probs, -1.0)
    chosen = np.zeros(indices.shape, dtype=bool)
    rows = np.flatnonzero(masked.max(axis=1, initial=-1.0) > 0)
    chosen[rows, masked[rows].argmax(axis=1)] = True
    return chosen


def _best_of(indices: np.ndarray, probs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Target (-1 for none) and probability of every row's best candidate."""
    chosen = _best(indices, probs)
    return np.where(chosen, indices, -1).max(axis=1, initial=-1), np.where(chosen, probs, 0.0).sum(axis=1)
