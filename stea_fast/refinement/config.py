"""The options of `refine`, checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stea_fast._util import validate
from stea_fast.refinement import beliefs
from stea_fast.refinement.selection import STRATEGIES

CALIBRATIONS = ("softmax", "minmax", "none")
BLANKETS = ("local", "full")
COMBINATIONS = ("joint", "product", "compatibility")


@dataclass(frozen=True)
class Options:
    """The options of `refine`, checked. See there for their meaning."""

    k: int | None = None
    evidence: str | None = None
    blanket: str = "local"
    combine: str = "product"
    evidence_weight: float = 4.0
    proposals: int = 10
    balance: int = 15
    sweeps: int = 4
    select: str | None = None
    threshold: float | None = None
    calibrate: str = "softmax"
    beta: float | None = None
    paper: bool = False
    backend: str = "auto"
    n_threads: int | None = None
    rows_per_block: int | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            validate.count(self.k, "k", minimum=1)
        if self.evidence is not None:
            validate.choice(self.evidence, "evidence", beliefs.KINDS)
        validate.choice(self.blanket, "blanket", BLANKETS)
        validate.choice(self.combine, "combine", COMBINATIONS)
        validate.number(self.evidence_weight, "evidence_weight", minimum=0.0)
        validate.count(self.proposals, "proposals", maximum=1000)
        validate.count(self.balance, "balance", maximum=1000)
        validate.count(self.sweeps, "sweeps", minimum=1, maximum=1000)
        validate.choice(self.calibrate, "calibrate", CALIBRATIONS)
        others = self.blanket, self.calibrate, self.evidence or "soft"
        if self.combine == "joint" and not self.paper and others != ("local", "softmax", "soft"):
            raise ValueError("combine='joint' takes soft evidence, blanket='local' and calibrate='softmax'")
        if not isinstance(self.paper, (bool, np.bool_)):
            raise TypeError(f"paper must be True or False, got {type(self.paper).__name__}")
        if self.select is not None:
            validate.choice(self.select, "select", STRATEGIES)
        if self.threshold is not None:
            validate.number(self.threshold, "threshold", minimum=0.0, maximum=1.0)
        if self.rows_per_block is not None:
            validate.count(self.rows_per_block, "rows_per_block", minimum=1)
        if self.beta is not None:
            validate.number(self.beta, "beta", minimum=0.0)

    def evidence_kind(self, both_directions: bool) -> str:
        """The kind of evidence asked for, or the default."""
        return self.evidence or ("mutual" if both_directions else "soft")

    def as_in_the_paper(self) -> Options:
        """Arg-max evidence, one sweep, local factor, q* ∝ exp(g)."""
        return replace(self, evidence="argmax", blanket="local", combine="compatibility", sweeps=1)
