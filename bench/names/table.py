"""The table of alignments without seeds: every pair with names, closed and all targets, and what each part adds.

python -m bench.names.table [--cell PATTERN] [--again] [--list] [--render]

A cell is a pair, where its names come from, what counts as evidence, and a share of seeds. Every cell is run once, in
this process, and appended to bench/results/names/cells.jsonl; one that is there is not run again. `--render` writes the
table into docs/without-seeds.md. Test links are read only to judge, and the prior of the calibration is fitted to the
hidden seeds of other pairs.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatch
from typing import Any

import numpy as np

import stea_fast as sf
from bench.lib import folders
from bench.paper import store
from bench.paper.links import aligned, judge
from stea_fast._util import memory
from stea_fast.data.sealed import SealedLinks, reveal, seal
from stea_fast.evaluation.metrics import PairsOnly

CELLS = folders.RESULTS / "names" / "cells.jsonl"
PAGE = folders.DOCS / "without-seeds.md"
BEGIN, END = "<!-- table: python -m bench.names.table --render -->\n", "<!-- end of the table -->\n"
NAMES = {
    "dbp15k_fr_en": ("raw", "translated"),
    "dbp15k_zh_en": ("raw", "translated"),
    "dbp15k_ja_en": ("raw",),
}
SEEDS = 0.01
SPLITS = (0, 1, 2)
DEBIAN = "debian_bookworm_trixie"
FIGURES = ("closed", "all", "precision", "recall", "f1", "calibration_error")
# As their authors report them: candidates are the gold targets only, and names are translated.
PUBLISHED = {
    "FGWEA, names": {"zh": 0.959, "ja": 0.982, "fr": 0.994},
    "FGWEA, names and attributes": {"zh": 0.987, "ja": 0.991, "fr": 0.998},
    "FLORA, literals": {"zh": 0.976},
}


@dataclass(frozen=True)
class Cell:
    """One alignment of the table."""

    pair: str
    names: str
    evidence: str
    preset: str
    seed_fraction: float = 0.0
    split: int = 0

    @property
    def all_evidence(self) -> str:
        """The evidence with the seeds, in words."""
        split = f" (split {self.split})" if self.split else ""
        return self.evidence + (f" + {self.seed_fraction:.0%} seeds{split}" if self.seed_fraction else "")

    @property
    def key(self) -> str:
        """The name of the cell, by which it is asked for and found again."""
        return f"{self.pair} {self.names}: {self.all_evidence}, {self.preset}"


def cells() -> list[Cell]:
    """All cells of the table, the cheap ones first."""
    named = [(pair, names) for pair, kinds in NAMES.items() for names in kinds]
    return [
        *(Cell(*each, "names", "structural") for each in named),
        *(Cell(*each, "names + structure", "structural") for each in named),
        *(Cell(pair, "-", "structure", "structural", SEEDS, split) for pair in NAMES for split in SPLITS),
        *(Cell(*each, "names + structure", "structural", SEEDS, split) for each in named for split in SPLITS),
        *(Cell(*each, "names + structure", "fast") for each in named),
        *(Cell(pair, "-", "structure", "fast", SEEDS) for pair in NAMES),
        *(Cell(*each, "names + structure", "fast", SEEDS) for each in named),
        Cell(DEBIAN, "hidden", "values", "structural"),
        Cell(DEBIAN, "hidden", "values + structure", "structural"),
        *(Cell(*each, "names + structure", "full") for each in named),
    ]


def load(cell: Cell) -> sf.Pair:
    """The pair of a cell; the names of Debian's packages give the answer away, and are taken from it."""
    folder = folders.DATA / cell.pair
    files = (None, None)
    if cell.names == "translated":
        files = (folder / "translated_names_1", folder / "translated_names_2")
    return sf.load_pair(folder, seed_fraction=cell.seed_fraction, split_seed=cell.split, names=files)


