"""How far the probabilities of `align` can be trusted, judged by test links after the run.

    python -m bench.paper.links --pair dbp15k_zh_en [--fraction 0.01] [--split 0] [--preset fast]
                                [--calibration holdout]

Prints one JSON object: of the links whose source is in the reference, precision, mean probability and expected
calibration error; the expected precision that `align` states, with its interval; and what a wanted precision of .95
reaches.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

import stea_fast as sf
from bench.lib.inputs import dataset_folder
from bench.lib.measure import machine_facts
from stea_fast.alignment.link_table import STATUSES, threshold_for_precision
from stea_fast.data.sealed import reveal
from stea_fast.evaluation.metrics import reliability

WANTED = 0.95


def judge(pair: sf.Pair, alignment: sf.Alignment) -> dict[str, Any]:
    """What the test links say of the probabilities."""
    links = alignment.links
    truth = np.full(pair.kg1.num_entities, -2)
    sources, targets = reveal(pair.test).T
    truth[sources] = targets
    right, known = links.targets == truth, truth >= 0
    chosen = known & (links.status == STATUSES.index("link"))
    probs = np.where(np.isnan(links.probs) | (links.status == STATUSES.index("seed")), 0.0, links.probs)
    sure = known & (probs >= threshold_for_precision(probs, WANTED))
    return {
        "calibration": alignment.calibrator.note, "links in the reference": int(chosen.sum()),
        "precision": float(right[chosen].mean()), "mean probability": float(probs[chosen].mean()),
        "calibration error": reliability(probs[chosen], right[chosen]).error,
        "expected precision": alignment.expected_precision,
        f"links at {WANTED}": int(sure.sum()), f"reached at {WANTED}": float(right[sure].mean()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", required=True)
    parser.add_argument("--fraction", type=float, default=0.01)
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--calibration", default="holdout")
    given = parser.parse_args()
    pair = sf.load_pair(dataset_folder(given.pair), given.fraction, given.split)
    alignment = sf.align(pair, preset=given.preset, calibration=given.calibration)
    print(json.dumps({**vars(given), **judge(pair, alignment), "machine": machine_facts()}, indent=1))


if __name__ == "__main__":
    main()
