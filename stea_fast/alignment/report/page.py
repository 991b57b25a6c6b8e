"""The page: sections in the order in which one looks at a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from itertools import pairwise

import numpy as np

from stea_fast import __version__
from stea_fast._util.versions import versions
from stea_fast.alignment.link_table import STATUSES
from stea_fast.alignment.relation_rows import relation_rows
from stea_fast.alignment.report import charts
from stea_fast.alignment.report.content import ReportContent
from stea_fast.alignment.report.links import sample_section

MOST_RELATIONS, LEAST_CONTAINMENT = 40, 0.1  # of the pairs of relations that are shown
_DEGREES = (1, 2, 3, 5, 9, 17, 33)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"  # not even by accident


def render(report: ReportContent) -> str:
    """The whole page as text."""
    title = f"Alignment of {report.pair.name}" if report.pair.name else "Alignment"
    sections = [
        _summary(report), _quality(report), _history(report), _calibration(report), _coverage(report),
        _relations(report), sample_section(report), _settings(report),
    ]  # fmt: skip
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}; img-src data:">\n'
        f"<style>\n{_asset('page.css')}</style>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>\n"
        + "\n".join(filter(None, sections))
        + f"\n</main>\n<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return resources.files("stea_fast.alignment.report").joinpath(name).read_text(encoding="utf-8")


def section(title: str, content: str, *, note: str = "") -> str:
    """A section with a heading and, in small print, how to read it."""
    return (
        f"<section>\n<h2>{escape(title)}</h2>\n{content}\n"
        + (f'<p class="note">{escape(note)}</p>\n' if note else "")
        + "</section>"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str | float | int]]) -> str:
    """A table that scrolls sideways on a narrow screen; numbers are aligned to the right."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: str | float | int) -> str:
    if isinstance(value, float):
        return f'<td class="n">{value:.3f}</td>'
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    return f"<td>{escape(value)}</td>"


def _summary(report: ReportContent) -> str:
    links, pair = report.links, report.pair
    probs = links.probs[links.status == STATUSES.index("link")]
    tiles = [
        ("links", f"{links.count('link'):,}"),
        ("seeds", f"{links.count('seed'):,}"),
        ("without counterpart", f"{links.count('no_counterpart'):,}"),
        ("mean probability", f"{probs.mean():.3f}" if len(probs) else "–"),
    ]
    content = "".join(f"<div><b>{value}</b><span>{what}</span></div>" for what, value in tiles)
    return section("Summary", f'<div class="tiles">{content}</div>', note=f"From {pair.kg1} to {pair.kg2}.")


def _quality(report: ReportContent) -> str:
    if report.quality is None:
        return ""
    links = report.quality.links
    rows = [(what, metrics.hit1, metrics.hit10, metrics.mrr) for what, metrics in report.quality.rankings.items()]
    content = table(["ranking", "Hit@1", "Hit@10", "MRR"], rows)
    content += table(["links", "precision", "recall", "F1"], [("output", links.precision, links.recall, links.f1)])
    return section(
        "Quality", content, note=f"Measured on {links.num_links:,} true links that no step of the run has read."
    )


def _history(report: ReportContent) -> str:
    history = report.history
    if not history:
        return ""
    rounds = [float(each.number) for each in history]
    pairs = [float(each.num_pairs) for each in history]
    parts = [
        _figure("Pseudo mappings", charts.line_chart(rounds, {"pairs": pairs}, top=max([*pairs, 1.0]), x_label="round"))
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
        parts.append(_figure("Hit@1", charts.line_chart(rounds, hits, top=1.0, x_label="round")))
        parts.append(_figure("Pseudo mappings, judged", charts.line_chart(rounds, judged, top=1.0, x_label="round")))
    rows = [(each.number, each.num_pairs, sum(each.seconds.values()), each.peak_mb) for each in history]
    content = f'<div class="figures">{"".join(parts)}</div>' + table(["round", "pairs", "seconds", "peak MB"], rows)
    return section("Rounds", content)


def _figure(caption: str, chart: str) -> str:
    return f"<figure><figcaption>{escape(caption)}</figcaption>{chart}</figure>"


def _calibration(report: ReportContent) -> str:
    calibrator = report.calibrator
    note = f"Probabilities: {calibrator.note}."
    if calibrator.before is None or calibrator.after is None:
        return section("Calibration", "", note=note)
    note += " They are those of entities with a counterpart: all held-out seeds have one."
    curves = {
        name: (curve.confidence.tolist(), curve.accuracy.tolist())
        for name, curve in (("as computed", calibrator.before), ("as written", calibrator.after))
    }
    return section(
        "Calibration",
        f'<div class="figures">{_figure("Share of right links", charts.reliability_chart(curves))}</div>',
        note=note,
    )


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
    content = _figure("Share of entities", charts.bar_chart(names, shares, top=top, x_label="degree"))
    content += _figure(
        "Linked, of the first graph", charts.bar_chart(names, {"share linked": covered}, top=1.0, x_label="degree")
    )
    return section("Degrees and coverage", f'<div class="figures">{content}</div>')


def _relations(report: ReportContent) -> str:
    if report.refinement is None:
        return ""
    rows = relation_rows(report.pair.kg1, report.pair.kg2, report.refinement.relations)
    shown = [
        (row.source, row.target + ("⁻" if row.inverse else ""), row.source_in_target, row.target_in_source)
        for row in rows[:MOST_RELATIONS]
        if max(row.source_in_target, row.target_in_source) > LEAST_CONTAINMENT
    ]
    if not shown:
        return ""
    note = f"The {len(shown)} most alike of {len(rows):,} pairs; r⁻ is the inverse of r."
    return section("Relations", table(["relation", "counterpart", "contained in it", "contains it"], shown), note=note)


def _settings(report: ReportContent) -> str:
    rows = [(name, str(value)) for name, value in {**report.settings, **versions()}.items() if value is not None]
    return section("To run it again", table(["setting", "value"], rows), note=f"Made by stea-fast {__version__}.")
