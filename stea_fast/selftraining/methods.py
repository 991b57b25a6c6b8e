"""How pseudo mappings are found in every round: STEA, nothing at all, or one of the paper's baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy
from stea_fast._util.options import option_class
from stea_fast.refinement.config import Method
from stea_fast.refinement.schedule import EveryRound, Schedule, plan_of
from stea_fast.refinement.selection import STRATEGIES, mutual_nearest, one_to_one, similarity_threshold
from stea_fast.types import TopK

Selection = tuple[np.ndarray, np.ndarray]


@option_class
@dataclass(frozen=True, kw_only=True)
class Stea:
    """Check the encoder's guesses against their neighbours and train on the compatible ones.

    Args:
        refinement: a `Schedule`, by which the joint refinement changes from round to round, or one method for all
            rounds: "joint" stands for the default schedule, "product" and "paper" for these methods, and an
            `sf.Joint`, `sf.Product` or `sf.Paper` for itself.
        select: which refined pairs become pseudo mappings; see `refine`.
        threshold: the probability that they must exceed; by default the schedule's.
        relations: "estimated" (from seeds and predictions), or "oracle": from all links, test links included. Only
            for comparison; `audit` fails on it.
        start_rounds: this many of the first rounds use propagation, which needs no training: from few seeds a trained
            encoder learns little, and from the pairs that these rounds find it learns at once. The last round is
            never one of them.
        first_epochs: epochs of the encoder's first training after start rounds; by default the encoder's own.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> result = sf.SelfTraining(pair, method=sf.Stea(refinement="paper"), rounds=1).run()
        >>> len(result.history)
        2
    """

    name: ClassVar[str] = "stea"
    refinement: str | Method | Schedule = "joint"
    select: str = "mutual"
    threshold: float | None = None
    relations: str = "estimated"
    start_rounds: int = 0
    first_epochs: int | None = None

    def __post_init__(self) -> None:
        plan_of(self.refinement)
        validate.choice(self.select, "select", STRATEGIES)
        if self.threshold is not None:
            validate.number(self.threshold, "threshold", minimum=0.0, maximum=1.0)
        validate.choice(self.relations, "relations", ("estimated", "oracle"))
        validate.count(self.start_rounds, "start_rounds", maximum=1000)
        if self.first_epochs is not None:
            validate.count(self.first_epochs, "first_epochs")

    @property
    def plan(self) -> Schedule | EveryRound:
        """What refines each round."""
        return plan_of(self.refinement)


@option_class
@dataclass(frozen=True, kw_only=True)
class Supervised:
    """Train on the seeds only."""

    name: ClassVar[str] = "supervised"

    def select_pairs(self, candidates: TopK, previous: np.ndarray, seeds: np.ndarray) -> Selection:
        """No pairs."""
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.float32)


@option_class
@dataclass(frozen=True, kw_only=True)
class SimilarityThreshold:
    """SimThr: train on every source's nearest target whose similarity is above a threshold.

    Args:
        threshold: the similarity; by default the median of the pairs that are each other's nearest.
    """

    name: ClassVar[str] = "sim_threshold"
    threshold: float | None = None

    def __post_init__(self) -> None:
        _check_similarity(self.threshold)

    def select_pairs(self, candidates: TopK, previous: np.ndarray, seeds: np.ndarray) -> Selection:
        """The pairs of one round."""
        return _as_numpy(similarity_threshold(candidates, _limit(self.threshold, candidates, seeds), seeds=seeds))


@option_class
@dataclass(frozen=True, kw_only=True)
class OneToOne:
    """OneToOne: train on a maximum-weight matching of similar pairs, added to those of earlier rounds.

    Args:
        threshold: the similarity; by default the median of the pairs that are each other's nearest.
    """

    name: ClassVar[str] = "one_to_one"
    threshold: float | None = None

    def __post_init__(self) -> None:
        _check_similarity(self.threshold)

    def select_pairs(self, candidates: TopK, previous: np.ndarray, seeds: np.ndarray) -> Selection:
        """The pairs of one round, and of earlier ones where nothing speaks against them."""
        limit = _limit(self.threshold, candidates, seeds)
        return _as_numpy(one_to_one(candidates, limit, previous=previous, seeds=seeds))


@option_class
@dataclass(frozen=True, kw_only=True)
class MutualNearest:
    """MutNearest: train on the pairs that are each other's nearest."""

    name: ClassVar[str] = "mutual_nearest"

    def select_pairs(self, candidates: TopK, previous: np.ndarray, seeds: np.ndarray) -> Selection:
        """The pairs of one round."""
        return _as_numpy(mutual_nearest(candidates, seeds=seeds))


Baseline = Supervised | SimilarityThreshold | OneToOne | MutualNearest
SelfTrainingMethod = Stea | Baseline
METHODS: dict[str, type[SelfTrainingMethod]] = {
    cls.name: cls for cls in (Stea, Supervised, SimilarityThreshold, OneToOne, MutualNearest)
}


def method_named(name: str) -> SelfTrainingMethod:
    """A method by its name, with its defaults."""
    return METHODS[validate.choice(name, "method", tuple(METHODS))]()


def _check_similarity(threshold: float | None) -> None:
    if threshold is not None:
        validate.number(threshold, "threshold")


def _limit(threshold: float | None, candidates: TopK, seeds: np.ndarray) -> float:
    """The threshold asked for, or the median score of the pairs that are each other's nearest.

    Without the seeds: they are nearer than pairs yet to be found.
    """
    if threshold is not None:
        return threshold
    scores = to_numpy(mutual_nearest(candidates, seeds=seeds)[1], "scores")
    return float(np.median(scores)) if len(scores) else 0.0


def _as_numpy(selection: Selection) -> Selection:
    return to_numpy(selection[0], "pairs"), to_numpy(selection[1], "scores")
