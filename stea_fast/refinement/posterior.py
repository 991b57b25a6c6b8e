"""From prior and evidence to the refined probability q* of every candidate.

All functions take NumPy arrays or tensors of one device, and return the same kind.
"""

from __future__ import annotations

import numpy as np

from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.sparse import padded_rows
from stea_fast.refinement.temperature import log_sum_exp
from stea_fast.types import Beliefs, RefinedRanking


def clamp(indices: Array, probs: Array, seeds: Array) -> tuple[Array, Array]:
    """Put every seed's target first in its row with probability 1, and give the others 0.

    A target that is not among the candidates takes the place of the last one.
    """
    ops = ops_of(indices)
    indices, probs = ops.copy(indices), ops.copy(probs)
    rows, targets = seeds[:, 0], seeds[:, 1]
    k = indices.shape[1]
    found = indices[rows] == targets[:, None]
    position = ops.where(found.any(1), ops.first_largest(found), k - 1)
    # The candidates before the target's place move back by one.
    column = ops.arange(k)
    shifted = ops.where((column > 0) & (column <= position[:, None]), column - 1, column)
    moved = ops.take(indices[rows], shifted)
    moved[:, 0] = targets
    indices[rows] = moved
    probs[rows] = 0.0
    probs[rows, 0] = 1.0
    return indices, probs


def product_exponent(prior: Array, evidence: Array, blanket: Array | None, evidence_weight: float) -> Array:
    """log q + λ·L (+ λ·blanket): the exponent of q* ∝ q·exp(λ·evidence)."""
    ops = ops_of(prior)
    total = ops.double(evidence) if blanket is None else ops.double(evidence) + blanket
    with np.errstate(divide="ignore"):
        return ops.log(prior) + evidence_weight * total


def compatibility_exponent(evidence: Array, blanket: Array | None) -> Array:
    """g (+ blanket), with g = 1 - exp(-L): the exponent of the paper's q* ∝ exp(g)."""
    ops = ops_of(evidence)
    compatibility = -ops.expm1(-ops.double(evidence))
    return compatibility if blanket is None else compatibility + blanket


def normalise(exponent: Array, indices: Array, prior: Array, seed_rows: Array) -> Array:
    """softmax of the exponent over the candidates, scaled by the mass the prior had on them; seeds stay clamped."""
    ops = ops_of(exponent)
    masked = ops.where(indices >= 0, exponent, -np.inf)
    total = log_sum_exp(masked)[:, None]
    with np.errstate(invalid="ignore"):
        probs = ops.exp(masked - total) * prior.sum(1)[:, None]
    probs = ops.where(ops.is_finite(total), probs, 0.0)
    probs[seed_rows] = prior[seed_rows]
    return ops.at_most(probs, 1.0)


def ranked(indices: Array, probs: Array, evidence: Array) -> RefinedRanking:
    """The candidates best first; equal probabilities keep the encoder's order."""
    ops = ops_of(indices)
    order = ops.order(ops.where(indices >= 0, -probs, np.inf))
    indices, probs, evidence = (ops.contiguous(ops.take(part, order)) for part in (indices, probs, evidence))
    return RefinedRanking(indices, ops.single(probs), evidence)


def padded_beliefs(beliefs: Beliefs) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Beliefs as candidates: int32 [n, longest] padded with -1, and the place of every belief in it."""
    return padded_rows(beliefs.indptr, beliefs.targets, -1)
