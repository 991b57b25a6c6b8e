"""How the options of `refine` do without test labels: the ground for its defaults.

    python -m bench.tuning.choose_defaults [--quick]

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
from stea_fast.refinement.config import Options

DATASETS = ("dbp15k_zh_en", "dbp15k_ja_en", "dbp15k_fr_en")
FRACTIONS = (0.05, 0.3)
HIDDEN_SHARE = 0.2
GRID: dict[str, tuple[Any, ...]] = {
    "evidence": ("soft", "argmax", "mutual"),
    "evidence_weight": (1.0, 2.0, 4.0, 8.0, 16.0),
    "sweeps": (1, 2, 4, 8),
}
Setting = dict[str, Any]


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


def settings() -> Iterator[Setting]:
    """The grid, and the paper's step."""
    for values in product(*GRID.values()):
        yield dict(zip(GRID, values, strict=True))
    yield {"paper": True}


def hit1(trial: Trial, setting: Setting) -> float:
    """Hit@1 over the hidden seeds, among all targets."""
    pair = trial.pair
    refined = refine(trial.candidates, pair.kg1, pair.kg2, seeds=pair.train, select="none", **setting)
    return evaluate(refined, trial.hidden, pool="all").hit1


def describe(setting: Setting) -> str:
    if setting.get("paper"):
        return "the paper's step"
    text = ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
                     for name, value in setting.items())  # fmt: skip
    return f"{text} (default)" if setting == _defaults() else text


def _defaults() -> Setting:
    options = Options()
    found = {name: getattr(options, name) for name in GRID}
    return {**found, "evidence": options.evidence_kind(both_directions=True)}


def _row(label: str, values: list[float]) -> list[str]:
    return [label, *(f"{value:.4f}" for value in values), f"{np.mean(values):.4f}"]


def _standard_error(mean: float, trials: list[Trial]) -> float:
    """Of a mean Hit@1, roughly; settings are judged by the same seeds, so their differences err less."""
    return float(np.sqrt(sum(mean * (1 - mean) / len(trial.hidden) for trial in trials)) / len(trials))


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge the options of refine by hidden seeds.")
    parser.add_argument("--quick", action="store_true", help="only the first dataset, with the most seeds")
    quick = parser.parse_args().quick
    wanted = [(DATASETS[0], FRACTIONS[-1])] if quick else list(product(DATASETS, FRACTIONS))
    try:
        trials = [make_trial(name, fraction) for name, fraction in wanted]
    except inputs.MissingDataError as error:
        raise SystemExit(str(error)) from None
    rows = [_row("encoder alone", [evaluate(t.candidates, t.hidden, pool="all").hit1 for t in trials])]
    means = {}
    for setting in settings():
        values = [hit1(trial, setting) for trial in trials]
        means[describe(setting)] = float(np.mean(values))
        rows.append(_row(describe(setting), values))
    labels = [f"{trial.label} ({len(trial.hidden):,} hidden)" for trial in trials]
    print(markdown(["Hit@1 of hidden seeds", *labels, "mean"], rows))
    best = max(means, key=means.__getitem__)
    deviation = _standard_error(means[best], trials)
    print(f"\nBest mean: {best}, {means[best]:.4f}; standard error {deviation:.4f}")


if __name__ == "__main__":
    main()
