"""Runs cells one after the other, skipping what is finished and continuing what was killed."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.lib.inputs import MissingDataError
from bench.paper import compute, progress, store
from bench.paper.experiments import Cell
from stea_fast.selftraining.history import Round


class Runner:
    """Runs cells.

    Args:
        results: the folder of the finished cells.
        checkpoints: the folder where a cell in progress keeps its state.
        threads: of everything; bits may depend on it, so a cell continues only what had as many.
        dwy100k: the folder of DWY100K, which is not part of the project.
        again: run finished cells anew; their new lines count instead of the old ones.
    """

    def __init__(
        self, results: Path, checkpoints: Path, threads: int, dwy100k: Path | None = None, *, again: bool = False
    ) -> None:
        self.path, self.checkpoints, self.threads, self.dwy100k = results / store.CELLS, checkpoints, threads, dwy100k
        self.again = again
        self.commit = compute.commit()  # now: the checkout may be another one when a long cell ends

    def finished(self) -> dict[str, dict[str, Any]]:
        """Finished cells by what was computed; of a cell that was run again the last line."""
        return {cell_of(record).key: record for record in store.read(self.path)}

    def run(self, cells: Sequence[Cell]) -> int:
        """Run what is not finished; the number of cells that failed, which does not stop the others."""
        failed, finished = 0, self.finished()
        if not self.again:
            print(progress.kept(cells, finished, self.path), end="", flush=True)
        done = set() if self.again else finished.keys()
        for place, cell in enumerate(cells):
            if cell.key in done:
                continue
            rest = [other for other in cells[place:] if other.key not in done]
            left = progress.time_left(rest, finished)
            print(f"[{len(cells) - len(rest) + 1}/{len(cells)}] {cell.id}   {left}", flush=True)
            try:
                self._run_if_free(cell)
            except MissingDataError as error:
                failed += 1
                print(f"  skipped: {error}", flush=True)
            except Exception:
                failed += 1
                traceback.print_exc()
            finished = self.finished()  # also what other processes have finished meanwhile
            done = done if self.again else finished.keys()
        print(progress.state(cells, finished, self.path), flush=True)
        return failed

    def _run_if_free(self, cell: Cell) -> None:
        folder = self.checkpoints / f"{cell.key.replace('/', '_')}_threads{self.threads}"
        with store.reserved(folder) as ours:
            if not ours:
                print("  another process is at it", flush=True)
            elif self.again or cell.key not in self.finished():
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
