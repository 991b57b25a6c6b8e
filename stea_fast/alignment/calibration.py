"""Probabilities that can be trusted: a model of what separates right links from wrong ones, fitted to held-out seeds.

On its own seeds a method is always right. So it runs again without some of them, and the model (`link_model`) is fitted
to whether its best candidates for these are right. Of a part of the held-out seeds the counterpart is taken out of the
target graph: so the model also learns what entities without counterpart look like. Where few seeds are held out, the
model stays close to a prior that was fitted to other pairs of graphs.

Pairs by equal names or values serve as seeds do, but they are no fair sample: they lie side by side, where much is
known, and most other entities lie where little is. So they are hidden with those next to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from stea_fast._util import validate
from stea_fast._util.statistics import NORMAL_95
from stea_fast.alignment.joint_probabilities import joint_probabilities
from stea_fast.alignment.link_features import DescribedLinks, describe_links
from stea_fast.alignment.link_model import LinkModel, Prior, fit, shipped_prior
from stea_fast.clues.types import Clues, beside
from stea_fast.data.graph import KG
from stea_fast.data.pair import Pair
from stea_fast.evaluation.metrics import ReliabilityCurve, reliability
from stea_fast.selftraining.history import SelfTrainingResult

HELD_OUT_SHARE = 0.2  # of the seeds in a single run
ENOUGH_HELD_OUT = 75  # seeds; where a fifth is fewer, up to half are held out: the rest finds nearly as much
ABSENT_SHARE = 0.2  # of the held-out seeds, whose counterpart is taken away
MOST_HELD_OUT = 1_000  # more make the model no better, and the graph poorer
ENOUGH_HIDDEN = 400  # names or values, of which likewise up to half are hidden: they are less alike the rest than seeds
# What a hidden name or value counts beside a held-out seed. Those that are hidden together are alike, and on average
# easier than the rest. Chosen on hidden seeds (bench/NOTES.md).
HIDDEN_WEIGHT = 0.25
THIN_BASIS = 20  # held-out seeds; with fewer the prior decides, and the user must know

Run = Callable[[Pair, Clues | None], SelfTrainingResult]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Known links that were held out, and what a run without them made of their sources.

    Attributes:
        features: float64 [n, features], of each source's best candidate.
        probs: float64 [n], the method's own probability of it.
        right: bool [n], whether it is the counterpart.
        absent: bool [n], whether the counterpart had been taken away.
        weights: float64 [n], what each link counts.
    """

    features: np.ndarray
    probs: np.ndarray
    right: np.ndarray
    absent: np.ndarray
    weights: np.ndarray

    def model(self, prior: Prior, rows: np.ndarray) -> LinkModel:
        """The model that some of the links and the prior agree on."""
        return fit(self.features[rows], self.right[rows], prior, self.absent[rows], self.weights[rows])


@dataclass(frozen=True, eq=False)
class ProbabilityCalibrator:
    """What makes a probability of everything that stands behind a link.

    `align` fits one to held-out seeds.

    Attributes:
        model: The fitted model.
        num_links: The number of held-out seeds that it was fitted to.
        num_absent: The number of those among them whose counterpart had been taken away.
        before: The reliability of the method's own probabilities on the held-out seeds; None where there are none.
        after: The reliability of the calibrated ones, each by a model fitted to the other half of the held-out
            seeds; None where there are none.
        note: One sentence for the user: on what the probabilities rest, and how well.
        unit: What it was fitted to: "held-out seeds", "hidden names" or "hidden names and values", or both.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> sf.align(pair, rounds=1, calibration="none").calibrator.is_thin
        True
    """

    model: LinkModel
    num_links: int = 0
    num_absent: int = 0
    before: ReliabilityCurve | None = None
    after: ReliabilityCurve | None = None
    note: str = ""
    unit: str = "held-out seeds"

    def __call__(self, links: DescribedLinks) -> np.ndarray:
        """Give links the probability that they are right.

        Args:
            links: Candidates and what stands behind them, from `describe_links`.

        Returns:
            The probability that each link is right, float64 [n]; 0 for a source without candidates.
        """
        return np.where(links.targets >= 0, self.model(links.features), 0.0)

    @property
    def is_thin(self) -> bool:
        """Whether few seeds were held out, and the prior decides."""
        return self.num_links < THIN_BASIS

    @property
    def basis(self) -> str:
        """The links that the probabilities rest on, in a few words: "120 held-out seeds", for example."""
        if not self.num_links:
            return "prior only"
        return f"{self.num_links} {self.unit}" + (" and a prior" if self.is_thin else "")

    def precision(self, links: DescribedLinks, chosen: np.ndarray) -> tuple[float, float, float]:
        """Estimate how many of some links are right.

        Args:
            links: Candidates and what stands behind them, from `describe_links`.
            chosen: Which of them, bool [n].

        Returns:
            The expected share of right links, and the two ends of an interval that holds it with 95 %.
        """
        mean, deviation = self.model.mean_and_deviation(links.features[chosen])
        low, high = mean - NORMAL_95 * deviation, mean + NORMAL_95 * deviation
        return mean, max(0.0, low), min(1.0, high)


def by_prior(reason: str, prior: Prior | None = None) -> ProbabilityCalibrator:
    """A calibrator that has seen no link of the present pair."""
    prior = prior or shipped_prior()
    return ProbabilityCalibrator(
        prior.model(), note=f"not calibrated on this pair ({reason}): a prior fitted to {prior.data} gives them"
    )


