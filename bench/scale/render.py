"""Write what `bench.scale.run` measured into docs/scale.md, with a plot: python -m bench.scale.render"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.lib.folders import DOCS
from bench.lib.measure import markdown
from bench.paper import store
from bench.scale.cells import FRACTIONS, PRESETS, SIZES, Cell, all_cells
from bench.scale.run import RESULTS

PAGE, FIGURE = DOCS / "scale.md", DOCS / "figures" / "scale.svg"
BEGIN, END = "<!-- measured by bench.scale.run -->", "<!-- end -->"
COLOURS = {"structural": "#0969da", "large": "#bc4c00"}
Lines = dict[str, dict[str, Any]]


def latest(path: Path = RESULTS) -> Lines:
    """The last line of every cell."""
    return {line["cell"]: line for line in store.read(path)}


def table(lines: Lines) -> str:
    """Every cell that was run, and how many were not."""
    header = [
        "pair, seeds, preset",
        "threads",
        "time (plan)",
        "peak memory (plan)",
        "Hit@1",
        "precision",
        "recall",
        "F1",
    ]
    keys = [cell.key for cell in all_cells()]
    rows = [_row(lines[key]) for key in keys if key in lines]
    left = f"{len(keys) - len(rows)} of {len(keys)} cells have not been run; `--list` names them."
    return f"{markdown([*header, 'search'], rows)}\n\n{left}"


def _row(line: dict[str, Any]) -> list[str]:
    quality = (f"{line[name]:.3f}" for name in ("hit1", "precision", "recall", "f1"))
    time = f"{_duration(line['seconds'])} ({_duration(line['planned_seconds'])})"
    memory = f"{line['peak_mb'] / 1e3:.2f} GB ({line['planned_mb'] / 1e3:.2f})"
    return [line["cell"], str(line["threads"]), time, memory, *quality, _search(line)]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def _search(line: dict[str, Any]) -> str:
    """How the first round searched, with the recall of an approximate search."""
    first = next(iter(line["searches"]), {})
    if not first:
        return "none"
    if "recall" not in first:
        return f"exact, {first['width']} dimensions"
    return f"{first['engine']}, {first['width']} dimensions, recall {min(first['recall']):.2f}"


def growth(lines: Lines) -> str:
    """How time and memory grow with the edges of the profile "dbp1m": exponents between sizes that were run."""
    rows = []
    for preset in PRESETS:
        for fraction in FRACTIONS:
            cells = [lines.get(Cell(f"dbp1m-{size}", fraction, preset).key) for size in SIZES]
            found = [cell for cell in cells if cell is not None]
            for one, two in pairwise(found):
                if one["threads"] == two["threads"]:
                    rows.append([f"{one['cell']} to {two['cell'].split('/')[0]}", *_exponents(one, two)])
    return markdown(["from, to", "edges", "time per edge", "exponent of time", "exponent of memory"], rows)


def _exponents(one: dict[str, Any], two: dict[str, Any]) -> list[str]:
    edges = two["edges"] / one["edges"]
    exponents = (math.log(two[name] / one[name]) / math.log(edges) for name in ("seconds", "peak_mb"))
    per_edge = two["seconds"] / one["seconds"] / edges
    return [f"{edges:.2f} ×", f"{per_edge:.2f} ×", *(f"{value:.2f}" for value in exponents)]


def draw(lines: Lines, out: Path) -> None:
    """Seconds and memory over edges, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "stea-fast", "font.size": 10})
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), facecolor="white")
    for preset in PRESETS:
        for fraction, style in zip(FRACTIONS, ("-o", "--s"), strict=True):
            cells = (lines.get(Cell(f"dbp1m-{size}", fraction, preset).key) for size in SIZES)
            found = [cell for cell in cells if cell is not None]
            edges = [cell["edges"] for cell in found]
            label = f"{preset}, {fraction:.0%} seeds"
            for axis, name, scale in zip(axes, ("seconds", "peak_mb"), (1.0, 1e3), strict=True):
                axis.loglog(edges, [cell[name] / scale for cell in found], style, color=COLOURS[preset], label=label)
    for axis, title in zip(axes, ("seconds of the run", "peak memory, GB"), strict=True):
        axis.set_xlabel("edges of both graphs")
        axis.set_title(title, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def rendered(page: str, lines: Lines) -> str:
    """The page with what was measured between its marks."""
    head, _, rest = page.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"docs/scale.md needs the lines {BEGIN!r} and {END!r}")
    return f"{head}{BEGIN}\n\n{table(lines)}\n\n### Growth\n\n{growth(lines)}\n\n{END}{tail}"


def main() -> None:
    lines = latest()
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), lines), encoding="utf-8")
    draw(lines, FIGURE)
    print(f"{len(lines)} of {len(all_cells())} cells in {PAGE.name} and {FIGURE.name}")


if __name__ == "__main__":
    main()
