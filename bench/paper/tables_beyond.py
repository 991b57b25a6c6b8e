"""The Markdown tables of docs/results.md of what the paper does not show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from bench.lib.measure import markdown
from bench.paper.experiments import ABLATIONS, DBP15K, LARGE, NO_SEEDS, QUICK, cells
from bench.paper.results import METRICS, Kind, Results, of_method
from bench.paper.tables import ENCODER_LABELS, LABELS, METHODS, METRIC_LABELS, NOT_RUN, number, short, signed


def _finished(results: Results, datasets: Iterable[str]) -> Iterator[Kind]:
    wanted = tuple(datasets)
    order = {method: place for place, method in enumerate(METHODS)}
    yield from sorted(
        (kind for kind in results.kinds if kind.dataset in wanted),
        key=lambda kind: (wanted.index(kind.dataset), kind.fraction, kind.encoder, order[kind.method], kind.variant),
    )


def name(kind: Kind) -> str:
    """Of a row in tables of all cells."""
    parts = [short(kind.dataset), f"{kind.fraction:.0%}", LABELS[kind.method], ENCODER_LABELS[kind.encoder]]
    return ", ".join([*parts, kind.variant] if kind.variant else parts)


def open_pool(results: Results, datasets: Iterable[str]) -> str:
    """Ranks among all targets beside ranks among the test targets."""
    rows = [
        [name(kind), *(number(results.values(kind, m, pool=pool)) for pool in ("closed", "open") for m in METRICS)]
        for kind in _finished(results, datasets)
    ]
    header = [f"{pool} {METRIC_LABELS[m]}" for pool in ("closed", "open") for m in METRICS]
    return markdown(["", *header], rows) if rows else "Not run."


def links(results: Results, datasets: Iterable[str]) -> str:
    """Links output: how many, how good, and how well their probabilities are calibrated."""
    rows = []
    for kind in _finished(results, datasets):
        if not results.of_pairs(kind, "f1"):
            continue
        errors = [r["calibration_error"] for r in results[kind] if r["calibration_error"] is not None]
        counts = number(results.of_pairs(kind, "count"), 0)
        quality = (number(results.of_pairs(kind, metric)) for metric in ("precision", "recall", "f1"))
        rows.append([name(kind), counts, *quality, number(errors) if errors else "–"])
    return markdown(["", "links", "precision", "recall", "F1", "calibration error"], rows) if rows else "Not run."


def cost(results: Results, datasets: Iterable[str]) -> str:
    """Seconds of a round by stage (after the first training), of the whole, and the largest memory, by commit."""
    rows = []
    for kind in _finished(results, datasets):
        rounds = [done["seconds"] for record in results[kind] for done in record["history"]]
        first = [record["history"][0]["seconds"].get("train", 0.0) for record in results[kind]]
        later = [record["history"][1:] for record in results[kind]]
        train = [done["seconds"]["train"] for history in later for done in history]
        commits = dict.fromkeys(record["commit"] or "unknown" for record in results[kind])
        rows.append([
            name(kind), str(results[kind][0]["threads"]), f"{np.mean(first):,.1f}",
            f"{np.mean(train):,.1f}" if train else "–",
            *(f"{np.mean([done.get(stage, 0.0) for done in rounds]):,.1f}" for stage in ("topk", "select")),
            f"{np.mean([record['seconds'] for record in results[kind]]):,.0f}",
            f"{max(record['peak_mb'] for record in results[kind]) / 1000:.2f}", ", ".join(commits),
        ])  # fmt: skip
    header = ["first training, s", "training per round, s", "search, s", "refine, s", "all, s", "GB", "commit"]
    return markdown(["", "threads", *header], rows) if rows else "Not run."


def large(results: Results) -> str:
    """The large pairs: their sizes, quality, time and memory."""
    rows = []
    for dataset, fraction in (*((dataset, 0.01) for dataset in LARGE), (LARGE[0], 0.2)):
        for method in ("structural", "large"):
            kind = of_method(dataset, fraction, method)
            found = results[kind]
            rows.append([
                f"{dataset} {fraction:.0%}, {LABELS[method]}",
                " + ".join(f"{n:,}" for n in found[0]["sizes"]["entities"]) if found else NOT_RUN,
                *(number(results.values(kind, "hit1", pool=pool)) for pool in ("closed", "open")),
                *(number(results.of_pairs(kind, metric)) for metric in ("precision", "recall", "f1")),
                number([record["seconds"] for record in found], 0),
                number([record["peak_mb"] / 1000 for record in found], 2),
            ])  # fmt: skip
    header = ["entities", "closed Hit@1", "open Hit@1", "precision", "recall", "F1", "seconds", "GB"]
    return markdown(["", *header], rows)


def zero_seeds(results: Results) -> str:
    """No seed at all: names as they stand in the graphs are where the spreading begins."""
    rows = []
    for dataset in DBP15K:
        for method in ("structural", "fast", "full"):
            kind = of_method(dataset, NO_SEEDS, method, variant="names")
            pools = (number(results.values(kind, "hit1", pool=pool)) for pool in ("closed", "open"))
            quality = (number(results.of_pairs(kind, metric)) for metric in ("precision", "recall", "f1"))
            rows.append([f"{short(dataset)}, {LABELS[method]}", *pools, *quality])
    return markdown(["no seeds, raw names", "closed Hit@1", "open Hit@1", "precision", "recall", "F1"], rows)


PARTS = {
    "one_view": "without the view from structure alone",
    "statements": "statements are witnesses, not neighbours",
    "no_proposals": "neighbours propose no pairs beside the encoder's",
    "unbalanced": "rows and columns are not balanced",
    "no_start_sweeps": "relations at seeds are not taken to be alike at first",
    "no_start_rounds": "Dual-AMN from the first round on",
    "names": "names of the entities, as they stand in the graphs",
}


def ablation(results: Results) -> str:
    """What each part of our refinement is worth: Hit@1 without it at 1 %, and the difference."""
    rows = []
    for method, variants in (("fast", ("", *ABLATIONS)), ("full", ("", "no_start_rounds"))):
        for variant in variants:
            label = LABELS[method] if not variant else f"{'+' if variant == 'names' else '−'} {PARTS[variant]}"
            rows.append([label, *(_against_whole(results, dataset, method, variant) for dataset in DBP15K)])
    return markdown(["Hit@1, 1 % seeds", *map(short, DBP15K)], rows)


def _against_whole(results: Results, dataset: str, method: str, variant: str) -> str:
    text = number([_hit1(record) for record in results[of_method(dataset, 0.01, method, variant=variant)]])
    changes = differences(results, dataset, method, variant) if variant else []
    return f"{text} ({signed(float(np.mean(changes)))})" if changes else text


def differences(results: Results, dataset: str, method: str, variant: str) -> list[float]:
    """Hit@1 of a variant less that of the whole, of the splits that both were run on."""
    whole, part = (results[of_method(dataset, 0.01, method, variant=each)] for each in ("", variant))
    before = {record["split"]: _hit1(record) for record in whole}
    return [_hit1(record) - before[record["split"]] for record in part if record["split"] in before]


def _hit1(record: Mapping[str, Any]) -> float:
    return float(record["metrics"]["refined"]["closed"]["hit1"])


def quick(results: Results) -> str:
    """The quick set: Hit@1 with the encoder that needs no training."""
    rows = []
    for cell in cells([block for block in QUICK if block.name == "quick"]):
        kind = Kind(cell.dataset, cell.fraction, cell.method, cell.encoder, cell.variant)
        rows.append([name(kind), *(number(results.values(kind, m)) for m in METRICS)])
    return markdown(["", *METRIC_LABELS.values()], rows)
