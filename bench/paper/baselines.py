"""Why MutNearest stands above OneToOne here and below it in the paper: both, with one thing changed at a time.

python -m bench.paper.baselines [--encoder propagation] [--rounds 10] [--only PATTERN] [--again]

Runs on dbp15k_zh_en at 1 % (split 0) and notes for every round the threshold, how many pairs are trained on, how many
of these are right, and how many are there only because an earlier round had found them. `--encoder dual_amn` is that of
the paper and takes minutes for each; propagation needs no training. Lines go to bench/results/paper/baselines.jsonl,
and from there into docs/results.md. Test links are read only to judge, after the run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.measure import machine_facts, markdown
from bench.paper import store

RECORDS = "baselines.jsonl"
DATASET, FRACTION, SPLIT = "dbp15k_zh_en", 0.01, 0


@dataclass(frozen=True)
class Strategy:
    """How pairs are selected: by which rule, above which similarity, and whether those of earlier rounds stay."""

    rule: str  # "mutual": each other's nearest; "matching": of the largest sum, one to one
    threshold: float | str  # "median": of the similarities of pairs that are each other's nearest; "none"
    accumulate: bool


STRATEGIES = {
    "MutNearest": Strategy("mutual", "none", accumulate=False),
    "MutNearest above OneToOne's threshold": Strategy("mutual", "median", accumulate=False),
    "OneToOne": Strategy("matching", "median", accumulate=True),
    "OneToOne, nothing accumulated": Strategy("matching", "median", accumulate=False),
    # The program of the paper's authors runs it with `neural_thr=0` on similarities that are CSLS, as ours.
    "OneToOne above 0": Strategy("matching", 0.0, accumulate=True),
    "OneToOne above 0, nothing accumulated": Strategy("matching", 0.0, accumulate=False),
}


def watched(strategy: Strategy) -> Any:
    """A method for `SelfTraining` that selects by the strategy and keeps what it selected: `.rounds`."""
    from stea_fast import OneToOne, mutual_nearest, one_to_one
    from stea_fast._util.arrays import to_numpy

    @dataclass(frozen=True, kw_only=True)
    class Watched(OneToOne):
        rounds: list[dict[str, Any]] = field(default_factory=list, compare=False)

        def select_pairs(self, candidates: Any, previous: np.ndarray, seeds: np.ndarray) -> tuple[Any, Any]:
            mutual = [to_numpy(array, "mutual") for array in mutual_nearest(candidates, seeds=seeds)]
            limit = _limit(strategy.threshold, mutual[1])
            if strategy.rule == "mutual":
                above = mutual[1] > limit
                new = mutual[0][above], mutual[1][above]
            else:
                new = _numbers(one_to_one(candidates, limit, seeds=seeds))
            chosen = new
            if strategy.accumulate:
                chosen = _numbers(one_to_one(candidates, limit, previous=previous, seeds=seeds))
            self.rounds.append({"threshold": limit, "mutual": len(mutual[0]), "new": new[0], "pairs": chosen[0]})
            return chosen

    return Watched()


def _numbers(selection: Any) -> tuple[np.ndarray, np.ndarray]:
    from stea_fast._util.arrays import to_numpy

    return to_numpy(selection[0], "pairs"), to_numpy(selection[1], "similarities")


def _limit(threshold: float | str, similarities: np.ndarray) -> float:
    if threshold == "none" or not len(similarities):
        return -np.inf
    return float(np.median(similarities) if threshold == "median" else threshold)


def measured(name: str, encoder: str, rounds: int) -> dict[str, Any]:
    """Run one strategy; its line."""
    import stea_fast as sf
    from bench.paper.cells import Cell
    from bench.paper.compute import commit, configuration, load
    from stea_fast.data.sealed import reveal

    cell = Cell("baselines", DATASET, FRACTION, "one_to_one", encoder, "", SPLIT)
    pair, method = load(cell), watched(STRATEGIES[name])
    config = replace(configuration(cell), rounds=rounds, method=method)
    begin = time.perf_counter()
    result = sf.SelfTraining(pair, preset=config, progress=False).run()
    seconds = time.perf_counter() - begin
    truth = np.full(pair.kg1.num_entities, -1)
    truth[reveal(pair.test)[:, 0]] = reveal(pair.test)[:, 1]
    return {
        "strategy": name, "dataset": DATASET, "fraction": FRACTION, "split": SPLIT, "encoder": encoder,
        "rounds": [
            {"hit1": done.metrics["encoder"]["hit1"], **_judged(selected, truth)}
            for done, selected in zip(result.history, method.rounds, strict=False)
        ],
        "seconds": seconds, "commit": commit(), "machine": machine_facts(),
    }  # fmt: skip


def _judged(selected: dict[str, Any], truth: np.ndarray) -> dict[str, Any]:
    """What one round selected, in numbers; `carried` are the pairs that only an earlier round had found."""
    pairs, width = selected["pairs"], int(truth.max()) + int(selected["pairs"].max(initial=0)) + 2
    right = truth[pairs[:, 0]] == pairs[:, 1]
    carried = ~np.isin(pairs @ [width, 1], selected["new"] @ [width, 1])
    limit = selected["threshold"]
    return {
        "threshold": limit if np.isfinite(limit) else None, "mutual": selected["mutual"], "pairs": len(pairs),
        "right": int(right.sum()), "without_counterpart": int((truth[pairs[:, 0]] < 0).sum()),
        "carried": int(carried.sum()), "carried_right": int((carried & right).sum()),
    }  # fmt: skip


def report(records: Iterable[dict[str, Any]]) -> str:
    """The first and the last round of every strategy, for docs/results.md."""
    last = {(record["encoder"], record["strategy"]): record for record in records}
    rows = [
        [f"{name}, {encoder}", *_row(last[encoder, name])]
        for encoder in dict.fromkeys(encoder for encoder, _ in last)
        for name in STRATEGIES
        if (encoder, name) in last
    ]
    header = ["Hit@1", "rounds", "threshold", "pairs", "right", "carried over", "of these right", "commit"]
    if not rows:
        return "Not run."
    return f"{conclusion(last)}\n\n{markdown(['zh_en, 1 %; first → last selection', *header], rows)}".strip()


def _row(record: dict[str, Any]) -> list[str]:
    ends = [record["rounds"][place] for place in (0, -1)]
    end = ends[1]
    threshold = "–" if end["threshold"] is None else " → ".join(f"{each['threshold']:.3f}" for each in ends)
    return [
        f"{end['hit1']:.3f}", str(len(record["rounds"]) - 1), threshold,
        " → ".join(f"{each['pairs']:,}" for each in ends),
        " → ".join(f"{_share(each['right'], each['pairs'])}" for each in ends),
        f"{end['carried']:,}", _share(end["carried_right"], end["carried"]), record["commit"] or "unknown",
    ]  # fmt: skip


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "–"


def conclusion(last: dict[tuple[str, str], dict[str, Any]]) -> str:
    """Which single change moves OneToOne the most towards or above MutNearest, by encoder."""
    sentences = []
    for encoder in dict.fromkeys(encoder for encoder, _ in last):
        hits = {name: record["rounds"][-1]["hit1"] for (which, name), record in last.items() if which == encoder}
        if not {"MutNearest", "OneToOne"} <= hits.keys() or len(hits) < 3:
            continue
        others = {name: hit for name, hit in hits.items() if name not in ("MutNearest", "OneToOne")}
        gains = [
            f"{name} {hit - hits['OneToOne']:+.3f} from OneToOne and {hit - hits['MutNearest']:+.3f} from MutNearest"
            for name, hit in sorted(others.items(), key=lambda item: -item[1])
        ]
        between = f"{hits['MutNearest'] - hits['OneToOne']:+.3f}"
        sentences.append(f"With {encoder} MutNearest is {between} from OneToOne; {'; '.join(gains)}.".replace("-", "−"))
        sentences.append(_of_accumulation(last[encoder, "OneToOne"]["rounds"][-1]))
    return " ".join(sentences)


def _of_accumulation(end: dict[str, Any]) -> str:
    """How right pairs are that stay from earlier rounds, beside those that are found again."""
    found, right = end["pairs"] - end["carried"], end["right"] - end["carried_right"]
    return (
        f"Of its last {end['pairs']:,} pairs OneToOne has {end['carried']:,} from earlier rounds only: "
        f"{_share(end['carried_right'], end['carried'])} of these are right, and {_share(right, found)} of the others."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", choices=("propagation", "dual_amn"), default="propagation")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default="*", help="a pattern of names of strategies, such as 'OneToOne*'")
    parser.add_argument("--again", action="store_true", help="run finished strategies once more")
    parser.add_argument("--results", type=Path, default=store.RESULTS)
    given = parser.parse_args()
    path = given.results / RECORDS
    finished = {(record["encoder"], record["strategy"]) for record in store.read(path)}
    for name in STRATEGIES:
        if fnmatch(name, given.only) and (given.again or (given.encoder, name) not in finished):
            record = measured(name, given.encoder, given.rounds)
            store.append(path, record)
            for number, done in enumerate(record["rounds"]):
                print(name, number, done, flush=True)
    print(report(store.read(path)))


if __name__ == "__main__":
    main()
