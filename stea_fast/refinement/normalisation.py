"""How the scores of each direction become probabilities: the choice of β, and checks of what users give instead."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast.refinement.selection import mutual_best
from stea_fast.refinement.temperature import beta_for_confidence, fit_beta, softmax

logger = logging.getLogger("stea_fast")


def choose_betas(
    rankings: Sequence[tuple[np.ndarray, np.ndarray]], seeds: np.ndarray, holdout: np.ndarray, beta: float | None
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
        _choose_beta(*ranking, seeds[:, ::step], holdout[:, ::step], mutual_pairs)
        for ranking, step in zip(rankings, (1, -1), strict=False)
    )


def _mutual_count(rankings: Sequence[tuple[np.ndarray, np.ndarray]], seeds: np.ndarray) -> int | None:
    """Unlabelled mutual-nearest pairs; None if there is only one direction."""
    if len(rankings) < 2:
        return None
    pairs, _ = mutual_best(*rankings)
    return int((~np.isin(pairs[:, 0], seeds[:, 0])).sum())


def _choose_beta(
    indices: np.ndarray, scores: np.ndarray, seeds: np.ndarray, holdout: np.ndarray, mutual_pairs: int | None
) -> float:
    if len(holdout):
        rows, targets = holdout.T
        found = indices[rows] == targets[:, None]
        usable = found.any(axis=1)
        if usable.any():
            return fit_beta([(scores[rows[usable]], found[usable].argmax(axis=1))])
        logger.warning("no held-out link is among its candidates; beta is chosen without them")
    free = np.ones(len(indices), dtype=bool)
    free[seeds[:, 0]] = False
    return beta_for_confidence(scores[free], share_taken_as_right(mutual_pairs, int(free.sum()), scores.shape[1]))


def share_taken_as_right(mutual_pairs: int | None, free_rows: int, k: int) -> float:
    """The share of unlabelled rows whose best candidate is taken to be right: those that are mutual."""
    share = 0.5 if mutual_pairs is None else mutual_pairs / max(free_rows, 1)
    # No beta gives less than 1/k: below twice that the probabilities would ignore the encoder.
    return min(max(share, 2.0 / k), 0.95)


def checked_partition(
    log_partition: tuple[Any, Any] | None, forward: bool, scores: np.ndarray, beta: float
) -> np.ndarray | None:
    """float64 [n]: the partition sums of one direction, checked against its scores; None where there are none."""
    if log_partition is None:
        return None
    try:
        values = to_numpy(log_partition[0 if forward else 1], "log_partition")
    except (TypeError, IndexError):
        raise TypeError("log_partition must be a pair of arrays, one per direction") from None
    if values.dtype.kind not in "fiu" or values.shape != (len(scores),) or not np.isfinite(values).all():
        raise ValueError(
            f"log_partition must hold {len(scores)} finite numbers for the {'forward' if forward else 'backward'} "
            f"direction, got shape {values.shape}, dtype {values.dtype}"
        )
    values = values.astype(np.float64)
    if softmax(scores, beta, values).sum(axis=1).max() > 1.01:  # 1, but for rounding
        raise ValueError("log_partition is less than the candidates alone give: other scores or another beta?")
    return values


def given_probabilities(scores: np.ndarray) -> np.ndarray:
    """float64 [n, k]: scores that are probabilities already, checked."""
    probs = np.where(np.isneginf(scores), 0.0, scores.astype(np.float64))
    if probs.min() < 0 or probs.max() > 1:
        raise ValueError(f"normalisation='none' needs probabilities in [0, 1], got {probs.min()} to {probs.max()}")
    most = probs.sum(axis=1).max()
    if most > 1 + 1e-3:
        raise ValueError(f"normalisation='none' needs rows that sum to at most 1, got a row with sum {most:.4f}")
    return probs
