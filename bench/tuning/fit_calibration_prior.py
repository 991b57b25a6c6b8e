"""The prior of the link model: what separates right links from wrong ones, by hidden seeds of several pairs.

    python -m bench.tuning.fit_calibration_prior collect --pair dbp15k_ja_en [--split 7] [--seeds 150] [--preset fast]
                                                         [--hidden 750] [--absent 150]
    python -m bench.tuning.fit_calibration_prior fit [--without dbp15k_zh_en] [--write]

`collect` takes a split at 15 % that no reported figure uses: some of its links are seeds, others are hidden, and of
some of these the counterpart is taken out of the target graph; all other links are dropped before anything is
computed. It runs a preset, describes the best candidates of the hidden links' sources, and adds them to
`bench/results/tuning/links.jsonl`. `fit` fits the model to all of them with a weak prior, judges it on each pair by a
model fitted to the others, and with `--write` stores it as `stea_fast/alignment/link_prior.json`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import stea_fast as sf
from bench.lib import inputs
from bench.lib.folders import RESULTS, ROOT
from stea_fast.alignment.joint_probabilities import joint_probabilities
from stea_fast.alignment.link_features import FEATURES, describe_links
from stea_fast.alignment.link_model import Prior, fit
from stea_fast.evaluation.metrics import reliability

FRACTION = 0.15
DATA = RESULTS / "tuning" / "links.jsonl"
PRIOR = ROOT / "stea_fast" / "alignment" / "link_prior.json"
WEAK = 3.0  # standard deviation of a coefficient about which nothing is known; features have deviation 1
BETWEEN_PAIRS = 0.5  # least standard deviation that is allowed for differences between pairs


def collect(
    pair_name: str, split: int, num_seeds: int, preset: str, *, num_hidden: int = 750, num_absent: int = 150
) -> dict[str, Any]:
    """Features of the hidden links of one pair, and which of them a run got right."""
    if pair_name == "synthetic":
        full = sf.synthetic_pair(4000, split, seed_fraction=0.5, edge_noise=0.3, mean_degree=4.0)
    else:
        full = sf.load_pair(inputs.dataset_folder(pair_name), FRACTION, split)
    rng = np.random.default_rng(split)
    order = rng.permutation(len(full.train))
    kept, hidden = full.train[order[:num_seeds]], full.train[order[num_seeds : num_seeds + num_hidden]]
    absent = np.arange(len(hidden)) < num_absent
    kg2 = full.kg2.without(hidden[absent, 1])
    pair = replace(full, kg2=kg2, links=kept, train=kept, valid=kept[:0], test=kept[:0])
    result = sf.SelfTraining(pair, preset=preset, progress=False).run()
    described = describe_links(pair, joint_probabilities(result), result, result.candidates)
    rows = hidden[:, 0]
    right = (described.targets[rows] == hidden[:, 1]) & ~absent
    return {
        "pair": pair_name, "split": split, "seeds": len(kept), "preset": preset, "features": list(FEATURES),
        "x": np.round(described.features[rows], 5).tolist(), "p": np.round(described.probs[rows], 6).tolist(),
        "right": right.astype(int).tolist(), "absent": absent.astype(int).tolist(),
    }  # fmt: skip


def weak_prior(features: np.ndarray) -> Prior:
    """Scales of the features, and nothing known of their weights."""
    size = 1 + features.shape[1]
    scales = np.maximum(features.std(axis=0), 1e-3)
    return Prior(np.zeros(size), np.full(size, WEAK), features.mean(axis=0), scales, "nothing")


def fitted(records: list[dict[str, Any]]) -> Prior:
    """The prior of some records: weights of all together, and how far those of single pairs lie from them."""
    features, right, absent, pairs = _arrays(records)
    weak = weak_prior(features)
    theta = fit(features, right, weak, absent).theta
    around = replace(weak, theta=theta, deviations=np.full(len(theta), 1.0))
    parts = [pairs == name for name in np.unique(pairs)]
    single = np.stack([fit(features[part], right[part], around, absent[part]).theta for part in parts])
    deviations = np.maximum(np.sqrt(((single - theta) ** 2).mean(axis=0)), BETWEEN_PAIRS)
    names = ", ".join(sorted({f"{record['pair']} ({record['seeds']} seeds)" for record in records}))
    return replace(around, deviations=deviations, data=f"hidden seeds of {names}")


def _arrays(records: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, which links are right, which counterparts were taken away, and the pair of every link."""
    features = np.concatenate([np.array(record["x"]) for record in records])
    right, absent = (
        np.concatenate([np.array(record[name], dtype=bool) for record in records]) for name in ("right", "absent")
    )
    pairs = np.concatenate([[record["pair"]] * len(record["right"]) for record in records])
    return features, right, absent, pairs


def read(path: Path = DATA) -> list[dict[str, Any]]:
    """What `collect` has written."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def judge(records: list[dict[str, Any]]) -> None:
    """Calibration errors of every record, by the method's own probability and by models of the other pairs."""
    print(f"{'hidden seeds':40}{'right':>8}{'own':>8}{'prior':>8}{'absent ≥ .9':>13}")
    for record in records:
        others = [other for other in records if other["pair"] != record["pair"]]
        if not others:
            continue
        features, right, absent, _ = _arrays([record])
        probs = fitted(others).model()(features)
        present = ~absent
        own = reliability(np.clip(np.array(record["p"]), 0, 1)[present], right[present]).error
        error = reliability(probs[present], right[present]).error
        label = f"{record['pair']} split {record['split']} {record['seeds']} {record['preset']}"
        wrong = (probs[absent] >= 0.9).mean()
        print(f"{label:40}{right[present].mean():8.3f}{own:8.3f}{error:8.3f}{wrong:13.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("--pair", required=True)
    collecting.add_argument("--split", type=int, default=7)
    collecting.add_argument("--seeds", type=int, default=150)
    collecting.add_argument("--preset", default="fast")
    collecting.add_argument("--hidden", type=int, default=750, help="links that the run does not see")
    collecting.add_argument("--absent", type=int, default=150, help="how many of these lose their counterpart")
    fitting = commands.add_parser("fit")
    fitting.add_argument("--without", default="", help="pairs to leave out, separated by commas")
    fitting.add_argument("--write", action="store_true")
    for each in (collecting, fitting):
        each.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    if given.command == "collect":
        given.data.parent.mkdir(parents=True, exist_ok=True)
        record = collect(
            given.pair, given.split, given.seeds, given.preset, num_hidden=given.hidden, num_absent=given.absent
        )
        with given.data.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
        return
    records = [record for record in read(given.data) if record["pair"] not in given.without.split(",")]
    judge(records)
    prior = fitted(records)
    values = {
        "features": list(FEATURES), "data": prior.data,
        **{name: np.round(getattr(prior, name), 4).tolist() for name in ("theta", "deviations", "means", "scales")},
    }  # fmt: skip
    print(json.dumps(values, indent=1))
    if given.write:
        PRIOR.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
