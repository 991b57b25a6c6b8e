"""How pairs are found: STEA, structure alone, nothing at all, or one of the paper's baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy
from stea_fast._util.options import option_class
from stea_fast.refinement.config import Joint, Method
from stea_fast.refinement.schedule import EveryRound, Schedule, plan_of
from stea_fast.refinement.selection import check_selection, mutual_nearest, one_to_one, similarity_threshold
from stea_fast.refinement.structural import ALONE
from stea_fast.types import TopK

Selection = tuple[np.ndarray, np.ndarray]


@option_class
@dataclass(frozen=True, kw_only=True)
class Stea:
    """Check the encoder's guesses against their neighbours, and train on those that are compatible.

    Args:
        refinement: A `Schedule`, by which the joint refinement changes from round to round, or one method for all
            rounds: "joint" stands for the default schedule, "product" and "paper" for these methods, and an
            `sf.Joint`, `sf.Product` or `sf.Paper` for itself.
        select: Which refined pairs become pseudo mappings; see `refine`.
        threshold: The probability that they must exceed; the default, None, takes the schedule's. One method for all
            rounds has none of its own, so "forward", "backward" and "either" then need one here.
        relations: "estimated" aligns relations from seeds and predictions. "oracle" reads all links, test links
            included: it is for comparison only, and `audit` fails on it.
        start_rounds: How many of the first rounds use propagation, which needs no training: from few seeds a trained
            encoder learns little, and from the pairs that these rounds find it learns at once. The last round is never
            one of them.
        two_views: Whether a refinement from structure alone, without the encoder, is made beside every other. Only
            pairs on which both agree are trained on, and the last round ranks by the mean of both probabilities. Later
            rounds search only the entities without such a pair; the others have their partner as only candidate.
        structure: How that refinement is made, an `sf.Joint`; rounds that begin with pairs make at most ten sweeps. The
            default, None, takes 24 sweeps in which evidence weighs 24, and leaves out proposals with evidence below
            .03 where entities have fewer than 6.5 edges in the mean.
        first_epochs: The number of epochs of the encoder's first training after the start rounds; the default, None,
            takes the encoder's own number.

    Raises:
        ValueError: An option is outside its range, or not among its choices.
        TypeError: An option does not exist, or is of the wrong type.

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
    two_views: bool = False
    structure: Joint | None = None
    first_epochs: int | None = None

    def __post_init__(self) -> None:
        first = self.plan.threshold(0, last=False) if self.threshold is None else self.threshold
        check_selection(self.select, first)  # now: the first round asks for it only after the first training
        validate.choice(self.relations, "relations", ("estimated", "oracle"))
        validate.count(self.start_rounds, "start_rounds", maximum=1000)
        if self.structure is not None:
            _check_joint(self.structure, "structure")
        if self.first_epochs is not None:
            validate.count(self.first_epochs, "first_epochs")

    @property
    def plan(self) -> Schedule | EveryRound:
        """The refinement of every round, as an object that is asked for the method and the threshold of a round."""
        return plan_of(self.refinement)


@option_class
@dataclass(frozen=True, kw_only=True)
class Structural:
    """Spread what is known over the graphs by proposals and joint refinement alone: no encoder, no search, one round.

    Time and memory grow with the number of triples, so this is the way to large graphs; it takes seconds on small ones.

    Args:
        refinement: How the pairs are refined, an `sf.Joint`; its number of sweeps is how far seeds can spread.
        select: Which refined pairs are given out; see `refine`.
        threshold: The probability that these must exceed.

    Raises:
        ValueError: An option is outside its range, or not among its choices.
        TypeError: An option does not exist, or is of the wrong type.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> result = sf.SelfTraining(pair, preset="structural").run()
        >>> len(result.history), result.embeddings is None
        (1, True)
    """

    name: ClassVar[str] = "structural"
    refinement: Joint = ALONE
    select: str = "mutual"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        _check_joint(self.refinement, "refinement")
        validate.number(self.threshold, "threshold", minimum=0.0, maximum=1.0)
        check_selection(self.select, self.threshold)


@option_class
@dataclass(frozen=True, kw_only=True)
class Supervised:
    """Train the encoder on the seeds alone, without self-training.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> result = sf.SelfTraining(pair, method=sf.Supervised()).run()
        >>> len(result.history), len(result.pairs)
        (1, 0)
    """

    name: ClassVar[str] = "supervised"

    def select_pairs(self, candidates: TopK, previous: np.ndarray, seeds: np.ndarray) -> Selection:
        """Select nothing: the seeds are all there is to train on.

        Args:
            candidates: The candidates of the round, which are not read.
            previous: The pairs of the round before, int64 [m, 2], which are not read.
            seeds: The seeds, int64 [m, 2], which are not read.

        Returns:
            No pairs, int64 [0, 2], and no similarities, float32 [0].
        """
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.float32)


