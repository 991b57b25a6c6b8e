"""How the joint refinement changes from round to round of self-training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stea_fast._util import validate
from stea_fast._util.options import option_class
from stea_fast.refinement.config import Joint, Method, method_of


@option_class
@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A `Joint` for every round; the last number of each list holds for all later rounds.

    An encoder that has seen few pairs knows little, so the evidence weighs much and pairs of middling probability are
    worth training on. Later the encoder has learnt from that evidence: counting it again needs a smaller weight, and
    only sure pairs teach it more. The last ranking teaches nobody, and takes all the evidence there is.

    Args:
        beta: inverse temperature of the encoder's scores (CSLS of cosines); where seeds are held out, β is fitted to
            them instead.
        evidence_weights: λ in round 0, 1, …
        thresholds: the probability above which pairs are trained on in round 0, 1, …
        final_weight: λ of the last round, whose prediction is the result.
        final_threshold: the probability above which pairs are given out.
        sweeps, proposals, balance, witnesses, lone_witness: of every round; see `Joint`.

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
        """The method of a round, numbered from 0."""
        weight = self.final_weight if last else self.evidence_weights[min(number, len(self.evidence_weights) - 1)]
        shared = {name: getattr(self, name) for name in ("sweeps", "proposals", "balance", "witnesses", "lone_witness")}
        return Joint(evidence_weight=weight, **shared)

    def threshold(self, number: int, *, last: bool) -> float:
        """The probability that a selected pair of a round must exceed."""
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
