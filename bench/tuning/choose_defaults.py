"""How the methods of `refine` and their options do without test labels: the ground for its defaults.

    python -m bench.tuning.choose_defaults [--quick]

`refine` has one default method, with the same options everywhere. Which one that should be is the question.

A fifth of the seeds is hidden from the encoder and from `refine`; Hit@1 over the hidden seeds, ranked among
all targets, judges a setting. The other links of a dataset are taken away before anything is computed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import stea_fast as sf
from bench.lib import inputs
from bench.lib.measure import markdown
from stea_fast import evaluate, refine
from stea_fast.encoders import demo
from stea_fast.refinement.config import DEFAULT_METHOD, Method, method_of

DATASETS = ("dbp15k_zh_en", "dbp15k_ja_en", "dbp15k_fr_en")
FRACTIONS = (0.05, 0.3)
HIDDEN_SHARE = 0.2
WEIGHTS = (1.0, 2.0, 4.0, 8.0, 16.0)
GRIDS: dict[type[sf.Product] | type[sf.Joint], dict[str, tuple[Any, ...]]] = {
    sf.Product: {"evidence": ("soft", "argmax", "mutual"), "evidence_weight": WEIGHTS, "sweeps": (1, 2, 4, 8)},
    sf.Joint: {"evidence_weight": WEIGHTS, "sweeps": (4, 10)},
}


@dataclass(frozen=True, eq=False)
class Trial:
    """A dataset without test links, the seeds that may be used (`pair.train`), and those that judge."""

    label: str
    pair: sf.Pair
    hidden: np.ndarray
    candidates: sf.Candidates


def make_trial(name: str, fraction: float, seed: int = 0) -> Trial:
    """Hide a part of the seeds, drop all other links, then encode."""
    full = inputs.pair(name, fraction)
    order = np.random.default_rng(seed).permutation(len(full.train))
    cut = round(HIDDEN_SHARE * len(order))
    hidden, kept = full.train[order[:cut]], full.train[order[cut:]]
    pair = replace(full, links=kept, train=kept, test=kept[:0], valid=kept[:0])
    return Trial(f"{name} {fraction:.0%}", pair, hidden, demo.candidates(pair, inputs.K))


def methods() -> Iterator[Method]:
    """All that is compared: both grids, and the paper's step."""
    for cls, grid in GRIDS.items():
        for values in product(*grid.values()):
            yield cls(**dict(zip(grid, values, strict=True)))
    yield sf.Paper()


def hit1(trial: Trial, method: Method) -> float:
    """Hit@1 over the hidden seeds, among all targets."""
    pair = trial.pair
    refined = refine(trial.candidates, pair.kg1, pair.kg2, seeds=pair.train, method=method, select="none")
    return evaluate(refined, trial.hidden, pool="all").hit1


def describe(method: Method) -> str:
    """Of a row: the method, what the grid says of it, and whose default it is."""
    if isinstance(method, sf.Paper):
        return "the paper's step"
    values = {name: getattr(method, name) for name in GRIDS[type(method)]}
    parts = [f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()]
    text = ", ".join([type(method).__name__.lower(), *parts])
    if method == method_of(DEFAULT_METHOD):
        return f"{text} (default)"
    # With both directions given, as here, "mutual" is what the evidence None stands for.
    return f"{text} (default of product)" if method == sf.Product(evidence="mutual") else text


def _row(label: str, values: list[float]) -> list[str]:
    return [label, *(f"{value:.4f}" for value in values), f"{np.mean(values):.4f}"]


def _standard_error(mean: float, trials: list[Trial]) -> float:
    """Of a mean Hit@1, roughly; settings are judged by the same seeds, so their differences err less."""
    return float(np.sqrt(sum(mean * (1 - mean) / len(trial.hidden) for trial in trials)) / len(trials))


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge the methods of refine and their options by hidden seeds.")
    parser.add_argument("--quick", action="store_true", help="only the first dataset, with the most seeds")
    quick = parser.parse_args().quick
    wanted = [(DATASETS[0], FRACTIONS[-1])] if quick else list(product(DATASETS, FRACTIONS))
    try:
        trials = [make_trial(name, fraction) for name, fraction in wanted]
    except inputs.MissingDataError as error:
        raise SystemExit(str(error)) from None
    rows = [_row("encoder alone", [evaluate(t.candidates, t.hidden, pool="all").hit1 for t in trials])]
    means: dict[Method, float] = {}
    for method in methods():
        values = [hit1(trial, method) for trial in trials]
        means[method] = float(np.mean(values))
        rows.append(_row(describe(method), values))
    labels = [f"{trial.label} ({len(trial.hidden):,} hidden)" for trial in trials]
    print(markdown(["Hit@1 of hidden seeds", *labels, "mean"], rows))
    print()
    for cls in GRIDS:
        best = max((method for method in means if isinstance(method, cls)), key=means.__getitem__)
        deviation = _standard_error(means[best], trials)
        print(f"Best mean: {describe(best)}, {means[best]:.4f}; standard error {deviation:.4f}")


if __name__ == "__main__":
    main()
