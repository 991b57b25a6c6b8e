"""Charts as inline SVG. Colours and fonts come from the page's style, so that they follow its light and dark scheme."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 30
_PLOT_WIDTH, _PLOT_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM


def line_chart(xs: Sequence[float], series: Mapping[str, Sequence[float]], *, top: float, x_label: str) -> str:
    """Lines over common xs; y from 0 to `top`. NaN leaves a gap."""
    low, high = min(xs), max(xs)
    span = (high - low) or 1.0
    marks = [_axes([(x, f"{x:g}") for x in _ticks(low, high)], low, span, top, x_label)]
    for number, (name, values) in enumerate(series.items()):
        points = [
            (LEFT + _PLOT_WIDTH * (x - low) / span, _y(value, top))
            for x, value in zip(xs, values, strict=True)
            if not math.isnan(value)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points)
        marks.append(f'<g class="s{number}"><title>{escape(name)}</title><polyline points="{path}"/>{dots}</g>')
    return _svg("".join(marks)) + _legend(list(series))


def bar_chart(groups: Sequence[str], series: Mapping[str, Sequence[float]], *, top: float, x_label: str) -> str:
    """Bars side by side in every group; y from 0 to `top`."""
    slot = _PLOT_WIDTH / max(len(groups), 1)
    width = 0.8 * slot / max(len(series), 1)
    marks = [_axes([(i + 0.5, name) for i, name in enumerate(groups)], 0.0, max(len(groups), 1), top, x_label)]
    for number, (name, values) in enumerate(series.items()):
        bars = []
        for i, value in enumerate(values):
            if not math.isnan(value):
                x, y = LEFT + slot * (i + 0.1) + number * width, _y(value, top)
                label = f"{name}, {groups[i]}: {_number(value)}"
                bars.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{TOP + _PLOT_HEIGHT - y:.1f}">'
                    f"<title>{escape(label)}</title></rect>"
                )
        marks.append(f'<g class="s{number}">{"".join(bars)}</g>')
    return _svg("".join(marks)) + _legend(list(series))


class Point(NamedTuple):
    """What became of the links of one bin: mean probability claimed, share right, its interval, and how many."""

    claimed: float
    right: float
    low: float
    high: float
    number: int


def reliability_chart(curves: Mapping[str, Sequence[Point]]) -> str:
    """Share of right links over claimed probability; on the dashed line the two agree. The larger, the more links."""
    marks = [
        _axes([(x, f"{x:g}") for x in (0.0, 0.5, 1.0)], 0.0, 1.0, 1.0, "probability claimed"),
        f'<line class="ideal" x1="{LEFT}" y1="{_y(0, 1)}" x2="{LEFT + _PLOT_WIDTH}" y2="{_y(1, 1)}"/>',
    ]
    most = max((point.number for points in curves.values() for point in points), default=1)
    for number, (name, points) in enumerate(curves.items()):
        path = " ".join(f"{_across(point):.1f},{_y(point.right, 1.0):.1f}" for point in points)
        dots = "".join(_dot(point, name, most) for point in points)
        marks.append(f'<g class="s{number}"><polyline points="{path}"/>{dots}</g>')
    return _svg("".join(marks)) + _legend(list(curves))


def _dot(point: Point, curve: str, most: int) -> str:
    x, radius = _across(point), 2.0 + 4.0 * math.sqrt(point.number / most)
    y, low, high = (_y(share, 1.0) for share in (point.right, point.low, point.high))
    label = (
        f"{curve}: of {point.number:,} claimed at {point.claimed:.3f} a share of {point.right:.3f} is right "
        f"({point.low:.3f} to {point.high:.3f})"
    )
    return (
        f"<g><title>{escape(label)}</title>"
        f'<line class="interval" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/></g>'
    )


def _across(point: Point) -> float:
    return LEFT + _PLOT_WIDTH * point.claimed


def _svg(content: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{content}</svg>'


def _legend(names: Sequence[str]) -> str:
    items = "".join(f'<li class="s{number}">{escape(name)}</li>' for number, name in enumerate(names))
    return f'<ul class="legend">{items}</ul>'


def _axes(ticks: Sequence[tuple[float, str]], low: float, span: float, top: float, x_label: str) -> str:
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = _y(share * top, top)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text class="y" x="{LEFT - 5}" y="{y + 4:.1f}">{_number(share * top)}</text>')
    for x, name in ticks:
        place = LEFT + _PLOT_WIDTH * (x - low) / span
        parts.append(f'<text class="x" x="{place:.1f}" y="{TOP + _PLOT_HEIGHT + 13}">{escape(name)}</text>')
    parts.append(f'<text class="x label" x="{LEFT + _PLOT_WIDTH / 2}" y="{HEIGHT - 3}">{escape(x_label)}</text>')
    return "".join(parts)


def _y(value: float, top: float) -> float:
    return TOP + _PLOT_HEIGHT * (1.0 - value / (top or 1.0))


def _ticks(low: float, high: float) -> list[float]:
    step = max(1, math.ceil((high - low) / 6))
    return [float(x) for x in range(int(low), int(high) + 1, step)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"
