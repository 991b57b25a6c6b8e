"""The Markdown tables of docs/results.md: our figure, and where the paper has one, its own and the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bench.lib.measure import markdown
from bench.paper.cells import BASELINES, CANDIDATES, OURS, USUAL_CANDIDATES
from bench.paper.experiments import (
    DBP15K,
    DWY100K,
    FRACTIONS,
    GENERALITY_FRACTIONS,
    GENERALITY_METHODS,
    OTHER_ENCODERS,
    THRESHOLDED,
    ZH_EN,
)
from bench.paper.results import METRICS, Kind, Results, of_method, published

NOT_RUN = "not run"
LABELS = {
    "supervised": "Supervised", "sim_threshold": "SimThr", "one_to_one": "OneToOne", "mutual_nearest": "MutNearest",
    "stea": "STEA", "oracle": "STEA, `oracle`", "structural": "ours, `structural`", "fast": "ours, `fast`",
    "large": "ours, `large`", "full": "**ours, `full`**",
}  # fmt: skip
ENCODER_LABELS = {
    "dual_amn": "Dual-AMN", "rrea": "RREA", "alinet": "AliNet", "gcn_align": "GCN-Align", "propagation": "propagation",
    "none": "no encoder",
}  # fmt: skip
METRIC_LABELS = {"hit1": "Hit@1", "hit10": "Hit@10", "mrr": "MRR"}
METHODS = ("supervised", *BASELINES, "stea", "oracle", *OURS)
ZH = ZH_EN[0]


def short(dataset: str) -> str:
    return dataset.removeprefix("dbp15k_")


def number(values: Sequence[float], digits: int = 3) -> str:
    """Mean, and deviation over the splits where there are several."""
    if not values:
        return NOT_RUN
    text = f"{np.mean(values):.{digits}f}"
    return f"{text} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else text


def beside(values: Sequence[float], paper: float | None) -> str:
    """Ours (the paper's, the difference)."""
    if paper is None:
        return number(values)
    if not values:
        return f"{NOT_RUN} ({paper:.3f})"
    return f"{number(values)} ({paper:.3f}, {signed(float(np.mean(values)) - paper)})"


def signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def paper_value(table: str, kind: Kind, metric: str) -> float | None:
    """The paper's figure, if it has one in this table."""
    return published().get((table, kind), {}).get(metric)


def overall(results: Results, fraction: float) -> str:
    """One block of the main table: methods × datasets × metrics."""
    datasets = (*DBP15K, *(name for name in DWY100K if any(kind.dataset == name for kind in results.kinds)))
    rows = []
    for method in METHODS:
        row = [LABELS[method]]
        for dataset in datasets:
            kind = of_method(dataset, fraction, method)
            row += [beside(results.values(kind, m), paper_value("overall", kind, m)) for m in METRICS]
        rows.append(row)
    return markdown(["", *(f"{short(d)} {METRIC_LABELS[m]}" for d in datasets for m in METRICS)], rows)


def headline(results: Results) -> str:
    """Our presets against the paper's STEA, and what the leak is worth."""
    methods = ("stea", "oracle", *OURS)
    rows = []
    for dataset in DBP15K:
        for fraction in FRACTIONS:
            kinds = [of_method(dataset, fraction, method) for method in methods]
            paper = paper_value("overall", kinds[0], "hit1")
            assert paper is not None
            ours = results.mean(kinds[-1], "hit1")
            rows.append([
                f"{short(dataset)} {fraction:.0%}", f"{paper:.3f}", *(number(results.values(k, "hit1")) for k in kinds),
                NOT_RUN if ours is None else signed(ours - paper),
            ])  # fmt: skip
    return markdown(["Hit@1", "paper's STEA", *(LABELS[m] for m in methods), "full − paper"], rows)


def rankings(results: Results) -> str:
    """The same runs ranked by the encoder's similarity and by the refined probability."""
    rows = []
    for dataset in DBP15K:
        for fraction in FRACTIONS:
            for method in ("stea", "oracle", *OURS[1:]):
                kind = of_method(dataset, fraction, method)
                if results[kind]:
                    values = (results.values(kind, "hit1", ranking=ranking) for ranking in ("encoder", "refined"))
                    rows.append([f"{short(dataset)} {fraction:.0%}, {LABELS[method]}", *map(number, values)])
    return markdown(["Hit@1", "by similarity", "by refined probability"], rows) if rows else "Not run."


COMPARED = (
    *(("stea", name) for name in ("supervised", *BASELINES)),
    ("oracle", "stea"), ("structural", "stea"), ("fast", "stea"),
    *(("full", name) for name in ("stea", "oracle", "fast")),
)  # fmt: skip


def t_tests(results: Results) -> str:
    """Every comparison that two finished cells allow."""
    rows = []
    for dataset in DBP15K:
        for fraction in FRACTIONS:
            for one, other in COMPARED:
                found = results.compare(of_method(dataset, fraction, one), of_method(dataset, fraction, other))
                if found is not None:
                    name = f"{short(dataset)} {fraction:.0%}: {LABELS[one]} − {LABELS[other]}"
                    rows.append([name, signed(found.difference), signed(found.t, 1), f"{found.p:.1e}", f"{found.n:,}"])
    return markdown(["difference of Hit@1", "mean", "t", "p", "entities"], rows) if rows else "Not run."


TRAINED = (
    ("gcn_align", "2000_epochs", ""), ("alinet", "", ""), ("alinet", "refit_augmented", ", refitted and augmented"),
    ("rrea", "", ""), ("dual_amn", "", ""),
)  # fmt: skip


def supervised(results: Results) -> str:
    """Encoders trained on 30 % of the links alone."""
    rows = []
    for encoder, variant, how in TRAINED:
        row = [ENCODER_LABELS[encoder] + how]
        for dataset in DBP15K:
            kind = Kind(dataset, 0.3, "supervised", encoder)
            ours = kind._replace(variant=variant)
            row += [beside(results.values(ours, m), paper_value("supervised", kind, m)) for m in ("hit1", "mrr")]
        rows.append(row)
    return markdown(["", *(f"{short(d)} {METRIC_LABELS[m]}" for d in DBP15K for m in ("hit1", "mrr"))], rows)


def by_fraction(
    results: Results,
    rows: Iterable[tuple[str, str, str, str]],
    table: str = "",
    fractions: Sequence[float] = FRACTIONS,
) -> str:
    """Hit@1 on zh_en over the shares of seeds; rows of (label, method, encoder, variant)."""
    lines = []
    for label, method, encoder, variant in rows:
        kinds = [of_method(ZH, fraction, method, encoder, variant) for fraction in fractions]
        lines.append([label, *(beside(results.values(k, "hit1"), paper_value(table, k, "hit1")) for k in kinds)])
    return markdown(["Hit@1, zh_en", *(f"{fraction:.0%}" for fraction in fractions)], lines)


def thresholds(results: Results) -> str:
    """The baselines above the median and above 0, as in the authors' scripts, and MutNearest without threshold."""
    rows = []
    for method in (*THRESHOLDED, "mutual_nearest"):
        for variant in ("", "above_0") if method in THRESHOLDED else ("",):
            kinds = [of_method(ZH, fraction, method, variant=variant) for fraction in FRACTIONS]
            papers = [paper_value("overall", kind._replace(variant=""), "hit1") for kind in kinds]
            how = {"": "above the median", "above_0": "above 0"}[variant] if method in THRESHOLDED else "no threshold"
            values = (beside(results.values(k, "hit1"), paper) for k, paper in zip(kinds, papers, strict=True))
            rows.append([f"{LABELS[method]}, {how}", *values])
    return markdown(["Hit@1, zh_en", *(f"{fraction:.0%}" for fraction in FRACTIONS)], rows)


def generality(results: Results) -> str:
    """The methods with other encoders."""
    rows = [(f"{ENCODER_LABELS[e]}: {LABELS[m]}", m, e, "") for e in OTHER_ENCODERS for m in GENERALITY_METHODS]
    return by_fraction(results, rows, fractions=GENERALITY_FRACTIONS)


def encoders(results: Results) -> str:
    """Our refinement behind each of the encoders: the preset `full` with another `encoder=`."""
    rows = [(f"`full`, {ENCODER_LABELS[e]}", "full", e, "") for e in ("dual_amn", *OTHER_ENCODERS)]
    return by_fraction(results, rows, fractions=GENERALITY_FRACTIONS)


SELECTIONS = {"uni_kg1": "UniThr (KG1)", "uni_kg2": "UniThr (KG2)", "bi": "BiThr", "": "MutHighestProb"}


def selection(results: Results) -> str:
    """Strategies of selecting pseudo mappings."""
    return by_fraction(results, [(label, "stea", "dual_amn", name) for name, label in SELECTIONS.items()])


def normalisation(results: Results) -> str:
    """Softmax against MinMax."""
    rows = [("MinMax", "stea", "dual_amn", "soft_minmax"), ("softmax", "stea", "dual_amn", "soft_softmax")]
    return by_fraction(results, rows, "normalisation")


def variant_of(k: int) -> str:
    return "" if k == USUAL_CANDIDATES else f"k={k}"


def candidates(results: Results) -> str:
    """Sensitivity to K."""
    return by_fraction(results, [(f"K = {k}", "stea", "dual_amn", variant_of(k)) for k in CANDIDATES])


def pairs_by_fraction(results: Results) -> str:
    """Precision and recall of the pseudo mappings of the last round, zh_en."""
    rows = []
    for method in METHODS[1:]:
        kinds = [of_method(ZH, fraction, method) for fraction in FRACTIONS]
        rows.append([
            LABELS[method],
            *(f"{number(results.of_pairs(k, 'precision'))} / {number(results.of_pairs(k, 'recall'))}"
              if results[k] else NOT_RUN for k in kinds),
        ])  # fmt: skip
    return markdown(["precision / recall, zh_en", *(f"{fraction:.0%}" for fraction in FRACTIONS)], rows)


def pairs_by_round(results: Results) -> str:
    """The same in every round at 1 %, of the first split."""
    histories = {m: results[of_method(ZH, 0.01, m)][:1] for m in METHODS[1:]}
    longest = max((len(found[0]["history"]) for found in histories.values() if found), default=0)
    rows = []
    for method, found in histories.items():
        pairs = [done["metrics"]["pairs"] for done in found[0]["history"]] if found else []
        shown = [f"{each['precision']:.3f} / {each['recall']:.3f}" for each in pairs]
        rows.append([LABELS[method], *(shown + [""] * (longest - len(shown)) if found else [NOT_RUN] * longest)])
    return markdown(["precision / recall, zh_en 1 %", *map(str, range(longest))], rows) if longest else "Not run."
