"""How the joint refinement changes from round to round of self-training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stea_fast._util import validate
from stea_fast._util.options import option_class
from stea_fast.refinement.config import Joint, Method, method_of

SHARED = ("sweeps", "proposals", "balance", "witnesses", "lone_witness", "start_sweeps", "damping")  # by all rounds


@option_class
@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How the joint refinement changes from round to round of self-training.

    An encoder that has seen few pairs knows little, so the evidence weighs much, and pairs of middling probability are
    worth training on. Later the encoder has learnt from that evidence: counting it again needs a smaller weight, and
    only sure pairs teach it more. The last ranking teaches nobody, and takes all the evidence there is.

    Args:
        beta: The inverse temperature of the encoder's scores, which are CSLS of cosines. Where seeds are held out, β is
            fitted to them instead.
        evidence_weights: The weight λ of the evidence in round 0, 1, …; the last number holds for all later rounds.
        thresholds: The probability above which pairs are trained on in round 0, 1, …; the last number holds for all
            later rounds.
        final_weight: The weight λ of the last round, whose prediction is the result.
        final_threshold: The probability above which pairs of the last round are given out.
        sweeps: The largest number of sweeps in every round; see `Joint`.
        proposals: How many pairs matched neighbours may propose for an entity; see `Joint`.
        balance: How many iterations balance rows and columns; see `Joint`.
        witnesses: Whether a neighbour or a statement is a witness; see `Joint`.
        lone_witness: The share of its evidence that counts for a pair with a single witness; see `Joint`.
        start_sweeps: The number of sweeps in which relations that meet at seeds are taken to be alike; see `Joint`.
        damping: The share that a pair keeps of the probability that it had in the sweep before; see `Joint`.

    Raises:
        ValueError: A number is outside its range, or a list is empty.
        TypeError: An option does not exist, or is not a number.

    Example:
        >>> import stea_fast as sf
        >>> schedule = sf.Schedule(evidence_weights=(8, 2))
        >>> [schedule.method(number, last=False).evidence_weight for number in range(3)]
        [8.0, 2.0, 2.0]
    """

    beta: float = 15.0
    evidence_weights: Sequence[float] = (16.0, 8.0)
    thresholds: Sequence[float] = (0.5, 0.8, 0.9)
    final_weight: float = 16.0
    final_threshold: float = 0.5
    sweeps: int = 10
    proposals: int = Joint.proposals
    balance: int = Joint.balance
    witnesses: str = Joint.witnesses
    lone_witness: float = Joint.lone_witness
    start_sweeps: int = Joint.start_sweeps
    damping: float = Joint.damping

    def __post_init__(self) -> None:
        validate.number(self.beta, "beta", minimum=0.0)
        validate.number(self.final_threshold, "final_threshold", minimum=0.0, maximum=1.0)
        for name, most in (("evidence_weights", float("inf")), ("thresholds", 1.0)):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
                raise TypeError(f"{name} must be a list of numbers, got {type(given).__name__}")
            values = tuple(validate.number(value, name, minimum=0.0, maximum=most) for value in given)
            if not values:
                raise ValueError(f"{name} is empty: it needs at least one number")
            object.__setattr__(self, name, values)
        self.method(0, last=True)  # checks the other numbers

    def method(self, number: int, *, last: bool) -> Joint:
        """Give the refinement of one round.

        Args:
            number: The number of the round, from 0.
            last: Whether it is the last round, whose prediction is the result.

        Returns:
            A `Joint` with the evidence weight of that round.
        """
        weight = self.final_weight if last else self.evidence_weights[min(number, len(self.evidence_weights) - 1)]
        return Joint(evidence_weight=weight, **{name: getattr(self, name) for name in SHARED})

    def threshold(self, number: int, *, last: bool) -> float:
        """Give the probability that a selected pair of one round must exceed.

        Args:
            number: The number of the round, from 0.
            last: Whether it is the last round, whose pairs are given out.

        Returns:
            A probability in [0, 1].
        """
        return self.final_threshold if last else self.thresholds[min(number, len(self.thresholds) - 1)]


@dataclass(frozen=True)
class EveryRound:
    """One method for all rounds, in the place of a `Schedule`; without a threshold and a β of its own."""

    refinement: Method
    beta: None = None

    def method(self, number: int, *, last: bool) -> Method:
        """The same method in every round."""
        return self.refinement

    def threshold(self, number: int, *, last: bool) -> None:
        """No threshold in any round."""


def plan_of(refinement: str | Method | Schedule) -> Schedule | EveryRound:
    """What refines the rounds of a loop: a schedule, or one method for all rounds; "joint" is the default schedule."""
    if isinstance(refinement, Schedule):
        return refinement
    return Schedule() if refinement == "joint" else EveryRound(method_of(refinement))
