"""How the joint refinement changes from round to round of self-training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stea_fast._util import validate


@dataclass(frozen=True)
class Schedule:
    """The options of the joint refinement in every round; the last of each list holds for all later rounds.

    An encoder that has seen few pairs knows little, so the evidence weighs much and pairs of middling probability are
    worth training on. Later the encoder has learnt from that evidence: counting it again needs a smaller weight, and
    only sure pairs teach it more. The last ranking teaches nobody, and takes all the evidence there is.

    Attributes:
        beta: inverse temperature of the encoder's scores (CSLS of cosines).
        evidence_weights: λ in round 0, 1, …
        thresholds: the probability above which pairs are trained on in round 0, 1, …
        final_weight: λ of the last round, whose prediction is the result.
        final_threshold: the probability above which pairs are given out.
        sweeps: at most so many in every round.
    """

    beta: float = 15.0
    evidence_weights: Sequence[float] = (16.0, 8.0)
    thresholds: Sequence[float] = (0.5, 0.8, 0.9)
    final_weight: float = 16.0
    final_threshold: float = 0.5
    sweeps: int = 10

    def __post_init__(self) -> None:
        for name in ("beta", "final_weight"):
            validate.number(getattr(self, name), name, minimum=0.0)
        for name in ("evidence_weights", "thresholds"):
            values = tuple(validate.number(value, name, minimum=0.0) for value in getattr(self, name))
            if not values:
                raise ValueError(f"{name} is empty: it needs at least one number")
            object.__setattr__(self, name, values)

    def options(self, number: int, *, last: bool) -> dict[str, Any]:
        """The options of `refine` in a round."""
        weight = self.final_weight if last else self.evidence_weights[min(number, len(self.evidence_weights) - 1)]
        threshold = self.final_threshold if last else self.thresholds[min(number, len(self.thresholds) - 1)]
        return {"combine": "joint", "evidence_weight": weight, "threshold": threshold, "sweeps": self.sweeps}
