"""Encoders trained on the seeds alone, against the published figures.

python bench/supervised.py [--settings dual_amn,rrea] [--datasets dbp15k_zh_en] [--fractions 0.3] [--splits 2]
                           [--threads 1] [--results bench/results/supervised.jsonl] [--table]

One line per finished cell is appended to the results, and a cell that is there already is not run again: an
interrupted run continues. `--table` runs nothing. The cheapest cells come first.

Hit@1, Hit@10 and MRR are among the test targets, by CSLS over all entities of both graphs; ids are permuted, and ties
count against us.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from inputs import dataset_folder
from measure import machine_facts, markdown

import stea_fast as sf
from stea_fast import encoders
from stea_fast._util.memory import peak

RESULTS = Path(__file__).resolve().parent / "results" / "supervised.jsonl"
DATASETS = ("dbp15k_zh_en", "dbp15k_ja_en", "dbp15k_fr_en")
K, CSLS = 100, 10  # a true target below the hundredth place counts 0 in the MRR
WITHIN = 0.02


class Setting(NamedTuple):
    """An encoder with its options; epochs None are the encoder's own."""

    encoder: str
    options: dict[str, Any]
    epochs: int | None = None


SETTINGS = {
    "dual_amn": Setting("dual_amn", {}),
    "dual_amn_8192": Setting("dual_amn", {"num_negatives": 8192}),
    "gcn_align": Setting("gcn_align", {}, 2000),
    "rrea": Setting("rrea", {}),
    "alinet": Setting("alinet", {}),
}
# The paper's supervised Dual-AMN (its main table) and its table of baselines at 30 %, Hit@1 of zh, ja, fr. GCN-Align is
# structure only here; the published figure has attributes, so the target is a run of the original's formulas on zh_en.
PUBLISHED = {
    ("dual_amn", 0.01): (0.139, 0.097, 0.121),
    ("dual_amn", 0.3): (0.725, 0.722, 0.750),
    ("rrea", 0.3): (0.715, 0.713, 0.739),
    ("alinet", 0.3): (0.539, 0.549, 0.552),
    ("gcn_align", 0.3): (0.429, None, None),
}
ORDER = (
    ("dual_amn", 0.01, DATASETS),
    ("dual_amn_8192", 0.01, DATASETS),
    ("dual_amn", 0.3, DATASETS),
    ("dual_amn_8192", 0.3, DATASETS),
    ("gcn_align", 0.3, DATASETS[:1]),
    ("rrea", 0.3, DATASETS[:1]),
    ("alinet", 0.3, DATASETS[:1]),
    ("rrea", 0.3, DATASETS[1:]),
    ("alinet", 0.3, DATASETS[1:]),
    ("gcn_align", 0.3, DATASETS[1:]),
)


class Cell(NamedTuple):
    """What one line of the results is about."""

    setting: str
    fraction: float
    dataset: str
    split: int


def cells(splits: int) -> Iterator[Cell]:
    """All cells of the first split, then those of the second …"""
    for split in range(splits):
        for setting, fraction, datasets in ORDER:
            for dataset in datasets:
                yield Cell(setting, fraction, dataset, split)


def run(cell: Cell) -> dict[str, Any]:
    """Train once on the seeds, and judge the embeddings."""
    pair = sf.load_pair(dataset_folder(cell.dataset), cell.fraction, cell.split)
    setting = SETTINGS[cell.setting]
    encoder: Any = encoders.make(setting.encoder, pair.kg1, pair.kg2, seed=cell.split, **setting.options)
    epochs = encoder.first_epochs if setting.epochs is None else setting.epochs
    done = 0

    def progress(epoch: int, total: int) -> None:
        nonlocal done
        done = epoch
        if epoch % max(1, total // 20) == 0:
            print(f"  {epoch} of {total} epochs, {perf_counter() - begin:.0f} s", flush=True)

    begin = perf_counter()
    encoder.fit(pair.train, epochs, progress=progress)
    seconds = perf_counter() - begin
    found = sf.evaluate(sf.topk(*encoder.embeddings(), K, CSLS), pair.test)
    return {
        **cell._asdict(), "hit1": found.hit1, "hit10": found.hit10, "mrr": found.mrr, "epochs": done,
        "seconds": seconds, "peak_mb": peak() / 1e6, "threads": torch.get_num_threads(), "machine": machine_facts(),
    }  # fmt: skip


def known(path: Path) -> list[dict[str, Any]]:
    """The finished cells; a last line that was cut off is not one of them."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def key(result: dict[str, Any]) -> Cell:
    return Cell(*(result[field] for field in Cell._fields))


def table(results: list[dict[str, Any]]) -> str:
    """Mean over the splits of every setting, fraction and dataset, beside the published figure."""
    groups: dict[tuple[str, float, str], list[dict[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["setting"], result["fraction"], result["dataset"]), []).append(result)
    rows = []
    for (setting, fraction, dataset), group in sorted(groups.items()):
        hit1, hit10, mrr, seconds, epochs = (
            float(np.mean([result[name] for result in group])) for name in ("hit1", "hit10", "mrr", "seconds", "epochs")
        )
        published = PUBLISHED.get((setting, fraction), (None,) * 3)[DATASETS.index(dataset)]
        verdict = ""
        if published is not None:
            verdict = "met" if hit1 >= published - WITHIN else f"MISSED by {published - WITHIN - hit1:.3f}"
        rows.append([
            f"{setting}, {dataset}, {fraction:.0%}", str(len(group)), f"{hit1:.3f}", f"{hit10:.3f}", f"{mrr:.3f}",
            "–" if published is None else f"{published:.3f}", verdict, f"{epochs:.0f}", f"{seconds:,.0f}",
        ])  # fmt: skip
    header = ["setting", "splits", "Hit@1", "Hit@10", "MRR", "published Hit@1", f"within {WITHIN}"]
    return markdown([*header, "epochs", "seconds of training"], rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--fractions", default="0.01,0.3")
    parser.add_argument("--splits", type=int, default=2, help="split seeds 0, 1, …")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="run nothing, show the table")
    return parser.parse_args()


def main() -> None:
    given = _arguments()
    torch.set_num_threads(given.threads)
    wanted = given.settings.split(","), {float(f) for f in given.fractions.split(",")}, given.datasets.split(",")
    for cell in [] if given.table else cells(given.splits):
        asked = all(part in choice for part, choice in zip(cell, wanted, strict=False))
        if not asked or cell in {key(result) for result in known(given.results)}:
            continue
        print(f"{cell.setting}, {cell.dataset}, {cell.fraction:.0%}, split {cell.split}", flush=True)
        result = run(cell)
        print(f"  Hit@1 {result['hit1']:.3f}, {result['seconds']:,.0f} s", flush=True)
        with given.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
    print(table(known(given.results)))


if __name__ == "__main__":
    main()
