"""The answers to the paper's questions, in sentences whose every figure is computed from the finished cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bench.paper.cells import BASELINES, CANDIDATES
from bench.paper.experiments import DBP15K, FRACTIONS, GENERALITY_FRACTIONS, OTHER_ENCODERS
from bench.paper.results import Kind, Results, of_method
from bench.paper.tables import (
    COMPARED,
    ENCODER_LABELS,
    LABELS,
    METHODS,
    SELECTIONS,
    TRAINED,
    ZH,
    paper_value,
    short,
    signed,
    variant_of,
)

NOTHING_YET = "The cells that would answer it have not been run."
SIGNIFICANT = 0.01
CLOSE = 0.02
FEW = (0.01, 0.05)  # shares of seeds at which a lead of MARGIN is wanted
MARGIN = 0.03


def _where(dataset: str, fraction: float) -> str:
    return f"{short(dataset)} at {fraction:.0%}"


def _cells(count: int) -> str:
    return f"{count} cell{'s' * (count != 1)}"


def _means(results: Results, kinds: Iterable[Kind]) -> list[float | None]:
    return [results.mean(kind, "hit1") for kind in kinds]


def _blocks(fractions: Sequence[float] = FRACTIONS) -> list[tuple[str, float]]:
    return [(dataset, fraction) for dataset in DBP15K for fraction in fractions]


def headline(results: Results) -> str:
    """Are our presets above the paper's figures, which were made with test labels in the loop?"""
    sentences = []
    for method in ("full", "fast", "structural"):
        leads = _leads(results, method)
        if not leads:
            continue
        above = sum(lead > 0 for lead, _, _ in leads)
        least, most = min(leads), max(leads)
        few = [lead for lead, _, fraction in leads if fraction in FEW]
        text = f"`{method}` is above the paper's STEA in {above} of {_cells(len(leads))}"
        text += f" (of {len(_blocks())}; {signed(least[0])} on {_where(*least[1:])}"
        text += f" to {signed(most[0])} on {_where(*most[1:])})"
        if method == "full" and few:
            text += f", by at least {MARGIN:.2f} in {sum(lead >= MARGIN for lead in few)} of {len(few)} at 1 and 5 %"
        sentences.append(text + ".")
    return " ".join(sentences) or NOTHING_YET


def _leads(results: Results, method: str) -> list[tuple[float, str, float]]:
    """How far a method of ours is above the paper's STEA, wherever it was run."""
    leads = []
    for dataset, fraction in _blocks():
        ours = results.mean(of_method(dataset, fraction, method), "hit1")
        paper = paper_value("overall", of_method(dataset, fraction, "stea"), "hit1")
        if ours is not None and paper is not None:
            leads.append((ours - paper, dataset, fraction))
    return leads


def leak(results: Results) -> str:
    """What is it worth to align relations from test labels, as the authors' program does?"""
    gains = []
    for dataset, fraction in _blocks():
        oracle, honest = _means(results, (of_method(dataset, fraction, m) for m in ("oracle", "stea")))
        if oracle is not None and honest is not None:
            gains.append((oracle - honest, dataset, fraction))
    if not gains:
        return NOTHING_YET
    mean = float(np.mean([gain for gain, *_ in gains]))
    most = max(gains)
    return (
        f"Relations aligned from all links are worth {signed(mean)} Hit@1 in the mean of {_cells(len(gains))}, "
        f"at most {signed(most[0])} ({_where(*most[1:])})."
    )


def overall(results: Results, fraction: float) -> str:
    """Which method is the best at a share of seeds, and is STEA above its baselines?"""
    sentences = []
    for dataset in DBP15K:
        means = {m: results.mean(of_method(dataset, fraction, m), "hit1") for m in METHODS if m != "oracle"}
        known = {m: value for m, value in means.items() if value is not None}
        if known:
            best = max(known, key=lambda m: known[m])
            sentences.append(f"{short(dataset)}: {LABELS[best].replace('*', '')} {known[best]:.3f}")
    if not sentences:
        return NOTHING_YET
    text = f"The best honest Hit@1 of those run: {', '.join(sentences)}."
    above = [_above_baselines(results, dataset, fraction) for dataset in DBP15K]
    leads = [lead for lead in above if lead is not None]
    if leads:
        text += f" STEA less the best of its baselines: {signed(min(leads))} to {signed(max(leads))}."
    gaps = [_gap(results, of_method(dataset, fraction, "stea")) for dataset in DBP15K]
    known_gaps = [gap for gap in gaps if gap is not None]
    if known_gaps:
        text += f" STEA without test labels less the published figure: {signed(min(known_gaps))} to"
        text += f" {signed(max(known_gaps))}."
    return text


