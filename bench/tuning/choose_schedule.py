"""How schedules of self-training do without test labels: the ground for the defaults of `Schedule`.

    python -m bench.tuning.choose_schedule [--datasets dbp15k_ja_en] [--settings default,loose]
                                           [--preset fast] [--rounds 3]

Of a split at 5 % that no reported figure uses (split seed 7), 150 seeds train and the other 600 judge: Hit@1 over the
600, ranked among all targets. All other links are taken away before anything is computed.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import stea_fast as sf
from bench.lib import inputs
from bench.lib.measure import machine_facts, markdown

SPLIT_SEED, FRACTION, NUM_SEEDS, NUM_HIDDEN = 7, 0.05, 150, 600
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "unbalanced": {"refine_options": {"balance": 0}},
    "falling": {"schedule": sf.Schedule(evidence_weights=(16, 4, 2, 1))},
    "constant": {"schedule": sf.Schedule(evidence_weights=(16,))},
    "loose": {"schedule": sf.Schedule(thresholds=(0.5,))},
    "cool": {"schedule": sf.Schedule(beta=8.0)},
}


def trial(dataset: str) -> tuple[sf.Pair, np.ndarray]:
    """A pair that knows 150 seeds and nothing else, and the hidden links."""
    full = sf.load_pair(inputs.dataset_folder(dataset), FRACTION, SPLIT_SEED)
    order = np.random.default_rng(1).permutation(len(full.train))
    kept, hidden = full.train[order[:NUM_SEEDS]], full.train[order[NUM_SEEDS : NUM_SEEDS + NUM_HIDDEN]]
    return replace(full, links=kept, train=kept, valid=kept[:0], test=kept[:0]), hidden


def judge(dataset: str, name: str, preset: str, rounds: int | None) -> dict[str, Any]:
    """Hit@1 of the hidden seeds, of the encoder and refined."""
    pair, hidden = trial(dataset)
    begin = perf_counter()
    result = sf.SelfTraining(pair, preset=preset, rounds=rounds, **SETTINGS[name]).run()
    judged = {"encoder": result.candidates, "refined": result}
    found = {part: sf.evaluate(prediction, hidden, pool="all").hit1 for part, prediction in judged.items()}
    row = {"dataset": dataset, "setting": name, **found, "pairs": len(result.pairs), "seconds": perf_counter() - begin}
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="dbp15k_zh_en,dbp15k_ja_en,dbp15k_fr_en")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--preset", default="full")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    given = parser.parse_args()
    rows = [
        judge(dataset, name, given.preset, given.rounds)
        for dataset in given.datasets.split(",")
        for name in given.settings.split(",")
    ]
    header = ["hidden seeds", "schedule", "encoder Hit@1", "refined Hit@1", "pairs", "seconds"]
    cells = [
        [row["dataset"], row["setting"], *(f"{row[part]:.3f}" for part in ("encoder", "refined")), f"{row['pairs']:,}",
         f"{row['seconds']:.0f}"]
        for row in rows
    ]  # fmt: skip
    print("\n" + markdown(header, cells))
    if given.json:
        report = {"machine": machine_facts(), "preset": given.preset, "rounds": given.rounds, "rows": rows}
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