def cross_fit(
    pair: Pair,
    run: Run,
    *,
    clues: Clues | None = None,
    folds: int = 1,
    seed: int = 0,
    prior: Prior | None = None,
) -> ProbabilityCalibrator:
    """Calibrate a method on links that it did not see: seeds, and pairs whose equal names or values are hidden.

    Args:
        pair: graphs and seeds; nothing else of it is read.
        run: the method, from a pair and clues.
        clues: what names say; None for nothing.
        folds: 1 runs once, without a fifth of the seeds, or of few without up to half; more runs this many times, each
            time without another part.
        seed: which seeds.
        prior: what the model shrinks to; None takes the one that comes with the package.
    """
    folds = validate.count(folds, "folds", minimum=1)
    known, unit = _known_links(pair, clues)
    neighbours = None if clues is None else pair.kg1
    parts = [_held_out_links(pair, clues, run, *part) for part in _parts(known, folds, seed, neighbours)]
    if not parts:
        return by_prior(
            f"{len(known)} {'seeds' if clues is None else 'known links'} are too few to hold any out", prior
        )
    held_out = HeldOut(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    return _fitted(held_out, seed, prior or shipped_prior(), unit)


def _known_links(pair: Pair, clues: Clues | None) -> tuple[np.ndarray, str]:
    """Links that can be hidden, and what they are called then: seeds, and pairs by unique equal names or values.

    Seeds are a fair sample, but often few; the others are many, and hiding their names leaves the harder cases.
    """
    if clues is None:
        return pair.train, "held-out seeds"
    hidden = "hidden names" if clues.values is None else "hidden names and values"
    known = np.concatenate([pair.train, beside(clues.exact, pair.train)])
    return known, f"held-out seeds and {hidden}" if len(pair.train) else hidden


def number_of_parts(pair: Pair, folds: int, clues: Clues | None = None) -> int:
    """How many runs `cross_fit` makes: with few seeds fewer than `folds`, and none for 0."""
    return sum(1 for _ in _parts(_known_links(pair, clues)[0], folds, seed=0)) if folds else 0


def _parts(known: np.ndarray, folds: int, seed: int, kg1: KG | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Known links to hold out, and which of them lose their counterpart; all in their old order.

    With a source graph the links are held out in neighbourhoods.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(known))
    if kg1 is not None:
        order = _in_neighbourhoods(kg1, known[:, 0], order)
    single = order[: _number_held_out(len(known), ENOUGH_HELD_OUT if kg1 is None else ENOUGH_HIDDEN)]
    for part in np.array_split(order, folds) if folds > 1 else [single]:
        if not len(part) or len(part) == len(known):
            continue
        chosen = np.zeros(len(known), dtype=bool)
        chosen[part] = True
        yield known[chosen], rng.permutation(len(part)) < round(ABSENT_SHARE * len(part))


def _in_neighbourhoods(kg1: KG, sources: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The same places in an order that keeps neighbours together: each follows the first of those next to it."""
    rank = np.full(kg1.num_entities, len(order))
    rank[sources[order]] = np.arange(len(order))
    leader = rank.copy()
    np.minimum.at(leader, np.repeat(np.arange(kg1.num_entities), kg1.degrees), rank[kg1.neighbors])
    return np.lexsort((rank[sources], leader[sources]))


def _number_held_out(num_known: int, enough: int = ENOUGH_HELD_OUT) -> int:
    """How many known links a single run does without; no half that would still be a thin basis."""
    half = min(num_known // 2, enough)
    return min(max(int(HELD_OUT_SHARE * num_known), half if half >= THIN_BASIS else 0), MOST_HELD_OUT)


def with_anchors(pair: Pair, clues: Clues | None) -> Pair:
    """The pair as links are described: anchors are grounds to rest on, as seeds are."""
    if clues is None:
        return pair
    return replace(pair, train=np.concatenate([pair.train, clues.anchors_beside(pair.train)]))


def _held_out_links(
    pair: Pair, clues: Clues | None, run: Run, held_out: np.ndarray, hidden: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The arrays of `HeldOut` for some links, of which `hidden` lose their counterpart."""
    rest = pair.train[~np.isin(pair.train[:, 0], held_out[:, 0])]
    is_seed = np.isin(held_out[:, 0], pair.train[:, 0])
    part = replace(pair, kg2=pair.kg2.without(held_out[hidden, 1]), train=rest)
    if clues is not None:
        # A seed that is held out is as any entity is; of the others, what they were known by is hidden.
        clues = clues.without_targets(held_out[hidden, 1]).without(held_out[~is_seed])
    result = run(part, clues)
    known = with_anchors(part, clues)
    described = describe_links(known, joint_probabilities(result), result, result.candidates)
    rows = held_out[:, 0]
    right = (described.targets[rows] == held_out[:, 1]) & ~hidden
    return described.features[rows], described.probs[rows], right, hidden, np.where(is_seed, 1.0, HIDDEN_WEIGHT)


def _fitted(links: HeldOut, seed: int, prior: Prior, unit: str) -> ProbabilityCalibrator:
    count = len(links.probs)
    after = np.empty(count)
    halves = np.array_split(np.random.default_rng(seed).permutation(count), 2)
    for one, other in (halves, halves[::-1]):
        after[one] = links.model(prior, other)(links.features[one])
    present, num_absent = ~links.absent, int(links.absent.sum())
    before = reliability(np.clip(links.probs, 0.0, 1.0)[present], links.right[present])
    calibrated = reliability(after[present], links.right[present])
    note = (
        f"calibrated on {count:,} {unit}, {num_absent:,} of them without their counterpart: "
        f"expected calibration error {before.error:.3f} before, {calibrated.error:.3f} after"
    )
    if count < THIN_BASIS:
        note += f"; so few that a prior fitted to {prior.data} decides"
    return ProbabilityCalibrator(
        links.model(prior, np.arange(count)), count, num_absent, before, calibrated, note, unit
    )