def _gap(results: Results, kind: Kind) -> float | None:
    """Ours less the paper's Hit@1."""
    ours, paper = results.mean(kind, "hit1"), paper_value("overall", kind, "hit1")
    return None if ours is None or paper is None else ours - paper


def _above_baselines(results: Results, dataset: str, fraction: float, encoder: str | None = None) -> float | None:
    """STEA less the best baseline; None unless all of them were run."""
    stea, *baselines = _means(results, (of_method(dataset, fraction, m, encoder) for m in ("stea", *BASELINES)))
    known = [value for value in baselines if value is not None]
    return None if stea is None or len(known) < len(BASELINES) else stea - max(known)


def order_of_baselines(results: Results) -> str:
    """Does MutNearest stand above OneToOne, which the paper has the other way round with few seeds?"""
    ours, papers = [], []
    for dataset, fraction in _blocks():
        kinds = [of_method(dataset, fraction, m) for m in ("mutual_nearest", "one_to_one")]
        mutual, one = _means(results, kinds)
        if mutual is None or one is None:
            continue
        published = [paper_value("overall", kind, "hit1") for kind in kinds]
        assert published[0] is not None and published[1] is not None
        ours.append(mutual - one)
        papers.append(published[0] - published[1])
    if not ours:
        return NOTHING_YET
    return (
        f"MutNearest is above OneToOne in {sum(d > 0 for d in ours)} of {_cells(len(ours))} here "
        f"(mean {signed(float(np.mean(ours)))}) and in {sum(d > 0 for d in papers)} of the same cells in the paper "
        f"(mean {signed(float(np.mean(papers)))})."
    )


def rankings(results: Results) -> str:
    """Is the refined probability a better ranking than the encoder's similarity?"""
    sentences = []
    for method in ("stea", "fast", "full"):
        gains = []
        for dataset, fraction in _blocks():
            kind = of_method(dataset, fraction, method)
            by = [results.values(kind, "hit1", ranking=ranking) for ranking in ("refined", "encoder")]
            if all(by):
                gains.append(float(np.mean(by[0]) - np.mean(by[1])))
        if gains:
            sentences.append(
                f"{LABELS[method].replace('*', '')} {signed(float(np.mean(gains)))} ({_cells(len(gains))})"
            )
    if not sentences:
        return NOTHING_YET
    return f"Hit@1 by refined probability less Hit@1 by similarity, mean over the cells: {', '.join(sentences)}."


def t_tests(results: Results) -> str:
    """Which differences are significant?"""
    sentences = []
    for one, others in (("stea", ("supervised", *BASELINES)), ("full", ("stea",)), ("structural", ("stea",))):
        found = [
            results.compare(of_method(dataset, fraction, one), of_method(dataset, fraction, other))
            for dataset, fraction in _blocks()
            for other in others
            if (one, other) in COMPARED
        ]
        known = [test for test in found if test is not None]
        if known:
            better = sum(test.difference > 0 and test.p < SIGNIFICANT for test in known)
            whom = " and ".join([", ".join(LABELS[m] for m in others[:-1]), LABELS[others[-1]]]).removeprefix(" and ")
            sentences.append(f"{LABELS[one].replace('*', '')} is better than {whom} in {better} of {len(known)} tests")
    return f"At p < {SIGNIFICANT}: {'; '.join(sentences)}." if sentences else NOTHING_YET


