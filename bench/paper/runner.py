"""Runs cells one after the other, skipping what is finished and continuing what was killed."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from bench.lib.inputs import MissingDataError
from bench.paper import compute, store
from bench.paper.experiments import Cell
from stea_fast.selftraining.history import Round


class Runner:
    """Runs cells.

    Args:
        results: the folder of the finished cells.
        checkpoints: the folder where a cell in progress keeps its state.
        threads: of everything; bits may depend on it, so a cell continues only what had as many.
        dwy100k: the folder of DWY100K, which is not part of the project.
    """

    def __init__(self, results: Path, checkpoints: Path, threads: int, dwy100k: Path | None = None) -> None:
        self.path, self.checkpoints, self.threads, self.dwy100k = results / store.CELLS, checkpoints, threads, dwy100k
        self.commit = compute.commit()  # now: the checkout may be another one when a long cell ends

    def finished(self) -> dict[str, dict[str, Any]]:
        """Finished cells by what was computed."""
        return {cell_of(record).key: record for record in store.read(self.path)}

    def run(self, cells: Sequence[Cell]) -> int:
        """Run what is not finished; the number of cells that failed, which does not stop the others."""
        failed, finished = 0, self.finished()
        for place, cell in enumerate(cells):
            if cell.key in finished:
                continue
            rest = [other for other in cells[place:] if other.key not in finished]
            print(f"[{len(cells) - len(rest) + 1}/{len(cells)}] {cell.id}   {time_left(rest, finished)}", flush=True)
            try:
                self._run_if_free(cell)
            except MissingDataError as error:
                failed += 1
                print(f"  skipped: {error}", flush=True)
            except Exception:
                failed += 1
                traceback.print_exc()
            finished = self.finished()  # also what other processes have finished meanwhile
        return failed

    def _run_if_free(self, cell: Cell) -> None:
        folder = self.checkpoints / f"{cell.key.replace('/', '_')}_threads{self.threads}"
        with store.reserved(folder) as ours:
            if not ours:
                print("  another process is at it", flush=True)
            elif cell.key not in self.finished():
                self._run(cell, folder)

    def _run(self, cell: Cell, folder: Path) -> None:
        pair = compute.load(cell, self.dwy100k)
        begin = perf_counter()

        def show(done: Round) -> None:
            best = done.metrics.get("refined", done.metrics["encoder"])["hit1"]
            elapsed = perf_counter() - begin
            print(f"  round {done.number}: Hit@1 {best:.3f}, {done.num_pairs:,} pairs, {elapsed:,.0f} s", flush=True)

        found = compute.run(cell, pair, folder, show)
        store.append(self.path, {**found, "threads": self.threads, "commit": self.commit})
        store.discard(folder)


def cell_of(record: dict[str, Any]) -> Cell:
    """The cell that a line is about."""
    return Cell(**{name: record[name] for name in Cell.__dataclass_fields__})


def expected_seconds(cell: Cell, finished: dict[str, dict[str, Any]]) -> float | None:
    """From the finished cells most like this one; None where there is none of its method and encoder."""
    for likeness in (
        ("method", "encoder", "dataset", "fraction", "variant"),
        ("method", "encoder", "dataset", "fraction"),
        ("method", "encoder", "fraction"),
        ("method", "encoder"),
    ):
        wanted = [getattr(cell, name) for name in likeness]
        like = [done["seconds"] for done in finished.values() if [done[name] for name in likeness] == wanted]
        if like:
            return float(np.mean(like))
    return None


def time_left(rest: Sequence[Cell], finished: dict[str, dict[str, Any]]) -> str:
    """For people: hours of the cells whose kind is known, and how many are not."""
    expected = [expected_seconds(cell, finished) for cell in rest]
    known = [seconds for seconds in expected if seconds is not None]
    if not known:
        return "time left: unknown"
    text = f"time left: {_hours(sum(known))}"
    unknown = len(expected) - len(known)
    return f"{text} and {unknown} cells of kinds not run yet" if unknown else text


def _hours(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
