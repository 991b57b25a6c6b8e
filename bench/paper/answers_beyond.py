"""The same of what the paper does not ask: parts of our refinement, no seeds, large pairs, probabilities."""

from __future__ import annotations

import numpy as np

from bench.paper.answers import NOTHING_YET
from bench.paper.cells import OURS
from bench.paper.experiments import ABLATIONS, DBP15K, FRACTIONS, LARGE, NO_SEEDS
from bench.paper.results import Results, of_method
from bench.paper.tables import short, signed
from bench.paper.tables_beyond import PARTS, differences


def ablation(results: Results) -> str:
    """Which part of our refinement is worth the most?"""
    changes = []
    for method, variants in (("fast", ABLATIONS), ("full", ("no_start_rounds",))):
        for variant in variants:
            found = [each for dataset in DBP15K for each in differences(results, dataset, method, variant)]
            if found:
                changes.append(
                    (float(np.mean(found)), f"`{method}`, {PARTS[variant]}: {signed(float(np.mean(found)))}")
                )
    shown = "; ".join(text for _, text in sorted(changes))
    return f"Mean change of Hit@1, the greatest loss first: {shown}." if shown else NOTHING_YET


def zero_seeds(results: Results) -> str:
    """Are names enough where no link is known?"""
    shown = []
    for dataset in DBP15K:
        none = results.mean(of_method(dataset, NO_SEEDS, "structural", variant="names"), "hit1")
        seeds = results.mean(of_method(dataset, 0.01, "structural"), "hit1")
        if none is not None and seeds is not None:
            shown.append(f"{short(dataset)} {none:.3f} ({seeds:.3f})")
    text = "Hit@1 of `structural` from names alone, and from 1 % of seeds without names: "
    return f"{text}{', '.join(shown)}." if shown else NOTHING_YET


def large(results: Results) -> str:
    """Is the encoder worth its time on large graphs?"""
    shown = []
    for dataset in LARGE:
        kinds = [of_method(dataset, 0.01, method) for method in ("large", "structural")]
        values = [results.values(kind, "hit1", pool="open") for kind in kinds]
        if all(values):
            seconds = [float(np.mean([record["seconds"] for record in results[kind]])) for kind in kinds]
            gain = signed(float(np.mean(values[0]) - np.mean(values[1])))
            shown.append(f"{dataset} {gain} in {seconds[0]:,.0f} s instead of {seconds[1]:,.0f} s")
    return f"`large` less `structural`, Hit@1 among all targets: {'; '.join(shown)}." if shown else NOTHING_YET


def links(results: Results) -> str:
    """Can the probabilities be trusted before they are calibrated?"""
    shown = []
    for method in OURS:
        kinds = [of_method(dataset, fraction, method) for dataset in DBP15K for fraction in FRACTIONS]
        errors = [record["calibration_error"] for kind in kinds for record in results[kind]]
        known = [error for error in errors if error is not None]
        if known:
            shown.append(f"`{method}` {np.mean(known):.3f} (at most {max(known):.3f})")
    text = "Mean calibration error on DBP15K before any calibration"
    return f"{text}: {', '.join(shown)}." if shown else NOTHING_YET
