"""The prior of a direction: what the encoder's scores alone say, as probabilities.

All functions take NumPy arrays or tensors of one device, and return the same kind.
"""

from __future__ import annotations

import logging
from typing import Any

from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.arrays import placed
from stea_fast.refinement.selection import mutual_best
from stea_fast.refinement.temperature import beta_for_confidence, likelihood_derivatives, minmax, newton, softmax

logger = logging.getLogger("stea_fast")

ROUNDING = 0.01  # by so much the mass of a row may exceed 1 where the partition sums came in single precision


def mutual_count(rankings: list[tuple[Array, Array]], seeds: Array) -> int | None:
    """Unlabelled mutual-nearest pairs; None if there is only one direction."""
    if len(rankings) < 2:
        return None
    pairs, _ = mutual_best(*rankings)
    return int((~ops_of(pairs).is_in(pairs[:, 0], seeds[:, 0])).sum())


def choose_beta(indices: Array, scores: Array, seeds: Array, holdout: Array, mutual_pairs: int | None) -> float:
    """The inverse temperature of one direction: fitted to held-out links, or by the rule that needs no labels.

    Args:
        indices, scores: [n, k], checked candidates.
        seeds, holdout: int64 [m, 2], (row, candidate).
        mutual_pairs: as `mutual_count` gives it.
    """
    ops = ops_of(indices)
    if len(holdout):
        found = indices[holdout[:, 0]] == holdout[:, 1:]
        usable = found.any(1)
        if bool(usable.any()):
            rows, truth = scores[holdout[usable, 0]], ops.first_largest(found[usable])
            return newton(lambda beta: likelihood_derivatives(rows, truth, beta))
        logger.warning("no held-out link is among its candidates; beta is chosen without them")
    free = ops.all_true(len(indices))
    free[seeds[:, 0]] = False
    return beta_for_confidence(scores[free], confidence(mutual_pairs, int(free.sum()), scores.shape[1]))


def confidence(mutual_pairs: int | None, free_rows: int, k: int) -> float:
    """The share of unlabelled rows whose best candidate is taken to be right: those that are mutual."""
    share = 0.5 if mutual_pairs is None else mutual_pairs / max(free_rows, 1)
    # No beta gives less than 1/k: below twice that the probabilities would ignore the encoder.
    return min(max(share, 2.0 / k), 0.95)


def probabilities(scores: Array, calibrate: str, beta: float | None, log_partition: Array | None = None) -> Array:
    """float64 [n, k]: the candidates' probabilities by the named method; see `refine` for the names.

    Args:
        scores: float32 [n, k], -inf = none.
        beta, log_partition: of "softmax", the inverse temperature and what `checked_partition` gave.
    """
    if calibrate == "minmax":
        return minmax(scores)
    if calibrate == "none":
        return _given_probabilities(scores)
    assert beta is not None
    prior = softmax(scores, beta, log_partition)
    if log_partition is not None and float(prior.sum(1).max()) > 1 + ROUNDING:
        raise ValueError("log_partition is less than the candidates alone give: other scores or another beta?")
    return prior


def checked_partition(log_partition: Any, forward: bool, num_rows: int, device: Any = None) -> Array:
    """float64 [num_rows]: the sums of one direction, as a NumPy array, or on a device as a tensor."""
    try:
        given = log_partition[0 if forward else 1]
    except (TypeError, IndexError):
        raise TypeError("log_partition must be a pair of arrays, one per direction") from None
    values = placed(given, "log_partition", device)
    ops = ops_of(values)
    if not ops.is_number(values) or values.shape != (num_rows,) or not bool(ops.is_finite(values).all()):
        raise ValueError(
            f"log_partition must hold {num_rows} finite numbers for the {'forward' if forward else 'backward'} "
            f"direction, got shape {tuple(values.shape)}, dtype {values.dtype}"
        )
    return ops.double(values)


def _given_probabilities(scores: Array) -> Array:
    ops = ops_of(scores)
    probs = ops.where(ops.is_minus_inf(scores), 0.0, ops.double(scores))
    low, high, most = ops.scalars(probs.min(), probs.max(), probs.sum(1).max())
    if low < 0 or high > 1:
        raise ValueError(f"calibrate='none' needs probabilities in [0, 1], got {low} to {high}")
    if most > 1 + 1e-3:
        raise ValueError(f"calibrate='none' needs rows that sum to at most 1, got a row with sum {most:.4f}")
    return probs
