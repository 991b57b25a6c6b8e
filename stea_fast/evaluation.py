"""Quality of rankings and of links. The only module that reads a test link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stea_fast import _validate
from stea_fast._arrays import to_numpy


@dataclass(frozen=True)
class Metrics:
    """Ranking quality over the test links, and quality of the links that were output.

    Ranks are pessimistic: a wrong target with the same score counts as ranked before the true one. A true
    target that is not among the candidates has no rank: it counts as a miss at every k and 0 in the MRR.
    `precision`, `recall` and `f1` are NaN where nothing was output (candidates have no `pairs`).
    """

    hit1: float
    hit10: float
    mrr: float
    precision: float
    recall: float
    f1: float
    pool: str
    num_links: int
    num_pairs: int

    def __str__(self) -> str:
        text = f"Hit@1 {self.hit1:.3f}  Hit@10 {self.hit10:.3f}  MRR {self.mrr:.3f}"
        if not np.isnan(self.f1):
            text += f"  precision {self.precision:.3f}  recall {self.recall:.3f}  F1 {self.f1:.3f}"
        return text


def evaluate(result: Any, test: Any, pool: str = "test", *, direction: str = "forward") -> Metrics:
    """Compare candidates or a refinement with test links.

    Args:
        result: anything with `.forward` (and `.backward`) rankings; `.pairs` are judged too where there are any.
        test: (n, 2) true (source, target) pairs that took no part in making the result.
        pool: "test" ranks the true target among the targets of the test links only (closed, as papers do),
            "all" among all targets.
        direction: "forward" ranks targets for sources, "backward" sources for targets.
    """
    _validate.choice(pool, "pool", ("test", "all"))
    _validate.choice(direction, "direction", ("forward", "backward"))
    links = _validate.columns(test, "test", 2)
    if len(links) == 0:
        raise ValueError("test is empty: there is nothing to evaluate against")
    if not hasattr(result, direction):
        raise TypeError(f"result must be candidates or a refinement with a .{direction}, got {type(result).__name__}")
    ranking = getattr(result, direction)
    if ranking is None:
        raise ValueError(f"the result has no {direction} ranking")
    for column, side in enumerate(("forward", "backward")):
        other = getattr(result, side, None)
        limit = _validate.MAX_ID if other is None else len(other.indices)
        _validate.in_range(links[:, column], f"test[:, {column}]", limit, f"rows in the {side} ranking")
    oriented = links if direction == "forward" else links[:, ::-1]
    ranks = pessimistic_ranks(ranking, oriented, pool)
    precision, recall, f1, num_pairs = _judge_pairs(getattr(result, "pairs", None), links)
    return Metrics(
        hit1=float((ranks <= 1).mean()),
        hit10=float((ranks <= 10).mean()),
        mrr=float((1.0 / ranks).mean()),
        precision=precision,
        recall=recall,
        f1=f1,
        pool=pool,
        num_links=len(links),
        num_pairs=num_pairs,
    )


def pessimistic_ranks(ranking: Any, links: np.ndarray, pool: str) -> np.ndarray:
    """float64 [n]: rank of every link's target in its source's row, inf where it is missing."""
    indices = _validate.integers(ranking.indices, "indices")
    scores = to_numpy(ranking.scores, "scores")
    if indices.ndim != 2 or scores.shape != indices.shape:
        raise ValueError(f"indices and scores must both have shape [n, k], got {indices.shape} and {scores.shape}")
    sources, targets = links.T
    rows, values = indices[sources], scores[sources].astype(np.float64)
    is_true = rows == targets[:, None]
    competes = rows >= 0
    if not np.isfinite(values[competes]).all():
        raise ValueError("scores must be finite where there is a candidate")
    if pool == "test":
        competes &= np.isin(rows, targets)
    truth = np.where(is_true, values, -np.inf).max(axis=1, initial=-np.inf)
    ahead = (competes & ~is_true & (values >= truth[:, None])).sum(axis=1)
    return np.where(is_true.any(axis=1), 1.0 + ahead, np.inf)


def _judge_pairs(pairs: Any, links: np.ndarray) -> tuple[float, float, float, int]:
    if pairs is None:
        return float("nan"), float("nan"), float("nan"), 0
    found = set(map(tuple, to_numpy(pairs, "pairs").tolist()))
    correct = len(found & set(map(tuple, links.tolist())))
    precision = correct / len(found) if found else 0.0
    recall = correct / len(links)
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return precision, recall, f1, len(found)
