"""What is run: a declarative list of cells, the most telling first.

A cell is dataset × share of seeds × method × encoder × variant × split seed. Several tables may need the same cell; it
is listed, and computed, once: under the experiment that names it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

DBP15K = ("dbp15k_zh_en", "dbp15k_ja_en", "dbp15k_fr_en")
ZH_EN = DBP15K[:1]
DWY100K = ("dbp_wd", "dbp_yg")
SYNTHETIC = ("synthetic",)  # built in: for tests and for trying things
FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.3)
PAPER_ROUNDS = 10
BASELINES = ("sim_threshold", "one_to_one", "mutual_nearest")
PAPER_METHODS = ("supervised", "stea", "oracle", *BASELINES)
CANDIDATES = (1, 3, 5, 10, 15, 20, 25)
USUAL_CANDIDATES = 10
# The refined probability of the paper's step lies between 1 / K, where nothing is known, and e / (e + K - 1): 0.1 and
# 0.23 for K = 10. The paper does not say which threshold it took; this one is in the middle.
THRESHOLD = 0.15

# Configurations as in `SelfTrainingConfig.to_dict`: what differs from the preset, "fast" unless another is named.
_PAPERS_STEP = {"name": "stea", "refinement": {"name": "paper"}, "two_views": False}
_STEA: dict[str, Any] = {"rounds": PAPER_ROUNDS, "method": _PAPERS_STEP}
PRESETS = {"default": "full"}
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {},
    "supervised": {"method": {"name": "supervised"}, "rounds": 4},  # no effect, but its recorded cells say so
    "stea": _STEA,
    "oracle": {**_STEA, "method": {**_PAPERS_STEP, "relations": "oracle"}},
    **{name: {"method": {"name": name}, "rounds": PAPER_ROUNDS} for name in BASELINES},
}
OWN_ENCODER = {"default": "dual_amn", "fast": "propagation"}
# Instead of all entities, for half the time of a step; the variant all_negatives is the other.
ENCODER_OPTIONS: dict[str, dict[str, Any]] = {"dual_amn": {"num_negatives": 8192}}
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
    "all_negatives": {"encoder": {"options": {"num_negatives": None}}},  # as the paper; twice the time of a step
    "2000_epochs": {"encoder": {"first_epochs": 2000}},  # GCN-Align's own number, where nothing is trained after it
    "refit_augmented": {"encoder": {"options": {"refit": True, "augment": True}}},  # nearer to AliNet's own paper
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
        return PRESETS.get(self.method, "fast")

    @property
    def changes(self) -> dict[str, Any]:
        """How the cell's configuration differs from its preset, as in `SelfTrainingConfig.to_dict`."""
        encoder = {"name": self.encoder, "options": ENCODER_OPTIONS.get(self.encoder, {})}
        return merged({**METHODS[self.method], "encoder": encoder, "seed": self.split}, VARIANTS[self.variant])


@dataclass(frozen=True)
class Experiment:
    """A block of cells: every combination, in the order given."""

    name: str
    datasets: tuple[str, ...]
    fractions: tuple[float, ...]
    methods: tuple[str, ...]
    encoders: tuple[str, ...] = ("dual_amn",)
    variants: tuple[str, ...] = ("",)

    def cells(self, split: int) -> Iterator[Cell]:
        """Of one split seed."""
        for fraction in self.fractions:
            for encoder in self.encoders:
                for method in self.methods:
                    for variant in self.variants:
                        for dataset in self.datasets:
                            chosen = OWN_ENCODER.get(method, encoder)
                            yield Cell(self.name, dataset, fraction, method, chosen, variant, split)


LATER_FRACTIONS = (0.05, 0.3, 0.1, 0.2)
OTHER_ENCODERS = ("rrea", "gcn_align", "alinet")  # the quickest first
K_VARIANTS = tuple(name for name in VARIANTS if name.startswith("k="))
FULL = (
    Experiment("overall", DBP15K, (0.01,), ("default", *PAPER_METHODS, "fast")),
    Experiment("overall", ZH_EN, (0.05, 0.3), ("default",)),
    Experiment("overall", DBP15K, LATER_FRACTIONS, ("default", *PAPER_METHODS, "fast")),
    Experiment("large", ("contea_zh_en",), (0.01,), ("fast",)),
    Experiment("supervised", DBP15K, (0.3,), ("supervised",), ("rrea", "alinet")),
    Experiment("supervised", DBP15K, (0.3,), ("supervised",), ("gcn_align",), ("2000_epochs",)),
    Experiment("supervised", DBP15K, (0.3,), ("supervised",), ("alinet",), ("refit_augmented",)),
    Experiment("generality", ZH_EN, FRACTIONS, PAPER_METHODS, OTHER_ENCODERS),
    Experiment("selection", ZH_EN, FRACTIONS, ("stea",), variants=("uni_kg1", "uni_kg2", "bi")),
    Experiment("normalisation", ZH_EN, FRACTIONS, ("stea",), variants=("soft_softmax", "soft_minmax")),
    Experiment("candidates", ZH_EN, FRACTIONS, ("stea",), variants=K_VARIANTS),
    Experiment("large", ("debian_bookworm_trixie",), (0.01,), ("fast",), variants=("0_rounds",)),
    Experiment("large", ("wordnet30_oewn", "debian_bookworm_trixie"), (0.01,), ("fast",)),
    Experiment("supervised", DBP15K, (0.01, 0.3), ("supervised",), variants=("all_negatives",)),
)
ON_DWY100K = (Experiment("overall", DWY100K, FRACTIONS, ("fast", "default", *PAPER_METHODS)),)
# Minutes instead of days: the encoder that needs no training, three rounds, and the supervised cell of the main table.
QUICK = (
    Experiment("overall", ZH_EN, (0.01,), ("supervised",)),
    Experiment("overall", ZH_EN, (0.01, 0.3), ("fast",)),
    Experiment("quick", ZH_EN, (0.01, 0.3), ("supervised",), ("propagation",)),
    Experiment("quick", ZH_EN, (0.01, 0.3), PAPER_METHODS[1:], ("propagation",), ("3_rounds",)),
)
DEMO = (
    Experiment("demo", SYNTHETIC, (0.1,), ("supervised",), ("propagation",)),
    Experiment("demo", SYNTHETIC, (0.1,), ("default", "fast", *PAPER_METHODS[1:]), ("propagation",), ("3_rounds",)),
)
SETS = {"full": FULL, "quick": QUICK, "demo": DEMO}


def is_demo(cell: Cell) -> bool:
    """Whether a cell is of the built-in pair, and no result of the project."""
    return cell.dataset in SYNTHETIC


def cells(experiments: Iterable[Experiment], splits: Iterable[int]) -> list[Cell]:
    """All cells of the first split, then those of the second …, none twice."""
    found: dict[str, Cell] = {}
    for split in splits:
        for experiment in experiments:
            for cell in experiment.cells(split):
                found.setdefault(cell.key, cell)
    return list(found.values())


def matching(given: Iterable[Cell], pattern: str) -> list[Cell]:
    """Those whose id holds the pattern; `*` stands for anything, also at the ends."""
    return [cell for cell in given if fnmatchcase(cell.id, f"*{pattern}*")]
