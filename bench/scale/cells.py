"""The cells of the table: which pair, from how many seeds, by which preset."""

from __future__ import annotations

from dataclasses import dataclass

import stea_fast as sf
from bench.lib.inputs import dataset_folder

SIZES = {"15K": 15_000, "50K": 50_000, "150K": 150_000, "500K": 500_000, "1M": 1_000_000, "2M": 2_000_000}
FRACTIONS = (0.01, 0.2)
DATASETS = ("contea_zh_en", "wordnet30_oewn", "debian_bookworm_trixie")
SMALL_DATASETS = (
    "dbp15k_zh_en",
    "dbp15k_ja_en",
    "dbp15k_fr_en",
)  # what the presets for large graphs lose on small ones
PRESETS = ("structural", "large")


@dataclass(frozen=True)
class Cell:
    """One run."""

    pair: str
    fraction: float
    preset: str

    @property
    def key(self) -> str:
        """How `--only` and the results name it."""
        return f"{self.pair}/{self.fraction:.0%}/{self.preset}"

    def load(self) -> sf.Pair:
        """The graphs and seeds, split 0."""
        profile, _, size = self.pair.partition("-")
        if size in SIZES:
            return sf.synthetic_pair(SIZES[size], seed=0, profile=profile, seed_fraction=self.fraction)
        return sf.load_pair(dataset_folder(self.pair), self.fraction, 0)


def all_cells() -> list[Cell]:
    """Small pairs first."""
    synthetic = [f"{profile}-{size}" for size in SIZES for profile in ("dbp1m", "dense")]
    pairs = [*synthetic, *DATASETS]
    cells = [Cell(pair, fraction, preset) for pair in pairs for fraction in FRACTIONS for preset in PRESETS]
    small = [Cell(pair, 0.01, preset) for pair in SMALL_DATASETS for preset in PRESETS]
    single = [Cell("dbp15k_zh_en", 0.3, "structural"), Cell("debian_bookworm_trixie", 0.01, "fast")]
    return [*cells, *small, *single]
