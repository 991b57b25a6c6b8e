"""Draws the speed part of a JSON report of `compare.py` as docs/refine_speed.svg.

python -m bench.kernels.figure report.json [--out docs/refine_speed.svg]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from bench.lib.folders import DOCS
from bench.lib.measure import duration

OUT = DOCS / "refine_speed.svg"
INK, MUTED = "#1f2328", "#59636e"
OTHERS, OURS = "#9aa4af", "#0969da"


def bars(speed: dict[str, Any]) -> list[tuple[str, float, str]]:
    """(label, seconds, colour) from the top of the chart to the bottom."""
    n = speed["threads"]
    seconds = {label: timing["median"] for label, timing in speed["seconds"].items()}
    found = [("per-pair way, torch, 1 thread", speed["per_pair"]["seconds"], OTHERS)]
    for label, key, colour in (
        (f"Numba, {n} threads", f"numba, {n} threads", OURS),
        ("native, 1 thread", "native, 1 thread", OURS),
        (f"native, {n} threads", f"native, {n} threads", OURS),
    ):
        if key in seconds:
            found.append((label, seconds[key], colour))
    return found


def draw(report: dict[str, Any], out: Path) -> None:
    """One horizontal bar per contender, on a logarithmic scale."""
    speed, machine = report["parts"]["speed"], report["machine"]
    labels, seconds, colours = zip(*bars(speed), strict=True)
    plt.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "stea-fast"})
    plt.rcParams.update({"font.size": 11, "text.color": INK})
    figure, axes = plt.subplots(figsize=(8, 3.0), facecolor="white")
    places = range(len(labels))
    axes.barh(places, seconds, color=colours, height=0.62)
    axes.set_xscale("log")
    axes.set_xlim(min(seconds) / 3, max(seconds) * 8)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    for place, value in zip(places, seconds, strict=True):
        ratio = seconds[0] / value
        text = duration(value) if place == 0 else f"{duration(value)}   ({ratio:,.0f} × faster)"
        axes.text(value * 1.15, place, text, va="center", color=INK)
    _strip(axes)
    figure.suptitle(_title(speed), x=0.02, ha="left", fontsize=12, fontweight="bold")
    figure.text(0.02, 0.02, _small_print(machine, speed), fontsize=7.5, color=MUTED)
    figure.tight_layout(rect=(0, 0.08, 1, 0.98))
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def _strip(axes: Any) -> None:
    """Only what is read: no frame, no ticks but the scale."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.tick_params(axis="y", length=0, colors=INK)
    axes.tick_params(axis="x", which="both", colors=MUTED, labelsize=8)
    axes.set_xlabel("seconds, logarithmic scale", fontsize=8, color=MUTED)


def _title(speed: dict[str, Any]) -> str:
    return f"Evidence of one refinement, {speed['case']}, K = {speed['k']}, both directions"


def _small_print(machine: dict[str, Any], speed: dict[str, Any]) -> str:
    sampled = sum(speed["per_pair"]["sampled_entities"].values())
    versions = ", ".join(f"{name} {machine[name]}" for name in ("numba", "torch") if machine.get(name))
    return (
        f"{machine['cpu']}, {machine['cpus']} CPUs, Python {machine['python']}, {versions}, "
        f"{machine['date']}.\n"
        f"Medians of one interleaved run; per-pair way extrapolated from {sampled} entities."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the speed figure.")
    parser.add_argument("report", type=Path, help="JSON written by compare.py --json, with the speed part")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    report = json.loads(arguments.report.read_text(encoding="utf-8"))
    if "speed" not in report.get("parts", {}):
        parser.error(f"{arguments.report} has no speed part; run compare.py with --parts speed")
    draw(report, arguments.out)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
