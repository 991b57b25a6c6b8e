"""Probabilities that can be trusted: a monotone map fitted to seeds that took no part in a run.

On its own seeds a method is always right. So it runs again without some of them, and the map is fitted to how often
its best candidates for these are right: calibrated = σ(slope·logit(p) + offset), two numbers that few links can fix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stea_fast import _validate
from stea_fast._arrays import to_numpy
from stea_fast.evaluation import Calibration, reliability
from stea_fast.types import Pair

FEWEST = 20  # held-out links; with fewer the map would say more about chance than about the method
_EDGE = 1e-6  # probabilities closer to 0 or 1 are not told apart
_FLATTEST = 1e-3


@dataclass(frozen=True, eq=False)
class Confidence:
    """A map from the method's probability to the share of right links among such.

    Attributes:
        slope, offset: of the map; 1 and 0 where the method's own probabilities are kept.
        num_links: held-out seeds that it was fitted to.
        before: reliability of the method's own probabilities on them; None where there are none.
        after: the same for calibrated ones, each by a map fitted to the other half of the links.
        note: one sentence for the user.
    """

    slope: float = 1.0
    offset: float = 0.0
    num_links: int = 0
    before: Calibration | None = None
    after: Calibration | None = None
    note: str = "not calibrated"

    def __call__(self, probs: Any) -> np.ndarray:
        """float64: calibrated probabilities."""
        if self.num_links == 0:
            return np.asarray(probs, dtype=np.float64)
        return _sigmoid(self.slope * _logit(probs) + self.offset)

    def inverse(self, prob: float) -> float:
        """The method's probability that is calibrated to `prob`."""
        if self.num_links == 0:
            return prob
        return float(_sigmoid((_logit(np.array([prob])) - self.offset) / self.slope)[0])


def cross_fit(
    pair: Pair, run: Callable[[Pair], Any], *, folds: int = 1, share: float = 0.2, seed: int = 0
) -> Confidence:
    """Calibrate a method on seeds that it did not see.

    Args:
        pair: graphs and seeds; nothing else of it is read.
        run: the method; its result has a `.forward` ranking with probabilities.
        folds: 1 runs once, without `share` of the seeds; more runs that often, each time without another part.
        share: of the seeds to hold out in a single run; more where this would be too few, but at most half.
        seed: which seeds.
    """
    folds = _validate.count(folds, "folds", minimum=1)
    num_seeds = len(pair.train)
    num_held_out = num_seeds if folds > 1 else max(int(share * num_seeds), min(FEWEST, num_seeds // 2))
    if num_held_out < FEWEST:
        return Confidence(note=f"not calibrated: {num_held_out} held-out seeds are too few, {FEWEST} are needed")
    probs, right = [], []
    for held_out, rest in _parts(pair.train, folds, num_held_out, seed):
        p, correct = _best_of(run(replace(pair, train=rest)), held_out)
        probs.append(p)
        right.append(correct)
    return fit(np.concatenate(probs), np.concatenate(right), seed=seed)


def _parts(seeds: np.ndarray, folds: int, held_out: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Seeds to hold out, and the others, both in their old order."""
    order = np.random.default_rng(seed).permutation(len(seeds))
    for part in np.array_split(order, folds) if folds > 1 else [order[:held_out]]:
        chosen = np.zeros(len(seeds), dtype=bool)
        chosen[part] = True
        yield seeds[chosen], seeds[~chosen]


def _best_of(result: Any, links: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probability of each source's best candidate, and whether it is the link's target."""
    indices = to_numpy(result.forward.indices, "indices")[links[:, 0]]
    scores = to_numpy(result.forward.scores, "scores")[links[:, 0]].astype(np.float64)
    scores = np.clip(np.where(indices >= 0, scores, 0.0), 0.0, 1.0)
    best = scores.argmax(axis=1)
    rows = np.arange(len(links))
    return scores[rows, best], indices[rows, best] == links[:, 1]


def fit(probs: np.ndarray, right: np.ndarray, *, seed: int = 0) -> Confidence:
    """The map that makes what is right, bool [n], most likely given probabilities [n].

    It is used only where it lowers the calibration error of links that it was not fitted to.
    """
    slope, offset = _fit_map(probs, right)
    after = np.empty(len(probs))
    halves = np.array_split(np.random.default_rng(seed).permutation(len(probs)), 2)
    for one, other in (halves, halves[::-1]):
        a, b = _fit_map(probs[other], right[other])
        after[one] = _sigmoid(a * _logit(probs[one]) + b)
    before, calibrated = reliability(probs, right), reliability(after, right)
    seeds = f"{len(probs):,} held-out seeds"
    if calibrated.error >= before.error:
        note = f"the method's own probabilities: on {seeds} their calibration error is {before.error:.3f}"
        return Confidence(1.0, 0.0, len(probs), before, before, f"{note}, and a fitted map has {calibrated.error:.3f}")
    note = f"calibrated on {seeds}: expected calibration error {before.error:.3f} before, {calibrated.error:.3f} after"
    return Confidence(slope, offset, len(probs), before, calibrated, note)


def _fit_map(probs: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Slope and offset by Newton's method on the logistic loss.

    The targets are Platt's: a little inside (0, 1), as if one link more of each kind had been seen, so that the
    fit is finite where all links, or none, are right.
    """
    positives = int(right.sum())
    targets = np.where(right, (positives + 1) / (positives + 2), 1 / (len(right) - positives + 2))
    features = np.stack([_logit(probs), np.ones(len(probs))], axis=1)
    weights = np.array([1.0, 0.0])
    for _ in range(50):
        predicted = _sigmoid(features @ weights)
        gradient = features.T @ (predicted - targets) + 1e-3 * (weights - [1.0, 0.0])
        curvature = (features * (predicted * (1 - predicted))[:, None]).T @ features + 1e-3 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        weights -= step / max(1.0, np.abs(step).max())
        if np.abs(step).max() < 1e-8:
            break
    if weights[0] < _FLATTEST:  # a map that falls would turn the ranking round; nearly all links then get their mean
        return _FLATTEST, float(_logit(targets.mean()[None])[0])
    return float(weights[0]), float(weights[1])


def _logit(probs: Any) -> np.ndarray:
    inside = np.clip(np.asarray(probs, dtype=np.float64), _EDGE, 1 - _EDGE)
    return np.log(inside) - np.log1p(-inside)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-np.clip(values, -500.0, 500.0)))
