"""What is run: a declarative list of cells, the cheap and most telling first.

Several tables may need the same cell; it is listed, and computed, once: under the experiment that names it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bench.paper.cells import BASELINES, OURS, OWN_ENCODER, PAPER_METHODS, VARIANTS, Cell

DBP15K = ("dbp15k_zh_en", "dbp15k_ja_en", "dbp15k_fr_en")
ZH_EN = DBP15K[:1]
LARGE = ("contea_zh_en", "wordnet30_oewn", "debian_bookworm_trixie")
DWY100K = ("dbp_wd", "dbp_yg")
SYNTHETIC = ("synthetic",)  # built in: for tests and for trying things
FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.3)
NO_SEEDS = 0.0
FEW_AND_MANY = (0.01, 0.3)  # the shares of seeds that have several splits
SPLITS = (0, 1, 2)


@dataclass(frozen=True)
class Experiment:
    """A block of cells: every combination, in the order given."""

    name: str
    datasets: tuple[str, ...]
    fractions: tuple[float, ...]
    methods: tuple[str, ...]
    encoders: tuple[str | None, ...] = (None,)  # None: the method's own
    variants: tuple[str, ...] = ("",)
    splits: tuple[int, ...] = SPLITS[:1]

    def cells(self, splits: Iterable[int] | None = None) -> Iterator[Cell]:
        """Of its own split seeds, or of those given."""
        for split in self.splits if splits is None else splits:
            for fraction in self.fractions:
                for encoder in self.encoders:
                    for method in self.methods:
                        for variant in self.variants:
                            for dataset in self.datasets:
                                chosen = encoder or OWN_ENCODER.get(method, "dual_amn")
                                yield Cell(self.name, dataset, fraction, method, chosen, variant, split)


LATER_FRACTIONS = (0.05, 0.3, 0.1, 0.2)
GENERALITY_FRACTIONS = (0.01, 0.1, 0.3)
GENERALITY_METHODS = ("supervised", *BASELINES, "stea")
THRESHOLDED = ("sim_threshold", "one_to_one")  # baselines that need a threshold
OTHER_ENCODERS = ("rrea", "gcn_align", "alinet")  # the quickest first
K_VARIANTS = tuple(name for name in VARIANTS if name.startswith("k="))
ABLATIONS = ("one_view", "statements", "no_proposals", "unbalanced", "no_start_sweeps", "names")
CHEAP = tuple(
    Experiment("overall", DBP15K, fractions, (method,), splits=splits)
    for method in ("structural", "fast", "large")
    for fractions, splits in ((FRACTIONS, SPLITS[:1]), (FEW_AND_MANY, SPLITS[1:]))
)
BEYOND = (
    Experiment("zero_seeds", DBP15K, (NO_SEEDS,), ("structural", "fast"), variants=("names",)),
    Experiment("large_pairs", LARGE, (0.01,), ("structural",)),
    Experiment("ablation", DBP15K, (0.01,), ("fast",), variants=ABLATIONS),
)
FULL = (
    *CHEAP,
    *BEYOND,
    Experiment("overall", DBP15K, (0.01, *LATER_FRACTIONS), ("full",)),
    Experiment("large_pairs", LARGE, (0.01,), ("large",)),
    Experiment("large_pairs", LARGE[:1], (0.2,), ("structural", "large")),
    Experiment("overall", DBP15K, (0.01,), PAPER_METHODS),
    Experiment("thresholds", ZH_EN, FRACTIONS, THRESHOLDED, variants=("above_0",)),
    Experiment("overall", DBP15K, FEW_AND_MANY, ("full",), splits=SPLITS[1:]),
    Experiment("ablation", DBP15K, (0.01,), ("full",), variants=("no_start_rounds",)),
    Experiment("supervised", DBP15K, (0.3,), ("supervised",)),
    Experiment("overall", DBP15K, LATER_FRACTIONS, PAPER_METHODS),
    Experiment("overall", DBP15K, FEW_AND_MANY, ("stea",), splits=SPLITS[1:]),
    Experiment("zero_seeds", DBP15K, (NO_SEEDS,), ("full",), variants=("names",)),
    Experiment("encoders", ZH_EN, GENERALITY_FRACTIONS, ("full",), OTHER_ENCODERS),
    Experiment("selection", ZH_EN, FRACTIONS, ("stea",), variants=("uni_kg1", "uni_kg2", "bi")),
    Experiment("normalisation", ZH_EN, FRACTIONS, ("stea",), variants=("soft_softmax", "soft_minmax")),
    Experiment("candidates", ZH_EN, FRACTIONS, ("stea",), variants=K_VARIANTS),
    Experiment("supervised", DBP15K, (0.3,), ("supervised",), ("gcn_align",), ("2000_epochs",)),
    Experiment("supervised", DBP15K, (0.3,), ("supervised",), ("rrea", "alinet")),
    Experiment("supervised", DBP15K, (0.3,), ("supervised",), ("alinet",), ("refit_augmented",)),
    Experiment("generality", ZH_EN, GENERALITY_FRACTIONS, GENERALITY_METHODS, OTHER_ENCODERS),
    Experiment("supervised", DBP15K, FEW_AND_MANY, ("supervised",), variants=("all_negatives",)),
)
ON_DWY100K = (Experiment("overall", DWY100K, FRACTIONS, (*OURS, *PAPER_METHODS)),)
# Minutes instead of days: the encoder that needs no training, three rounds, and the supervised cell of the main table.
QUICK = (
    Experiment("overall", ZH_EN, (0.01,), ("supervised",)),
    Experiment("overall", ZH_EN, FEW_AND_MANY, ("fast",)),
    Experiment("quick", ZH_EN, FEW_AND_MANY, ("supervised",), ("propagation",)),
    Experiment("quick", ZH_EN, FEW_AND_MANY, PAPER_METHODS[1:], ("propagation",), ("3_rounds",)),
)
DEMO = (
    Experiment("demo", SYNTHETIC, (0.1,), ("structural",)),
    Experiment("demo", SYNTHETIC, (0.1,), ("supervised",), ("propagation",)),
    Experiment("demo", SYNTHETIC, (0.1,), ("fast", "large", *PAPER_METHODS[1:]), ("propagation",), ("3_rounds",)),
    Experiment("demo", SYNTHETIC, (0.1,), ("full",), ("propagation",), ("3_rounds",)),
)
SETS = {"full": FULL, "cheap": (*CHEAP, *BEYOND), "quick": QUICK, "demo": DEMO}


def is_demo(cell: Cell) -> bool:
    """Whether a cell is of the built-in pair, and no result of the project."""
    return cell.dataset in SYNTHETIC


def cells(experiments: Iterable[Experiment], splits: Iterable[int] | None = None) -> list[Cell]:
    """All cells in order, none twice; of every experiment's own split seeds, or of those given."""
    chosen = None if splits is None else tuple(splits)
    found: dict[str, Cell] = {}
    for experiment in experiments:
        for cell in experiment.cells(chosen):
            found.setdefault(cell.key, cell)
    return list(found.values())


def matching(given: Iterable[Cell], pattern: str) -> list[Cell]:
    """Those whose id holds the pattern; `*` stands for anything, also at the ends."""
    return [cell for cell in given if fnmatchcase(cell.id, f"*{pattern}*")]
