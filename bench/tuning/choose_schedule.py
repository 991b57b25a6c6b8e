"""How schedules and views of self-training do without test labels: the ground for the presets.

    python -m bench.tuning.choose_schedule [--datasets dbp15k_ja_en] [--settings default,loose]
                                           [--preset fast] [--rounds 3] [--split 8] [--seeds 750]

Of a split at 30 % that no reported figure uses (split seed 7 by default), 150 seeds train and the other 4,350 judge:
Hit@1 over these, ranked among all targets. All other links are taken away before anything is computed.
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
from stea_fast.refinement.structural import ALONE, STRUCTURAL

SPLIT_SEED, FRACTION, NUM_SEEDS = 7, 0.3, 150
# What is changed of the preset's method.
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "one_view": {"two_views": False},
    **{
        name: {"refinement": sf.Schedule(**options)}
        for name, options in {
            "unbalanced": {"balance": 0},
            "falling": {"evidence_weights": (16, 4, 2, 1)},
            "constant": {"evidence_weights": (16,)},
            "loose": {"thresholds": (0.5,)},
            "cool": {"beta": 8.0},
        }.items()
    },
    "all_proposals": {"structure": STRUCTURAL},
    "strong_proposals": {"structure": ALONE},
}
# What is changed of the preset's search.
SEARCHING: dict[str, dict[str, Any]] = {"exact": {"budget": 1e18}}
# What is changed of the options of the preset's encoder.
TRAINING: dict[str, dict[str, Any]] = {
    "batch_1024": {"batch_size": 1024, "learning_rate": 0.005},
    "batch_2048_slow": {"batch_size": 2048, "learning_rate": 0.005},
    "negatives_4096": {"num_negatives": 4096},
}


def trial(dataset: str, split: int, seeds: int) -> tuple[sf.Pair, np.ndarray]:
    """A pair that knows so many seeds and nothing else, and the hidden links."""
    full = sf.load_pair(inputs.dataset_folder(dataset), FRACTION, split)
    order = np.random.default_rng(1).permutation(len(full.train))
    kept, hidden = full.train[order[:seeds]], full.train[order[seeds:]]
    return replace(full, links=kept, train=kept, valid=kept[:0], test=kept[:0]), hidden


def configuration(names: str, preset: str) -> sf.SelfTrainingConfig:
    """A preset with some of the settings, joined by "+", instead of its own."""
    chosen = sf.preset(preset)
    assert isinstance(chosen.method, sf.Stea), "only this method has a schedule"
    for name in names.split("+"):
        chosen = replace(
            chosen,
            encoder=replace(chosen.encoder, options={**chosen.encoder.options, **TRAINING.get(name, {})}),
            method=replace(chosen.method, **SETTINGS.get(name, {})),
            search=replace(chosen.search, **SEARCHING.get(name, {})),
        )
    return chosen


def judge(dataset: str, name: str, preset: str, rounds: int | None, split: int, seeds: int) -> dict[str, Any]:
    """Hit@1 of the hidden seeds, of the encoder and refined."""
    pair, hidden = trial(dataset, split, seeds)
    begin = perf_counter()
    result = sf.SelfTraining(pair, preset=configuration(name, preset), rounds=rounds).run()
    judged = {"encoder": result.candidates, "refined": result}
    found = {part: sf.evaluate(prediction, hidden, pool="all").hit1 for part, prediction in judged.items()}
    row = {
        "dataset": dataset,
        "split": split,
        "seeds": seeds,
        "setting": name,
        **found,
        "pairs": len(result.pairs),
        "seconds": perf_counter() - begin,
    }
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="dbp15k_zh_en,dbp15k_ja_en,dbp15k_fr_en")
    parser.add_argument("--settings", default=",".join(SETTINGS), help="also: " + ", ".join([*TRAINING, *SEARCHING]))
    parser.add_argument("--preset", default="full")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--split", type=int, default=SPLIT_SEED)
    parser.add_argument("--seeds", type=int, default=NUM_SEEDS)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    given = parser.parse_args()
    rows = [
        judge(dataset, name, given.preset, given.rounds, given.split, given.seeds)
        for dataset in given.datasets.split(",")
        for name in given.settings.split(",")
    ]
    header = ["hidden seeds", "setting", "encoder Hit@1", "refined Hit@1", "pairs", "seconds"]
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