def measured(cell: Cell) -> dict[str, Any]:
    """Run a cell: quality, links, calibration, seconds and memory."""
    begin = time.perf_counter()
    pair = load(cell)
    parts = cell.evidence.split(" + ")
    clues = None
    if parts != ["structure"]:
        clues = sf.find_clues(pair, names="names" in parts, values="values" in parts)
    run = pair if "structure" in parts else pair.without_structure()
    alignment = aligned(run, cell.pair, cell.preset, "holdout", clues)
    seconds = time.perf_counter() - begin
    test = _with_values(run) if cell.pair == DEBIAN else run.test
    closed, opened = (sf.evaluate(alignment, test, pool=pool) for pool in ("test", "all"))
    links = alignment.pairs[np.isin(alignment.pairs[:, 0], reveal(test)[:, 0])]
    judged = sf.evaluate(PairsOnly(links), test)
    trusted = judge(replace(run, test=test), alignment, links[:0, 0])
    return {
        "cell": cell.key, "date": date.today().isoformat(), "machine": platform.machine(), "version": sf.__version__,
        "threads": os.environ.get("OMP_NUM_THREADS", "all"), "seconds": round(seconds, 1),
        "peak_mb": round(memory.peak() / 1e6), "test_links": len(test),
        "closed": closed.hit1, "all": opened.hit1, "mrr": opened.mrr,
        "precision": judged.precision, "recall": judged.recall, "f1": judged.f1,
        "calibration_error": trusted["calibration error of links"],
        "mean_probability": trusted["mean probability"],
        "calibration": alignment.calibrator.note, "expected_precision": list(alignment.expected_precision),
        "found": [] if clues is None else list(clues.found),
    }  # fmt: skip


def _with_values(pair: sf.Pair) -> SealedLinks:
    """The test links both of whose entities have values: of the others values say nothing."""
    links = reveal(pair.test)
    for side, kg in enumerate((pair.kg1, pair.kg2)):
        assert kg.attributes is not None
        links = links[np.isin(links[:, side], kg.attributes.entity)]
    return seal(links)


def rendered(records: list[dict[str, Any]]) -> str:
    """The table of all finished cells, the last run of each."""
    done = {record["cell"]: record for record in records}
    rows = [
        "| pair | names | evidence | preset | Hit@1, test | Hit@1, all | precision | recall | F1 | error | seconds |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for cell in cells():
        record = done.get(cell.key)
        if record is not None:
            figures = [f"{record[name]:.3f}" if name in record else "" for name in FIGURES]  # older lines lack some
            words = [cell.pair, cell.names, cell.all_evidence, f"`{cell.preset}`", *figures, f"{record['seconds']:.0f}"]
            rows.append(f"| {' | '.join(words)} |")
    return "\n".join([*rows, ""])


def published() -> str:
    """What others have published without seeds, with translated names."""
    languages = ("zh", "ja", "fr")
    rows = ["| published, Hit@1 among the gold targets | zh_en | ja_en | fr_en |", "| --- | ---: | ---: | ---: |"]
    for system, figures in PUBLISHED.items():
        cells_ = [f"{figures[language]:.3f}" if language in figures else "" for language in languages]
        rows.append(f"| {system} | {' | '.join(cells_)} |")
    return "\n".join([*rows, ""])


def render() -> None:
    """Write both tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    tables = f"{BEGIN}\n{rendered(store.read(CELLS))}\n{published()}\n{END}"
    PAGE.write_text(before + tables + after, encoding="utf-8")


def main() -> None:
    """Run the cells that were asked for and are not there, or render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cell", default="*", help="a pattern of names of cells, such as '*fr_en raw*structural'")
    parser.add_argument("--again", action="store_true", help="run finished cells once more")
    parser.add_argument("--list", action="store_true", help="only say which cells there are")
    parser.add_argument("--render", action="store_true", help="write the table into docs/without-seeds.md")
    arguments = parser.parse_args()
    if arguments.render:
        render()
        return
    finished = {record["cell"] for record in store.read(CELLS)}
    for cell in cells():
        if fnmatch(cell.key, arguments.cell) and (arguments.list or arguments.again or cell.key not in finished):
            if arguments.list:
                print(cell.key, "(finished)" if cell.key in finished else "")
                continue
            record = measured(cell)
            store.append(CELLS, record)
            figures = (f"{name} {record[name]:.3f}" for name in FIGURES)
            print(cell.key, *figures, f"{record['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
