"""Probabilities that can be trusted: a rising curve fitted to seeds that took no part in a run.

On its own seeds a method is always right. So it runs again without some of them, and the curve is fitted to how often
its best candidates for these are right: isotonic regression over bins of held-out links, with straight lines between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy
from stea_fast.data.pair import Pair
from stea_fast.evaluation.metrics import ReliabilityCurve, reliability
from stea_fast.types import HasRankings

FEWEST_HELD_OUT = 20  # held-out links; with fewer the curve would say more about chance than about the method
_PER_BIN, _MOST_BINS = 10, 20
_RISE = 1e-9  # of a flat piece of the curve, so that it can be inverted
_BEYOND = 2.0  # a probability that no link has


@dataclass(frozen=True, eq=False)
class ProbabilityCalibrator:
    """A rising curve from the method's probability to the share of links of that probability that are right.

    Called with probabilities it calibrates them. `align` fits one; without arguments it changes nothing.

    Attributes:
        curve: The corners of the curve, float64 [2, m]: the method's probabilities, and what they are calibrated to;
            both rise.
        num_links: The number of held-out seeds that it was fitted to.
        before: The reliability of the method's own probabilities on them; None where there are none.
        after: The reliability of the calibrated ones, each by a curve fitted to the other half of the links, or None.
        note: One sentence for the user: whether probabilities are calibrated, on what, and how well.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> calibrator = sf.ProbabilityCalibrator(np.array([[0.0, 0.5, 1.0], [0.0, 0.8, 1.0]]))
        >>> calibrator([0.25, 0.5]).tolist(), calibrator.inverse(0.8)
        ([0.4, 0.8], 0.5)
    """

    curve: np.ndarray = field(default_factory=lambda: np.array([[0.0, 1.0], [0.0, 1.0]]))
    num_links: int = 0
    before: ReliabilityCurve | None = None
    after: ReliabilityCurve | None = None
    note: str = "not calibrated"

    def __call__(self, probs: npt.ArrayLike) -> np.ndarray:
        """Calibrate probabilities of the method.

        Args:
            probs: Probabilities in [0, 1], an array of any shape or a number.

        Returns:
            The calibrated probabilities, float64 in the same shape.
        """
        return np.interp(np.asarray(probs, dtype=np.float64), *self.curve)

    def inverse(self, prob: float) -> float:
        """Find the least probability of the method that is calibrated to a given one or more.

        Args:
            prob: The calibrated probability.

        Returns:
            The method's probability; a number above 1 where none reaches `prob`.
        """
        own, calibrated = self.curve
        return _BEYOND if prob > calibrated[-1] else float(np.interp(prob, calibrated, own))


def cross_fit(
    pair: Pair, run: Callable[[Pair], HasRankings], *, folds: int = 1, share: float = 0.2, seed: int = 0
) -> ProbabilityCalibrator:
    """Calibrate a method on seeds that it did not see.

    Args:
        pair: graphs and seeds; nothing else of it is read.
        run: the method; its result has a `.forward` ranking with probabilities.
        folds: 1 runs once, without `share` of the seeds; more runs that often, each time without another part.
        share: of the seeds to hold out in a single run; more where this would be too few, but at most half.
        seed: which seeds.
    """
    folds = validate.count(folds, "folds", minimum=1)
    num_seeds = len(pair.train)
    num_held_out = num_seeds if folds > 1 else max(int(share * num_seeds), min(FEWEST_HELD_OUT, num_seeds // 2))
    if num_held_out < FEWEST_HELD_OUT:
        return ProbabilityCalibrator(
            note=f"not calibrated: {num_held_out} held-out seeds are too few, {FEWEST_HELD_OUT} are needed"
        )
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


def _best_of(result: HasRankings, links: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probability of each source's best candidate, and whether it is the link's target."""
    indices = to_numpy(result.forward.indices, "indices")[links[:, 0]]
    scores = to_numpy(result.forward.scores, "scores")[links[:, 0]].astype(np.float64)
    scores = np.clip(np.where(indices >= 0, scores, 0.0), 0.0, 1.0)
    best = scores.argmax(axis=1)
    rows = np.arange(len(links))
    return scores[rows, best], indices[rows, best] == links[:, 1]


def fit(probs: np.ndarray, right: np.ndarray, *, seed: int = 0) -> ProbabilityCalibrator:
    """The curve from probabilities [n] to the share of what is right, bool [n].

    It is used only where it lowers the calibration error of links that it was not fitted to.
    """
    after = np.empty(len(probs))
    halves = np.array_split(np.random.default_rng(seed).permutation(len(probs)), 2)
    for one, other in (halves, halves[::-1]):
        after[one] = np.interp(probs[one], *_fit_curve(probs[other], right[other]))
    before, calibrated = reliability(probs, right), reliability(after, right)
    seeds = f"{len(probs):,} held-out seeds"
    if calibrated.error >= before.error:
        note = f"the method's own probabilities: on {seeds} their calibration error is {before.error:.3f}"
        note += f", and with a fitted curve {calibrated.error:.3f}"
        return ProbabilityCalibrator(num_links=len(probs), before=before, after=before, note=note)
    note = f"calibrated on {seeds}: expected calibration error {before.error:.3f} before, {calibrated.error:.3f} after"
    return ProbabilityCalibrator(_fit_curve(probs, right), len(probs), before, calibrated, note)


def _fit_curve(probs: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Corners [2, m] of the curve: bins of about as many links each, joined until their shares rise.

    Each bin counts one link more, which is right as often as the method claims: so few links change little.
    """
    order = np.argsort(probs, kind="stable")
    p, correct = probs[order], right[order].astype(np.float64)
    bins = min(_MOST_BINS, max(1, len(p) // _PER_BIN))
    starts = np.unique(np.searchsorted(p, p[np.arange(bins) * len(p) // bins]))  # equal ones stay together
    counts = np.diff(np.append(starts, len(p)))
    claimed = np.add.reduceat(p, starts) / counts
    shares = (np.add.reduceat(correct, starts) + claimed) / (counts + 1)
    claimed, shares = _pooled(claimed, shares, counts)
    if claimed[0] > 0:  # less than any held-out link had is worth less: such are entities without counterpart
        claimed, shares = np.append(0.0, claimed), np.append(0.0, shares)
    if claimed[-1] < 1:
        claimed, shares = np.append(claimed, 1.0), np.append(shares, shares[-1])
    return np.stack([claimed, np.minimum(shares, 1.0 - _RISE) + _RISE * claimed])


def _pooled(xs: np.ndarray, ys: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbouring points are replaced by their mean until ys rise (pool adjacent violators)."""
    blocks: list[tuple[float, float, float]] = []
    for block in zip(xs.tolist(), ys.tolist(), weights.tolist(), strict=True):
        x, y, weight = block
        while blocks and blocks[-1][1] >= y:
            before_x, before_y, before = blocks.pop()
            total = before + weight
            x, y = (before * before_x + weight * x) / total, (before * before_y + weight * y) / total
            weight = total
        blocks.append((x, y, weight))
    return np.array([x for x, _, _ in blocks]), np.array([y for _, y, _ in blocks])
