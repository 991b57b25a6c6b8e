"""The section on the probabilities: on what they rest, and how far they kept their word on held-out seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from stea_fast._util.statistics import wilson_interval
from stea_fast.alignment.report import charts
from stea_fast.alignment.report.content import ReportContent
from stea_fast.alignment.report.elements import figure, figures, section, table
from stea_fast.evaluation.metrics import ReliabilityCurve


def calibration_section(report: ReportContent) -> str:
    """How the probabilities were calibrated, what precision they promise, and the reliability curve."""
    calibrator = report.calibrator
    content = f"<p>Probabilities: {escape(calibrator.note)}.</p>"
    if calibrator.is_thin:
        content = (
            f'<p class="warning">The probabilities rest on {calibrator.num_links} held-out seeds of these graphs. '
            "Treat them as an order of the links, not as shares.</p>" + content
        )
    content += f"<p>{escape(expected_precision_text(report))}</p>"
    if calibrator.before is None or calibrator.after is None:
        return section("Calibration", content)
    curves = {"as computed": _points(calibrator.before), "as written": _points(calibrator.after)}
    content += figures(figure("Share of right links", charts.reliability_chart(curves)))
    content += table(["claimed", "mean", "seeds", "right", "95 % interval"], _rows(calibrator.after))
    note = (
        "On the dashed line probabilities keep their word. Bars are Wilson's 95 % intervals, and larger dots stand for "
        "more held-out seeds. The table is of the probabilities as written. Curves and table are of held-out seeds "
        "that have a counterpart; each was judged by a model that had not seen it."
    )
    return section("Calibration", content, note=note)


def expected_precision_text(report: ReportContent) -> str:
    """For people: the expected share of right links, with its interval."""
    mean, low, high = report.expected_precision
    if math.isnan(mean):
        return "There is no link beyond the seeds whose precision could be expected."
    return (
        f"Of the links beyond the seeds a share of {mean:.3f} is expected to be right "
        f"(95 % interval {low:.3f} to {high:.3f})."
    )


def _points(curve: ReliabilityCurve) -> list[charts.Point]:
    """The bins that are not empty."""
    low, high = wilson_interval(curve.accuracy, curve.counts)
    columns = (curve.confidence, curve.accuracy, low, high, curve.counts)
    points = [charts.Point(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
    return [point for point in points if point.number]


def _rows(curve: ReliabilityCurve) -> Iterator[tuple[str | float | int, ...]]:
    bins = len(curve.counts)
    low, high = wilson_interval(curve.accuracy, curve.counts)
    for i, count in enumerate(curve.counts.tolist()):
        if count:
            mean, right = float(curve.confidence[i]), float(curve.accuracy[i])
            yield f"{i / bins:g} to {(i + 1) / bins:g}", mean, count, right, f"{low[i]:.3f} to {high[i]:.3f}"
