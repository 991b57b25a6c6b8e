"""How far the probabilities of `align` can be trusted, judged by test links after the run.

    python -m bench.paper.links --pair dbp15k_zh_en [--fraction 0.01 | --seeds 15] [--split 0] [--remove 1000]
                                [--preset fast] [--calibration holdout] [--results FILE]

The prior of the calibration is fitted to the hidden seeds of all other pairs: those of the pair itself are test links
of the split that is judged here. `--remove` takes the counterparts of some test sources out of the target graph. Prints
one JSON object, and adds it to the file as a line: Hit@1 of the rankings; of the links whose source is in the reference
precision, mean probability and expected calibration error; the error over the best candidates of all sources whose
truth is known; the share of sources without counterpart that are linked with at least .9; the expected precision that
`align` states, with its interval; and what a wanted precision of .95 reaches.
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
from bench.lib.inputs import dataset_folder
from bench.lib.measure import machine_facts
from bench.paper.compute import commit
from bench.tuning import fit_calibration_prior as prior_of_pairs
from stea_fast.alignment.api import FOLDS, decided
from stea_fast.alignment.calibration import by_prior, cross_fit
from stea_fast.alignment.link_table import STATUSES, threshold_for_precision
from stea_fast.data.sealed import reveal
from stea_fast.evaluation.metrics import reliability
from stea_fast.selftraining.history import SelfTrainingResult

WANTED, SURE = 0.95, 0.9
RELATED = {"contea_zh_en": "dbp15k_zh_en"}  # graphs of the same sources: hidden seeds of one are links of the other


def load(name: str, fraction: float, seeds: int | None, split: int) -> sf.Pair:
    """A pair, with exactly so many seeds where a number is given."""
    pair = sf.load_pair(dataset_folder(name), fraction, split)
    return pair if seeds is None else replace(pair, train=pair.train[:seeds])


def without_targets(pair: sf.Pair, count: int) -> tuple[sf.Pair, np.ndarray]:
    """The pair after some test targets lost all their triples, and the sources that are left without counterpart."""
    links = reveal(pair.test)
    removed = links[np.random.default_rng(0).permutation(len(links))[:count]]
    return replace(pair, kg2=pair.kg2.without(removed[:, 1])), removed[:, 0]


def aligned(pair: sf.Pair, name: str, preset: str, calibration: str, clues: sf.Clues | None = None) -> sf.Alignment:
    """As `align` does it, with a prior that knows nothing of this pair."""
    left_out = {name, RELATED.get(name, name)}
    prior = prior_of_pairs.fitted([record for record in prior_of_pairs.read() if record["pair"] not in left_out])

    def run(part: sf.Pair, clues: sf.Clues | None = None) -> SelfTrainingResult:
        return sf.SelfTraining(part, preset=preset, clues=clues, progress=False).run()

    folds = FOLDS[calibration]
    calibrator = (
        cross_fit(pair, run, clues=clues, folds=folds, prior=prior) if folds else by_prior("not asked for", prior)
    )
    return decided(pair, run(pair, clues), calibrator, {}, clues=clues)


def judge(pair: sf.Pair, alignment: sf.Alignment, absent: np.ndarray) -> dict[str, Any]:
    """What the test links say of the probabilities."""
    links = alignment.links
    truth = np.full(pair.kg1.num_entities, -2)
    sources, targets = reveal(pair.test).T
    truth[sources] = targets
    truth[absent] = -1
    known = truth >= -1
    probs = np.where(np.isnan(links.considered_probs), 0.0, links.considered_probs)
    right = (links.considered == truth) & (truth >= 0)
    chosen = known & (links.status == STATUSES.index("link"))
    beyond_seeds = np.where(links.status == STATUSES.index("seed"), 0.0, probs)
    sure = known & (probs >= threshold_for_precision(beyond_seeds, WANTED))
    return {
        "hit1": sf.evaluate(alignment, pair.test).hit1, "calibration": alignment.calibrator.note,
        "links in the reference": int(chosen.sum()), "precision": float(right[chosen].mean()),
        "mean probability": float(probs[chosen].mean()),
        "calibration error of links": reliability(probs[chosen], right[chosen]).error,
        "calibration error of all sources with a known truth": reliability(probs[known], right[known]).error,
        "calibration error of the method's own probabilities": _own_error(alignment, truth, known),
        f"sources without counterpart linked at {SURE}":
            float((probs[absent] >= SURE).mean()) if len(absent) else None,
        "expected precision": alignment.expected_precision,
        f"links at {WANTED}": int(sure.sum()),
        f"reached at {WANTED}": float(right[sure].mean()) if sure.any() else None,
    }  # fmt: skip


def _own_error(alignment: sf.Alignment, truth: np.ndarray, known: np.ndarray) -> float:
    """Of the refined probabilities before calibration."""
    indices, probs = (np.asarray(getattr(alignment.forward, name))[:, 0] for name in ("indices", "scores"))
    return reliability(np.clip(probs, 0.0, 1.0)[known], ((indices == truth) & (truth >= 0))[known]).error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", required=True)
    parser.add_argument("--fraction", type=float, default=0.01)
    parser.add_argument("--seeds", type=int, help="only so many of the seeds")
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--remove", type=int, default=0, help="so many test targets are taken out of the target graph")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--calibration", default="holdout", choices=tuple(FOLDS))
    parser.add_argument("--results", type=Path, help="a file to which the result is added as a line")
    given = parser.parse_args()
    pair = load(given.pair, given.fraction, given.seeds, given.split)
    pair, absent = without_targets(pair, given.remove)
    begin = perf_counter()
    found = judge(pair, aligned(pair, given.pair, given.preset, given.calibration), absent)
    asked = {name: value for name, value in vars(given).items() if name != "results"}
    line = {**asked, **found, "seconds": perf_counter() - begin, "commit": commit(), "machine": machine_facts()}
    print(json.dumps(line, indent=1))
    if given.results is not None:
        with given.results.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
