"""A cell, which is one run: dataset × share of seeds × method × encoder × variant × split seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PAPER_ROUNDS = 10
BASELINES = ("sim_threshold", "one_to_one", "mutual_nearest")
PAPER_METHODS = ("supervised", "stea", "oracle", *BASELINES)
OURS = ("structural", "fast", "large", "full")  # each is the preset of its name
CANDIDATES = (1, 3, 5, 10, 15, 20, 25)
USUAL_CANDIDATES = 10
# The refined probability of the paper's step lies between 1 / K, where nothing is known, and e / (e + K - 1): 0.1 and
# 0.23 for K = 10. The paper does not say which threshold it took; this one is in the middle.
THRESHOLD = 0.15

# Configurations as in `SelfTrainingConfig.to_dict`: what differs from the preset, "fast" unless another is named.
_PAPERS_STEP = {"name": "stea", "refinement": {"name": "paper"}, "two_views": False}
_STEA: dict[str, Any] = {"rounds": PAPER_ROUNDS, "method": _PAPERS_STEP}
METHODS: dict[str, dict[str, Any]] = {
    **{name: {} for name in OURS},
    "supervised": {"method": {"name": "supervised"}, "rounds": 4},  # no effect, but its recorded cells say so
    "stea": _STEA,
    "oracle": {**_STEA, "method": {**_PAPERS_STEP, "relations": "oracle"}},
    **{name: {"method": {"name": name}, "rounds": PAPER_ROUNDS} for name in BASELINES},
}
OWN_ENCODER = {"structural": "none", "fast": "propagation", "large": "propagation"}  # all others: Dual-AMN
# Instead of all entities, for half the time of a step; the variant all_negatives is the other.
ENCODER_OPTIONS: dict[str, dict[str, Any]] = {"dual_amn": {"num_negatives": 8192}}


def _in_both_views(**changes: Any) -> dict[str, Any]:
    """A change of both refinements of our presets: that with the encoder, and that from structure alone."""
    return {"method": {"refinement": {"name": "schedule", **changes}, "structure": changes}}


# The paper's arg-max evidence and mutual selection look only at which candidate is the best, and that is the same after
# any normalisation. So normalisations are compared with soft evidence, where probabilities count.
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    **{f"k={k}": {"search": {"k": k}} for k in CANDIDATES if k != USUAL_CANDIDATES},
    **{
        f"soft_{name}": {"method": {"refinement": {"evidence": "soft", "normalisation": name}}}
        for name in ("softmax", "minmax")
    },
    "uni_kg1": {"method": {"select": "forward", "threshold": THRESHOLD}},
    "uni_kg2": {"method": {"select": "backward", "threshold": THRESHOLD}},
    "bi": {"method": {"select": "either", "threshold": THRESHOLD}},
    "above_0": {"method": {"threshold": 0.0}},  # as in the scripts of the paper's authors, for similarities by CSLS
    "all_negatives": {"encoder": {"options": {"num_negatives": None}}},  # as the paper; twice the time of a step
    "2000_epochs": {"encoder": {"first_epochs": 2000}},  # GCN-Align's own number, where nothing is trained after it
    "refit_augmented": {"encoder": {"options": {"refit": True, "augment": True}}},  # nearer to AliNet's own paper
    # What a part of our refinement is worth. Without an encoder only proposals make pairs, so there they stay.
    "one_view": {"method": {"two_views": False}},
    "statements": _in_both_views(witnesses="statement"),
    "no_proposals": {"method": {"refinement": {"name": "schedule", "proposals": 0}}},
    "unbalanced": _in_both_views(balance=0),
    "no_start_sweeps": _in_both_views(start_sweeps=0),
    "no_start_rounds": {"method": {"start_rounds": 0}},
    "names": {},  # names as clues, see `uses_names`
    "3_rounds": {"rounds": 3},
    "0_rounds": {"rounds": 0},  # one search and one refinement: what a round of a large pair takes
}


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with changes, part by part. A part that is to have another name takes nothing over from the old one."""
    if "name" in changes and changes["name"] != base.get("name"):
        return changes
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(value, dict) and isinstance(old, dict) else value
    return result


@dataclass(frozen=True)
class Cell:
    """One run: what one line of the results is about."""

    experiment: str
    dataset: str
    fraction: float
    method: str
    encoder: str
    variant: str
    split: int

    @property
    def key(self) -> str:
        """What is computed, whatever experiment it is for."""
        parts = (self.dataset, f"{self.fraction:.0%}", self.method, self.encoder, self.variant, f"split{self.split}")
        return "/".join(part for part in parts if part)

    @property
    def id(self) -> str:
        """For people and patterns."""
        return f"{self.experiment}/{self.key}"

    @property
    def preset(self) -> str:
        """The preset that the cell starts from."""
        return self.method if self.method in OURS else "fast"

    @property
    def uses_names(self) -> bool:
        """Whether the names of entities take part, as they stand in the graphs."""
        return self.variant == "names"

    @property
    def changes(self) -> dict[str, Any]:
        """How the cell's configuration differs from its preset, as in `SelfTrainingConfig.to_dict`."""
        encoder = {"name": self.encoder, "options": ENCODER_OPTIONS.get(self.encoder, {})}
        return merged({**METHODS[self.method], "encoder": encoder, "seed": self.split}, VARIANTS[self.variant])
