"""The page: sections in the order in which one looks at a result."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np

from stea_fast import __version__
from stea_fast._util.versions import versions
from stea_fast.alignment.relation_rows import relation_rows
from stea_fast.alignment.report import charts
from stea_fast.alignment.report.calibration_section import calibration_section
from stea_fast.alignment.report.content import ReportContent
from stea_fast.alignment.report.elements import Name, figure, figures, section, table
from stea_fast.alignment.report.entities_section import entities_section
from stea_fast.alignment.report.lookup import data_elements
from stea_fast.alignment.report.names import shortened

MOST_RELATIONS, LEAST_CONTAINMENT = 40, 0.1  # of the pairs of relations that are shown
MOST_OF_A_SETTING = 2000  # letters; a command line may name many files
_DEGREES = (1, 2, 3, 5, 9, 17, 33)


def render(report: ReportContent) -> str:
    """The whole page as text."""
    title = shortened(f"Alignment of {report.pair.name}" if report.pair.name else "Alignment")
    data, depth = data_elements(report)
    sections = [
        _summary(report), _quality(report), _history(report), calibration_section(report), _coverage(report),
        _relations(report), entities_section(report, *depth), _settings(report),
    ]  # fmt: skip
    style, script = f"\n{_asset('page.css')}", f"\n{_asset('tables.js')}\n{_asset('page.js')}"
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">\n'
        f"<style>{style}</style>\n</head>\n<body>\n<main>\n<h1><bdi>{escape(title)}</bdi></h1>\n"
        + "\n".join(filter(None, sections))
        + f"\n</main>\n{data}\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return resources.files("stea_fast.alignment.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """The browser loads nothing, and runs only what this page came with: what slips in as markup has no effect."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    return "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'".format(*digests)


def _summary(report: ReportContent) -> str:
    links, pair = report.links, report.pair
    mean, low, high = report.expected_precision
    tiles = [
        ("links", f"{links.count('link'):,}"),
        ("seeds", f"{links.count('seed'):,}"),
        ("uncertain", f"{links.count('uncertain'):,}"),
        ("without counterpart", f"{links.count('no_counterpart'):,}"),
        (
            "precision to expect" if np.isnan(mean) else f"precision to expect, {low:.3f} to {high:.3f}",
            "–" if np.isnan(mean) else f"{mean:.3f}",
        ),
    ]
    content = "".join(f"<div><b>{value}</b><span>{what}</span></div>" for what, value in tiles)
    return section("Summary", f'<div class="tiles">{content}</div>', note=f"From {pair.kg1} to {pair.kg2}.")


def _quality(report: ReportContent) -> str:
    if report.quality is None:
        return ""
    links, judged = report.quality.links, report.quality.judged
    rows = [(what, metrics.hit1, metrics.hit10, metrics.mrr) for what, metrics in report.quality.rankings.items()]
    content = table(["ranking", "Hit@1", "Hit@10", "MRR"], rows)
    of_links = (("all that were output", links), ("of sources with a known truth", judged))
    rows = [(what, metrics.precision, metrics.recall, metrics.f1) for what, metrics in of_links]
    content += table(["links", "precision", "recall", "F1"], rows)
    note = (
        f"Measured on {links.num_links:,} true links that no step of the run has read. They tell of the sources of "
        f"{judged.num_pairs:,} links; of the others nothing is known, and the first line counts them as wrong."
    )
    return section("Quality", content, note=note)


def _history(report: ReportContent) -> str:
    history = report.result.history
    if not history:
        return ""
    rounds = [float(each.number) for each in history]
    pairs = [float(each.num_pairs) for each in history]
    parts = [
        figure("Pseudo mappings", charts.line_chart(rounds, {"pairs": pairs}, top=max([*pairs, 1.0]), x_label="round"))
    ]
    if all(each.metrics for each in history):
        hits: dict[str, list[float]] = {
            name: [each.metrics[name]["hit1"] for each in history]
            for name in ("encoder", "refined")
            if name in history[0].metrics
        }
        judged: dict[str, list[float]] = {
            name: [each.metrics["pairs"][name] for each in history] for name in ("precision", "recall")
        }
        parts.append(figure("Hit@1", charts.line_chart(rounds, hits, top=1.0, x_label="round")))
        parts.append(figure("Pseudo mappings, judged", charts.line_chart(rounds, judged, top=1.0, x_label="round")))
    rows = [
        (each.number, each.num_pairs, f"{sum(each.seconds.values()):.1f}", round(each.peak_mb), _searched(each.search))
        for each in history
    ]
    return section("Rounds", figures(*parts) + table(["round", "pairs", "seconds", "peak MB", "search"], rows))


def _searched(search: dict[str, Any]) -> str:
    """How a round searched: the engine, how much, and the recall of an approximate search."""
    if not search:
        return "–"
    recall = f", recall {min(search['recall']):.3f}" if "recall" in search else ""
    return f"{search['engine']}, {search['sources']:,} × {search['targets']:,}{recall}"


def _coverage(report: ReportContent) -> str:
    """How well connected the graphs are, and how that bears on finding a counterpart."""
    pair, links = report.pair, report.links
    names = [f"{low}" if high == low + 1 else f"{low}–{high - 1}" for low, high in pairwise(_DEGREES)]
    names.append(f"{_DEGREES[-1]}+")
    bins = [np.digitize(kg.degrees, _DEGREES) - 1 for kg in (pair.kg1, pair.kg2)]
    shares = {
        name: (np.bincount(place[place >= 0], minlength=len(names)) / len(place)).tolist()
        for name, place in zip(("first graph", "second graph"), bins, strict=True)
    }
    linked = links.targets >= 0
    covered = [float(linked[bins[0] == i].mean()) if (bins[0] == i).any() else float("nan") for i in range(len(names))]
    top = max(max(values) for values in shares.values())
    content = figures(
        figure("Share of entities", charts.bar_chart(names, shares, top=top, x_label="degree")),
        figure(
            "Linked, of the first graph", charts.bar_chart(names, {"share linked": covered}, top=1.0, x_label="degree")
        ),
    )
    return section("Degrees and coverage", content)


def _relations(report: ReportContent) -> str:
    refinement = report.result.refinement
    if refinement is None:
        return ""
    rows = relation_rows(report.pair.kg1, report.pair.kg2, refinement.relations)
    shown = [
        (Name(row.source), Name(row.target + ("⁻" if row.inverse else "")), row.source_in_target, row.target_in_source)
        for row in rows[:MOST_RELATIONS]
        if max(row.source_in_target, row.target_in_source) > LEAST_CONTAINMENT
    ]
    if not shown:
        return ""
    note = f"The {len(shown)} most alike of {len(rows):,} pairs; r⁻ is the inverse of r."
    header = ["relation", "counterpart", "contained in it", "contains it"]
    return section("Relations", table(header, shown), note=note)


def _settings(report: ReportContent) -> str:
    values = {**report.settings, **versions()}
    rows = [(name, shortened(str(value), MOST_OF_A_SETTING)) for name, value in values.items() if value is not None]
    note = f"Made by stea-fast {__version__}."
    return section("To run it again", table(["setting", "value"], rows, stacked=True), note=note)