@option_class
@dataclass(frozen=True, kw_only=True)
class SimilarityThreshold:
    """Train on every source's nearest target whose similarity is above a threshold: the paper's baseline SimThr.

    Args:
        threshold: The similarity that a pair must exceed. The default, None, takes the median similarity of the pairs
            that are each other's nearest.

    Raises:
        TypeError: The threshold is not a number.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> result = sf.SelfTraining(pair, method=sf.SimilarityThreshold(threshold=0.2), rounds=1).run()
        >>> bool((result.pair_probs > 0.2).all())
        True
    """

    name: ClassVar[str] = "sim_threshold"
    threshold: float | None = None

    def __post_init__(self) -> None:
        _check_similarity(self.threshold)

    def select_pairs(self, candidates: TopK, previous: np.ndarray, seeds: np.ndarray) -> Selection:
        """Select the pairs of one round; see `similarity_threshold`.

        Args:
            candidates: The candidates of the round.
            previous: The pairs of the round before, int64 [m, 2], which are not read.
            seeds: The seeds, int64 [m, 2], whose entities take no part.

        Returns:
            The pairs, int64 [m, 2], and their similarities, float32 [m].
        """
        return _as_numpy(similarity_threshold(candidates, _limit(self.threshold, candidates, seeds), seeds=seeds))


@option_class
@dataclass(frozen=True, kw_only=True)
class OneToOne:
    """Train on a maximum-weight matching of similar pairs, added to those of earlier rounds: the paper's OneToOne.

    Args:
        threshold: The similarity that a pair must exceed. The default, None, takes the median similarity of the pairs
            that are each other's nearest.

    Raises:
        TypeError: The threshold is not a number.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> result = sf.SelfTraining(pair, method=sf.OneToOne(), rounds=1).run()
        >>> len(set(result.pairs[:, 1].tolist())) == len(result.pairs)  # no target twice
        True
    """

    name: ClassVar[str] = "one_to_one"
    threshold: float | None = None

    def __post_init__(self) -> None:
        _check_similarity(self.threshold)

    def select_pairs(self, candidates: TopK, previous: np.ndarray, seeds: np.ndarray) -> Selection:
        """Select the pairs of one round, and those of earlier rounds that nothing speaks against; see `one_to_one`.

        Args:
            candidates: The candidates of the round.
            previous: The pairs of the round before, int64 [m, 2].
            seeds: The seeds, int64 [m, 2], whose entities take no part.

        Returns:
            The pairs, int64 [m, 2], and their similarities, float32 [m].
        """
        limit = _limit(self.threshold, candidates, seeds)
        return _as_numpy(one_to_one(candidates, limit, previous=previous, seeds=seeds))


@option_class
@dataclass(frozen=True, kw_only=True)
class MutualNearest:
    """Train on the pairs that are each other's nearest: the paper's baseline MutNearest.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> by_object = sf.SelfTraining(pair, method=sf.MutualNearest(), rounds=1).run()
        >>> by_name = sf.SelfTraining(pair, method="mutual_nearest", rounds=1).run()
        >>> bool((by_object.pairs == by_name.pairs).all())
        True
    """

    name: ClassVar[str] = "mutual_nearest"

    def select_pairs(self, candidates: TopK, previous: np.ndarray, seeds: np.ndarray) -> Selection:
        """Select the pairs of one round; see `mutual_nearest`.

        Args:
            candidates: The candidates of the round.
            previous: The pairs of the round before, int64 [m, 2], which are not read.
            seeds: The seeds, int64 [m, 2], whose entities take no part.

        Returns:
            The pairs, int64 [m, 2], and their similarities, float32 [m].
        """
        return _as_numpy(mutual_nearest(candidates, seeds=seeds))


Baseline = Supervised | SimilarityThreshold | OneToOne | MutualNearest
SelfTrainingMethod = Stea | Structural | Baseline
METHODS: dict[str, type[SelfTrainingMethod]] = {
    cls.name: cls for cls in (Stea, Structural, Supervised, SimilarityThreshold, OneToOne, MutualNearest)
}


def method_named(name: str) -> SelfTrainingMethod:
    """A method by its name, with its defaults."""
    return METHODS[validate.choice(name, "method", tuple(METHODS))]()


def _check_joint(method: object, name: str) -> None:
    if not isinstance(method, Joint):
        raise TypeError(f"{name} must be an sf.Joint, got {type(method).__name__}")


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
