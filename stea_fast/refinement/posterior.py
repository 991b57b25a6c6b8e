"""From prior and evidence to the refined probability q* of every candidate."""

from __future__ import annotations

import numpy as np

from stea_fast.refinement.temperature import log_sum_exp
from stea_fast.types import Beliefs


def clamp(indices: np.ndarray, probs: np.ndarray, seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put every seed's target first in its row with probability 1, and give the others 0.

    A target that is not among the candidates takes the place of the last one.
    """
    indices, probs = indices.copy(), probs.copy()
    rows, targets = seeds.T
    found = indices[rows] == targets[:, None]
    position = np.where(found.any(axis=1), found.argmax(axis=1), indices.shape[1] - 1)
    # The candidates before the target's place move back by one.
    column = np.arange(indices.shape[1])
    shifted = np.where((column > 0) & (column <= position[:, None]), column - 1, column)
    moved = np.take_along_axis(indices[rows], shifted, axis=1)
    moved[:, 0] = targets
    indices[rows] = moved
    probs[rows] = 0.0
    probs[rows, 0] = 1.0
    return indices, probs


def product_exponent(
    prior: np.ndarray, evidence: np.ndarray, blanket: np.ndarray | None, evidence_weight: float
) -> np.ndarray:
    """log q + λ·L (+ λ·blanket): the exponent of q* ∝ q·exp(λ·evidence)."""
    total = evidence.astype(np.float64) if blanket is None else evidence.astype(np.float64) + blanket
    with np.errstate(divide="ignore"):
        return np.log(prior) + evidence_weight * total


def compatibility_exponent(evidence: np.ndarray, blanket: np.ndarray | None) -> np.ndarray:
    """g (+ blanket), with g = 1 - exp(-L): the exponent of the paper's q* ∝ exp(g)."""
    compatibility = -np.expm1(-evidence.astype(np.float64))
    return compatibility if blanket is None else compatibility + blanket


def normalise(exponent: np.ndarray, indices: np.ndarray, prior: np.ndarray, seed_rows: np.ndarray) -> np.ndarray:
    """softmax of the exponent over the candidates, scaled by the mass the prior had on them; seeds stay clamped."""
    masked = np.where(indices >= 0, exponent, -np.inf)
    total = log_sum_exp(masked)
    with np.errstate(invalid="ignore"):
        probs = np.exp(masked - total[:, None]) * prior.sum(axis=1, keepdims=True)
    probs = np.where(np.isfinite(total)[:, None], probs, 0.0)
    probs[seed_rows] = prior[seed_rows]
    return np.minimum(probs, 1.0)


def padded_beliefs(beliefs: Beliefs) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Beliefs as candidates: int32 [n, longest] padded with -1, and the place of every belief in it."""
    lengths = np.diff(beliefs.indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.arange(len(rows)) - np.repeat(beliefs.indptr[:-1], lengths)
    padded = np.full((len(lengths), max(int(lengths.max(initial=0)), 1)), -1, dtype=np.int32)
    padded[rows, columns] = beliefs.targets
    return padded, (rows, columns)
