"""Self-training on the real pairs, round by round.

python bench/self_training.py --datasets dbp15k_zh_en --fractions 0.01 --splits 1 [--encoder dual_amn] [--method stea]

Test links are only used for the table. Ids are permuted, ties count against us, ranks are among the test targets.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from inputs import dataset_folder
from measure import machine_facts, markdown

import stea_fast as sf
from stea_fast.selftrain import METHODS, PRESETS, Round


def run(dataset: str, fraction: float, split: int, options: dict[str, Any]) -> dict[str, Any]:
    """One run with its history."""
    pair = sf.load_pair(dataset_folder(dataset), fraction, split)
    begin = perf_counter()

    def show(record: Round) -> None:
        best = record.metrics.get("refined", record.metrics["encoder"])
        print(f"  {dataset} {fraction:.0%} split {split} round {record.number}: Hit@1 {best['hit1']:.3f}", flush=True)

    result = sf.SelfTraining(pair, callbacks=[show], **options).run()
    seconds = perf_counter() - begin
    history = [vars(record) for record in result.history]
    return {"dataset": dataset, "fraction": fraction, "split": split, "seconds": seconds, "history": history}


def report(results: list[dict[str, Any]]) -> str:
    """The last round of every dataset and fraction, mean over the splits."""
    rows = []
    for dataset, fraction in dict.fromkeys((r["dataset"], r["fraction"]) for r in results):
        runs = [r for r in results if (r["dataset"], r["fraction"]) == (dataset, fraction)]
        last = [r["history"][-1] for r in runs]

        def mean(part: str, name: str, last: list[dict[str, Any]] = last) -> str:
            values = [record["metrics"][part][name] for record in last if part in record["metrics"]]
            return f"{np.mean(values):.3f}" if values else "–"

        rows.append([
            f"{dataset} {fraction:.0%}", str(len(runs)), str(last[0]["number"]), mean("encoder", "hit1"),
            mean("refined", "hit1"), mean("refined", "hit10"), mean("refined", "mrr"), mean("pairs", "precision"),
            mean("pairs", "recall"), f"{np.mean([r['seconds'] for r in runs]):.0f}",
            f"{max(record['peak_mb'] for record in last) / 1000:.2f}",
        ])  # fmt: skip
    header = [
        "data", "splits", "rounds", "encoder Hit@1", "refined Hit@1", "Hit@10", "MRR", "pairs: precision", "recall",
        "seconds", "GB",
    ]  # fmt: skip
    return markdown(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="dbp15k_zh_en,dbp15k_ja_en,dbp15k_fr_en")
    parser.add_argument("--fractions", default="0.01")
    parser.add_argument("--splits", type=int, default=1, help="split seeds 0, 1, …")
    parser.add_argument("--preset", default="fast", choices=tuple(PRESETS))
    parser.add_argument("--method", default="stea", choices=METHODS)
    parser.add_argument("--encoder", help="by name, instead of the preset's")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", type=Path, help="also write the histories to this file")
    given = parser.parse_args()
    options = {"preset": given.preset, "method": given.method, "encoder": given.encoder, "rounds": given.rounds}
    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()) + "\n")
    results = [
        run(dataset, float(fraction), split, options)
        for dataset in given.datasets.split(",")
        for fraction in given.fractions.split(",")
        for split in range(given.splits)
    ]
    print("\n" + report(results))
    if given.json:
        given.json.write_text(
            json.dumps({"machine": facts, "options": options, "results": results}, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
