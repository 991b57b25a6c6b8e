"""From scores to probabilities: what the encoder alone says of each direction's candidates.

All functions take NumPy arrays or tensors of one device, and return the same kind.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.arrays import placed
from stea_fast.refinement.selection import mutual_best
from stea_fast.refinement.temperature import beta_for_confidence, likelihood_derivatives, minmax, newton, softmax

logger = logging.getLogger("stea_fast")

ROUNDING = 0.01  # by which the mass of a row may exceed 1 where the partition sums came in single precision


def choose_betas(
    rankings: Sequence[tuple[Array, Array]], seeds: Array, holdout: Array, beta: float | None
) -> tuple[float, ...]:
    """The inverse temperature of each direction: the one asked for, or else by held-out links or by agreement.

    Args:
        rankings: checked (indices, scores) of each direction, the forward one first.
        seeds: int64 [m, 2], known links.
        holdout: int64 [m, 2], known links that the encoder was not trained on.
        beta: the one asked for; None to choose.
    """
    if beta is not None:
        return (beta,) * len(rankings)
    mutual_pairs = _mutual_count(rankings, seeds)
    return tuple(
        _choose_beta(*ranking, seeds[:, columns], holdout[:, columns], mutual_pairs)
        for ranking, columns in zip(rankings, ([0, 1], [1, 0]), strict=False)
    )


def _mutual_count(rankings: Sequence[tuple[Array, Array]], seeds: Array) -> int | None:
    """Unlabelled mutual-nearest pairs; None if there is only one direction."""
    if len(rankings) < 2:
        return None
    pairs, _ = mutual_best(*rankings)
    return int((~ops_of(pairs).is_in(pairs[:, 0], seeds[:, 0])).sum())


def _choose_beta(indices: Array, scores: Array, seeds: Array, holdout: Array, mutual_pairs: int | None) -> float:
    """The inverse temperature of one direction: fitted to held-out links, or by the rule that needs no labels.

    Args:
        indices, scores: [n, k], checked candidates.
        seeds, holdout: int64 [m, 2], (row, candidate).
        mutual_pairs: as `_mutual_count` gives it.
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
    return beta_for_confidence(scores[free], _share_taken_as_right(mutual_pairs, int(free.sum()), scores.shape[1]))


def _share_taken_as_right(mutual_pairs: int | None, free_rows: int, k: int) -> float:
    """The share of unlabelled rows whose best candidate is taken to be right: those that are mutual."""
    share = 0.5 if mutual_pairs is None else mutual_pairs / max(free_rows, 1)
    # No beta gives less than 1/k: below twice that the probabilities would ignore the encoder.
    return min(max(share, 2.0 / k), 0.95)


def probabilities(scores: Array, normalisation: str, beta: float | None, log_partition: Array | None = None) -> Array:
    """float64 [n, k]: the candidates' probabilities by the normalisation of that name; see `Product`.

    Args:
        scores: float32 [n, k], -inf = none.
        beta, log_partition: for "softmax", the inverse temperature and what `checked_partition` gave.
    """
    if normalisation == "minmax":
        return minmax(scores)
    if normalisation == "none":
        return _given_probabilities(scores)
    assert beta is not None
    return softmax(scores, beta, log_partition)


def checked_partition(
    log_partition: tuple[Any, Any] | None, forward: bool, scores: Array, beta: float | None, device: Any = None
) -> Array | None:
    """float64 [n]: the partition sums of one direction where its scores lie, checked; None where there are none."""
    if log_partition is None or beta is None:
        return None
    try:
        given = log_partition[0 if forward else 1]
    except (TypeError, IndexError):
        raise TypeError("log_partition must be a pair of arrays, one per direction") from None
    values = placed(given, "log_partition", device)
    ops = ops_of(values)
    if not ops.is_number(values) or values.shape != (len(scores),) or not bool(ops.is_finite(values).all()):
        raise ValueError(
            f"log_partition must hold {len(scores)} finite numbers for the {'forward' if forward else 'backward'} "
            f"direction, got shape {tuple(values.shape)}, dtype {values.dtype}"
        )
    sums = ops.double(values)
    if float(softmax(scores, beta, sums).sum(1).max()) > 1 + ROUNDING:
        raise ValueError("log_partition is less than the candidates alone give: other scores or another beta?")
    return sums


def _given_probabilities(scores: Array) -> Array:
    ops = ops_of(scores)
    probs = ops.where(ops.is_minus_inf(scores), 0.0, ops.double(scores))
    low, high, most = ops.scalars(probs.min(), probs.max(), probs.sum(1).max())
    if low < 0 or high > 1:
        raise ValueError(f"normalisation='none' needs probabilities in [0, 1], got {low} to {high}")
    if most > 1 + 1e-3:
        raise ValueError(f"normalisation='none' needs rows that sum to at most 1, got a row with sum {most:.4f}")
    return probs