def supervised(results: Results) -> str:
    """Are the encoders as good as those of the paper?"""
    differences = []
    for encoder, variant, how in TRAINED:
        for dataset in DBP15K:
            kind = Kind(dataset, 0.3, "supervised", encoder)
            ours = results.mean(kind._replace(variant=variant), "hit1")
            paper = paper_value("supervised", kind, "hit1")
            if ours is not None and paper is not None:
                differences.append((ours - paper, f"{ENCODER_LABELS[encoder]}{how} on {short(dataset)}"))
    if not differences:
        return NOTHING_YET
    close = sum(abs(difference) <= CLOSE for difference, _ in differences)
    furthest, name = max(differences, key=lambda each: abs(each[0]))
    return (
        f"{close} of {len(differences)} figures of Hit@1 are within {CLOSE:.2f} of the paper's; "
        f"the furthest is {name} ({signed(furthest)})."
    )


def generality(results: Results) -> str:
    """Does STEA help other encoders, too?"""
    sentences = []
    for encoder in OTHER_ENCODERS:
        leads = [_above_baselines(results, ZH, fraction, encoder) for fraction in GENERALITY_FRACTIONS]
        known = [lead for lead in leads if lead is not None]
        if known:
            above = sum(lead > 0 for lead in known)
            sentences.append(f"{ENCODER_LABELS[encoder]}: above all baselines in {above} of {len(known)}")
    return f"STEA behind {'; '.join(sentences)} shares of seeds." if sentences else NOTHING_YET


def reliance(results: Results) -> str:
    """How much is lost with few seeds?"""
    sentences = []
    for method in ("supervised", *BASELINES, "stea", "structural", "fast", "full"):
        few, many = _means(results, (of_method(ZH, fraction, method) for fraction in (0.01, 0.3)))
        if few is not None and many is not None:
            sentences.append(f"{LABELS[method].replace('*', '')} {few - many:+.3f}".replace("-", "−"))
    return f"From 30 to 1 % of seeds on zh_en Hit@1 changes by: {', '.join(sentences)}." if sentences else NOTHING_YET


def pairs(results: Results) -> str:
    """How pure and how many are the pseudo mappings?"""
    f1 = {}
    for method in METHODS:
        values = results.of_pairs(of_method(ZH, 0.01, method), "f1")
        if values and method != "oracle":
            f1[method] = float(np.mean(values))
    if not f1:
        return NOTHING_YET
    ranked = sorted(f1, key=lambda m: -f1[m])
    shown = ", ".join(f"{LABELS[m].replace('*', '')} {f1[m]:.3f}" for m in ranked)
    return f"F1 of the last pseudo mappings on zh_en at 1 %, the best first: {shown}."


def _best_of(results: Results, named: Sequence[tuple[str, str]]) -> list[tuple[float, str, float]]:
    """Per share of seeds at which all variants of STEA were run: the share, the best one's label, and its lead."""
    best = []
    for fraction in FRACTIONS:
        means = _means(results, (of_method(ZH, fraction, "stea", variant=variant) for variant, _ in named))
        values = sorted(((value, label) for value, (_, label) in zip(means, named, strict=True) if value is not None))
        if len(values) == len(named):
            best.append((fraction, values[-1][1], values[-1][0] - values[-2][0]))
    return best


def variants(results: Results, named: Sequence[tuple[str, str]]) -> str:
    """Which of several variants of STEA is the best?"""
    best = _best_of(results, named)
    shown = ", ".join(f"{label} at {fraction:.0%} ({signed(lead)} before the next)" for fraction, label, lead in best)
    return f"The best on zh_en: {shown}." if best else NOTHING_YET


def selection(results: Results) -> str:
    """Which strategy of selection is the best?"""
    return variants(results, list(SELECTIONS.items()))


def normalisation(results: Results) -> str:
    """Is softmax better than MinMax?"""
    return variants(results, [("soft_softmax", "softmax"), ("soft_minmax", "MinMax")])


def candidates(results: Results) -> str:
    """Does the number of candidates matter?"""
    spreads = []
    for fraction in FRACTIONS:
        kinds = (of_method(ZH, fraction, "stea", variant=variant_of(k)) for k in CANDIDATES if k > 1)
        known = [value for value in _means(results, kinds) if value is not None]
        if len(known) == len(CANDIDATES) - 1:
            spreads.append(f"{max(known) - min(known):.3f} at {fraction:.0%}")
    return f"Between K = 3 and 25 Hit@1 differs by at most {', '.join(spreads)}." if spreads else NOTHING_YET
