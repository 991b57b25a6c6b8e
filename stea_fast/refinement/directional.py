"""The two directions of a refinement: candidates checked, calibrated, and with the seeds clamped."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy
from stea_fast.data.graph import KG
from stea_fast.refinement import posterior
from stea_fast.refinement.config import Options
from stea_fast.refinement.selection import mutual_best
from stea_fast.refinement.temperature import beta_for_confidence, fit_beta, minmax, softmax
from stea_fast.types import TopK

logger = logging.getLogger("stea_fast")


@dataclass(eq=False)
class Side:
    """One direction while it is being refined: rows of `source`, candidates in `target`."""

    source: KG
    target: KG
    forward: bool
    indices: np.ndarray  # int32 [n, k]
    prior: np.ndarray  # float64 [n, k], calibrated probabilities with the seeds clamped
    seed_rows: np.ndarray
    beta: float | None
    probs: np.ndarray = field(init=False)
    evidence: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.probs = self.prior

    def best(self) -> np.ndarray:
        """The present best candidate of every row."""
        return np.take_along_axis(self.indices, self.probs.argmax(axis=1)[:, None], axis=1)[:, 0]


def directions(candidates: Any) -> list[tuple[Any, Any]]:
    """(indices, scores) of each direction, as they were given."""
    if hasattr(candidates, "forward"):
        given = [candidates.forward] + ([candidates.backward] if candidates.backward is not None else [])
    else:
        given = [candidates]
    found = []
    for name, ranking in zip(("forward", "backward"), given, strict=False):
        try:
            indices, scores = (ranking.indices, ranking.scores) if hasattr(ranking, "indices") else ranking
        except (TypeError, ValueError):
            raise TypeError(f"{name} candidates must be (indices, scores), got {type(ranking).__name__}") from None
        found.append((indices, scores))
    return found


def rankings(given: list[tuple[Any, Any]], kg1: KG, kg2: KG, k: int | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Checked (indices, scores) of each direction."""
    found = []
    for name, ranking, source, target in zip(("forward", "backward"), given, (kg1, kg2), (kg2, kg1), strict=False):
        ids, values = validate.ranking(*ranking, name, source.num_entities, target.num_entities)
        found.append((np.ascontiguousarray(ids[:, :k]), values[:, :k]))
    return found


def partition_of(candidates: Any) -> tuple[tuple[Any, Any] | None, float | None]:
    """The log-partition sums that came with the candidates of `topk`, and their beta."""
    if isinstance(candidates, TopK) and candidates.log_partition is not None:
        return candidates.log_partition, candidates.beta
    return None, None


def calibrated_sides(
    checked: list[tuple[np.ndarray, np.ndarray]],
    kg1: KG,
    kg2: KG,
    seeds: np.ndarray,
    holdout: np.ndarray,
    log_partition: tuple[Any, Any] | None,
    options: Options,
) -> list[Side]:
    """The directions with calibrated probabilities and seeds clamped; see `refine` for the arguments."""
    if log_partition is not None and (options.calibrate != "softmax" or options.beta is None):
        raise ValueError("log_partition needs calibrate='softmax' and the beta it was computed with")
    sides = []
    mutual_pairs = _mutual_count(checked, seeds)
    for forward, (indices, scores) in zip((True, False), checked, strict=False):
        links = seeds if forward else seeds[:, ::-1]
        held_out = holdout if forward else holdout[:, ::-1]
        beta = None
        if options.calibrate == "softmax":
            beta = options.beta
            if beta is None:
                beta = _choose_beta(indices, scores, links, held_out, mutual_pairs)
            partition = None if log_partition is None else _partition(log_partition, forward, len(indices))
            prior = softmax(scores, beta, partition)
            if partition is not None and prior.sum(axis=1).max() > 1.01:  # 1, but for rounding
                raise ValueError("log_partition is less than the candidates alone give: other scores or another beta?")
        else:
            prior = minmax(scores) if options.calibrate == "minmax" else _given_probabilities(scores)
        indices, prior = posterior.clamp(indices, prior, links)
        source, target = (kg1, kg2) if forward else (kg2, kg1)
        sides.append(Side(source, target, forward, indices, prior, links[:, 0], beta))
    return sides


def _mutual_count(checked: list[tuple[np.ndarray, np.ndarray]], seeds: np.ndarray) -> int | None:
    """Unlabelled mutual-nearest pairs; None if there is only one direction."""
    if len(checked) < 2:
        return None
    pairs, _ = mutual_best(*checked)
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
    return beta_for_confidence(scores[free], confidence(mutual_pairs, int(free.sum()), scores.shape[1]))


def confidence(mutual_pairs: int | None, free_rows: int, k: int) -> float:
    """The share of unlabelled rows whose best candidate is taken to be right: those that are mutual."""
    share = 0.5 if mutual_pairs is None else mutual_pairs / max(free_rows, 1)
    # No beta gives less than 1/k: below twice that the probabilities would ignore the encoder.
    return min(max(share, 2.0 / k), 0.95)


def _partition(log_partition: tuple[Any, Any], forward: bool, num_rows: int) -> np.ndarray:
    try:
        given = log_partition[0 if forward else 1]
    except (TypeError, IndexError):
        raise TypeError("log_partition must be a pair of arrays, one per direction") from None
    values = to_numpy(given, "log_partition")
    if values.dtype.kind not in "fiu" or values.shape != (num_rows,) or not np.isfinite(values).all():
        raise ValueError(
            f"log_partition must hold {num_rows} finite numbers for the {'forward' if forward else 'backward'} "
            f"direction, got shape {values.shape}, dtype {values.dtype}"
        )
    return values.astype(np.float64)


def _given_probabilities(scores: np.ndarray) -> np.ndarray:
    probs = np.where(np.isneginf(scores), 0.0, scores.astype(np.float64))
    if probs.min() < 0 or probs.max() > 1:
        raise ValueError(f"calibrate='none' needs probabilities in [0, 1], got {probs.min()} to {probs.max()}")
    most = probs.sum(axis=1).max()
    if most > 1 + 1e-3:
        raise ValueError(f"calibrate='none' needs rows that sum to at most 1, got a row with sum {most:.4f}")
    return probs
