"""The figures of the paper in its arrangement, from finished cells; what has none is not drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from bench.paper.cells import BASELINES, CANDIDATES
from bench.paper.experiments import DBP15K, FRACTIONS, GENERALITY_FRACTIONS, GENERALITY_METHODS, OTHER_ENCODERS
from bench.paper.results import Results, of_method
from bench.paper.tables import (
    ENCODER_LABELS,
    LABELS,
    METHODS,
    SELECTIONS,
    ZH,
    paper_value,
    short,
    variant_of,
)

COLOURS = {
    "supervised": "#9aa4af", "sim_threshold": "#bf8700", "one_to_one": "#1a7f37", "mutual_nearest": "#8250df",
    "stea": "#0969da", "oracle": "#cf222e", "structural": "#d0d7de", "fast": "#8c959f", "large": "#57606a",
    "full": "#1f2328",
}  # fmt: skip
PAPER_STYLE = {"linestyle": ":", "marker": "x", "markersize": 4, "linewidth": 1}
Series = Mapping[str, Sequence[float | None]]
STYLE: dict[Any, Any] = {
    "svg.fonttype": "path", "svg.hashsalt": "stea-fast", "font.size": 9,
    "axes.grid": True, "axes.axisbelow": True, "grid.alpha": 0.3,
}  # fmt: skip


def plain(method: str) -> str:
    """A label without Markdown."""
    return LABELS[method].replace("*", "").replace("`", "")


def draw_all(results: Results, folder: Path) -> list[str]:
    """Draw what has cells, as SVG and PNG; the names of the figures drawn."""
    drawn = []
    with plt.rc_context(STYLE):
        for name, draw in FIGURES.items():
            figure = draw(results)
            if figure is None:
                continue
            folder.mkdir(parents=True, exist_ok=True)
            figure.tight_layout()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            figure.savefig(folder / f"{name}.png", dpi=150)
            plt.close(figure)
            drawn.append(name)
    return drawn


def _any(series: Iterable[Series]) -> bool:
    return any(value is not None for each in series for values in each.values() for value in values)


def _panels(count: int) -> tuple[Any, list[Any]]:
    figure, axes = plt.subplots(1, count, figsize=(3.6 * count, 3.0), facecolor="white", squeeze=False)
    return figure, list(axes[0])


def _lines(axes: Any, xs: Sequence[Any], series: Series, style: Callable[[str], dict[str, Any]]) -> None:
    for name, values in series.items():
        known = [(x, value) for x, value in zip(xs, values, strict=True) if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), **{"marker": "o", "markersize": 3, **style(name)})


def _bars(axes: Any, groups: Sequence[str], series: Series, style: Callable[[str], dict[str, Any]]) -> None:
    width = 0.8 / len(series)
    for place, (name, values) in enumerate(series.items()):
        heights = [np.nan if value is None else value for value in values]
        axes.bar(np.arange(len(groups)) + (place - (len(series) - 1) / 2) * width, heights, width, **style(name))
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylim(0, 1)


def _legend(axes: Any, title: str = "", *, outside: bool = True) -> None:
    """To the right of the last panel, where it hides nothing."""
    place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if outside else {}
    axes.legend(fontsize=7, title=title, **place)


def _of_method(method: str) -> dict[str, Any]:
    return {"color": COLOURS[method], "label": plain(method)}


def _percent(axes: Any) -> None:
    axes.set_xlabel("seeds, %")
    axes.set_xticks([100 * fraction for fraction in FRACTIONS])


def _hit1(
    results: Results,
    method: str,
    encoder: str | None = None,
    variant: str = "",
    fractions: Sequence[float] = FRACTIONS,
) -> list[float | None]:
    return [results.mean(of_method(ZH, fraction, method, encoder, variant), "hit1") for fraction in fractions]


def few_seeds(results: Results) -> Any:
    """Hit@1 at 1 % on the three pairs, beside the paper."""
    ours = {m: [results.mean(of_method(d, 0.01, m), "hit1") for d in DBP15K] for m in METHODS}
    if not _any([ours]):
        return None
    figure, (axes,) = _panels(1)
    figure.set_size_inches(7.2, 3.2)
    _bars(axes, [short(d) for d in DBP15K], ours, _of_method)
    width = 0.8 / len(METHODS)
    for place, method in enumerate(METHODS):
        for group, dataset in enumerate(DBP15K):
            paper = paper_value("overall", of_method(dataset, 0.01, method), "hit1")
            if paper is not None:
                middle = group + (place - (len(METHODS) - 1) / 2) * width
                axes.hlines(paper, middle - width / 2, middle + width / 2, color="black", linewidth=1.2)
    axes.plot([], [], color="black", linewidth=1.2, label="the paper")
    axes.set_ylabel("Hit@1, 1 % seeds")
    _legend(axes)
    return figure


def generality(results: Results) -> Any:
    """Bars by share of seeds, one panel per encoder."""
    encoders, fractions = OTHER_ENCODERS, GENERALITY_FRACTIONS
    series = [{m: _hit1(results, m, e, fractions=fractions) for m in GENERALITY_METHODS} for e in encoders]
    if not _any(series):
        return None
    figure, panels = _panels(len(encoders))
    for axes, encoder, each in zip(panels, encoders, series, strict=True):
        _bars(axes, [f"{fraction:.0%}" for fraction in fractions], each, _of_method)
        axes.set_title(f"{ENCODER_LABELS[encoder]}, zh_en")
    panels[0].set_ylabel("Hit@1")
    _legend(panels[-1])
    return figure


def reliance(results: Results) -> Any:
    """Curves over the share of seeds, one panel per encoder; dotted: the paper."""
    encoders = ("dual_amn", "rrea")
    methods = {"dual_amn": METHODS, "rrea": GENERALITY_METHODS}
    own: dict[str, str | None] = {"dual_amn": None, "rrea": "rrea"}  # our presets are among the first
    series = [{m: _hit1(results, m, own[encoder]) for m in methods[encoder]} for encoder in encoders]
    if not _any(series):
        return None
    figure, panels = _panels(len(encoders))
    percent = [100 * fraction for fraction in FRACTIONS]
    for axes, encoder, each in zip(panels, encoders, series, strict=True):
        _lines(axes, percent, each, _of_method)
        kinds = {m: [of_method(ZH, f, m, own[encoder]) for f in FRACTIONS] for m in methods[encoder]}
        paper = {m: [paper_value("overall", kind, "hit1") for kind in each_kind] for m, each_kind in kinds.items()}
        _lines(axes, percent, paper, lambda m: {"color": COLOURS[m], **PAPER_STYLE})
        axes.set_title(f"{ENCODER_LABELS[encoder]}, zh_en")
        _percent(axes)
    panels[0].set_ylabel("Hit@1 (dotted: the paper)")
    _legend(panels[0], outside=False)
    return figure


def _precision_and_recall(xs: Sequence[Any], series: Mapping[str, Series], label: str) -> Any:
    if not _any(series.values()):
        return None
    figure, panels = _panels(2)
    for axes, metric in zip(panels, ("precision", "recall"), strict=True):
        _lines(axes, xs, series[metric], _of_method)
        axes.set_ylabel(f"{metric} of pseudo mappings")
        axes.set_xlabel(label)
        axes.set_xticks(xs)
    _legend(panels[-1])
    return figure


def pairs_by_fraction(results: Results) -> Any:
    """Precision and recall of the last pseudo mappings over the share of seeds."""
    series: dict[str, Series] = {
        metric: {
            m: [_mean(results.of_pairs(of_method(ZH, f, m), metric)) for f in FRACTIONS] for m in METHODS[1:]
        }
        for metric in ("precision", "recall")
    }  # fmt: skip
    return _precision_and_recall([100 * fraction for fraction in FRACTIONS], series, "seeds, % (zh_en)")


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def pairs_by_round(results: Results) -> Any:
    """The same in every round at 1 %."""
    found = {m: results[of_method(ZH, 0.01, m)][:1] for m in METHODS[1:]}
    histories = {m: records[0]["history"] if records else [] for m, records in found.items()}
    longest = max(map(len, histories.values()))
    series: dict[str, Series] = {
        metric: {
            m: [done["metrics"]["pairs"][metric] for done in history] + [None] * (longest - len(history))
            for m, history in histories.items()
        }
        for metric in ("precision", "recall")
    }
    return _precision_and_recall(range(longest), series, "round (zh_en, 1 % seeds)")


def selection(results: Results) -> Any:
    """Bars of the strategies by share of seeds, beside the best baseline."""
    baselines = [[value for value in column if value is not None] for column in zip(
        *(_hit1(results, m) for m in BASELINES), strict=True
    )]  # fmt: skip
    strategies = {label: _hit1(results, "stea", variant=name) for name, label in SELECTIONS.items()}
    if not _any([{name: values for name, values in strategies.items() if name != SELECTIONS[""]}]):
        return None
    series: Series = {"Baseline": [max(column, default=None) for column in baselines], **strategies}
    figure, (axes,) = _panels(1)
    _bars(axes, [f"{fraction:.0%}" for fraction in FRACTIONS], series, lambda label: {"label": label})
    axes.set_ylabel("Hit@1, zh_en")
    _legend(axes)
    return figure


def candidates(results: Results) -> Any:
    """Curves over K, one per share of seeds."""
    series: Series = {
        f"{f:.0%}": [results.mean(of_method(ZH, f, "stea", variant=variant_of(k)), "hit1") for k in CANDIDATES]
        for f in FRACTIONS
    }
    others = [place for place, k in enumerate(CANDIDATES) if variant_of(k)]
    if not _any([{name: [values[place] for place in others] for name, values in series.items()}]):
        return None
    figure, (axes,) = _panels(1)
    _lines(axes, CANDIDATES, series, lambda label: {"label": label})
    axes.set_xlabel("K")
    axes.set_ylabel("Hit@1 of STEA, zh_en")
    _legend(axes, "seeds")
    return figure


FIGURES: dict[str, Callable[[Results], Any]] = {
    "few_seeds": few_seeds,
    "generality": generality,
    "reliance": reliance,
    "pairs_by_fraction": pairs_by_fraction,
    "pairs_by_round": pairs_by_round,
    "selection": selection,
    "candidates": candidates,
}
