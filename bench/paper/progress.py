"""What the runner says of its cells: which are finished, what they gave, how long the others take, how to run them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.lib.folders import ROOT
from bench.paper.cells import Cell
from bench.paper.results import judged_by

Finished = dict[str, dict[str, Any]]  # lines of finished cells by the cell's key
COMMAND = "python -m bench.paper.run"
MOST_KEPT = 10  # finished cells that are named before a run


def kept(cells: Sequence[Cell], finished: Finished, path: Path) -> str:
    """Which of the cells will not be run because they are finished, and how to run them all the same."""
    done = [cell for cell in cells if cell.key in finished]
    if not done:
        return ""
    lines = [f"{len(done)} of {len(cells)} cells are finished and stay as they are; --again runs them anew:"]
    lines += [f"  {outcome(finished[cell.key])}  {cell.id}" for cell in done[:MOST_KEPT]]
    if len(done) > MOST_KEPT:
        lines.append(f"  and {len(done) - MOST_KEPT} more, which --list shows")
    lines.append(f"  (lines of {_place(path)})")
    return "\n".join(lines) + "\n"


def state(cells: Sequence[Cell], finished: Finished, path: Path) -> str:
    """How many of the cells are finished, where their lines are, and what to do about the others."""
    missing = [cell for cell in cells if cell.key not in finished]
    text = f"{len(cells) - len(missing)} of {len(cells)} cells are finished: lines of {_place(path)}"
    if missing:
        text += f"\nstart the same command again for the others, the first of which is {missing[0].id}"
    return text


def listing(cells: Sequence[Cell], finished: Finished, outdated: Finished, path: Path) -> str:
    """A line for every cell: what it gave and when, or how long it may take; and how to run them."""
    lines, known = [], (finished, outdated)  # the time of an outdated cell is better than none
    for cell in cells:
        if cell.key in finished:
            lines.append(f"done  {outcome(finished[cell.key])}  {cell.id}")
        else:
            seconds = expected_seconds(cell, *known)
            expected = "time unknown" if seconds is None else f"about {hours(seconds)}"
            why = "  (outdated: its method has changed)" if cell.key in outdated else ""
            lines.append(f"{'':6}{expected:<36}  {cell.id}{why}")
    done, waiting = ([cell for cell in cells if (cell.key in finished) == is_done] for is_done in (True, False))
    lines.append(f"{len(done)} of {len(cells)} cells are finished: lines of {_place(path)}")
    if waiting:
        old = sum(cell.key in outdated for cell in waiting)
        lines.append(
            f"missing: {len(waiting)}, of which {old} are outdated; {time_left(waiting, *known)} in one process"
        )
    lines += [f'run one:            {COMMAND} --only "{cell.id}"' for cell in waiting[:1]]
    lines += [f'run one once more:  {COMMAND} --only "{cell.id}" --again' for cell in done[:1]]
    return "\n".join(lines)


def outcome(record: dict[str, Any]) -> str:
    """What a finished cell gave, when, and how long it took."""
    hit1 = record["metrics"][judged_by(record["method"])]["closed"]["hit1"]
    return f"{record['machine']['date']}  Hit@1 {hit1:.3f}  {hours(record['seconds']):>12}"


LIKENESS = (
    ("method", "encoder", "dataset", "fraction", "variant"),
    ("method", "encoder", "dataset", "fraction"),
    ("method", "encoder", "fraction"),
    ("method", "encoder"),
)


def expected_seconds(cell: Cell, *known: Finished) -> float | None:
    """From the last line of the cells most like this one, of those that are known first; None if there is none."""
    for finished in known:
        for likeness in LIKENESS:
            wanted = [getattr(cell, name) for name in likeness]
            like = [done["seconds"] for done in finished.values() if [done[name] for name in likeness] == wanted]
            if like:
                return float(like[-1])  # older ones are of slower code
    return None


def time_left(rest: Sequence[Cell], *known: Finished, workers: int = 1) -> str:
    """For people: hours of the cells whose kind is known, shared by workers, and how many are of other kinds."""
    expected = [expected_seconds(cell, *known) for cell in rest]
    certain = [seconds for seconds in expected if seconds is not None]
    if not certain:
        return "time left: unknown"
    text = f"time left: {hours(sum(certain) / workers)}"
    unknown = len(expected) - len(certain)
    return f"{text} and {unknown} cells of kinds not run yet" if unknown else text


def hours(seconds: float) -> str:
    """For people."""
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def _place(path: Path) -> str:
    """Relative to the project, where it lies in it."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
