"""Runs cells, skipping what is finished and continuing what was killed."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

from bench.lib.inputs import MissingDataError
from bench.paper import compute, progress, store
from bench.paper.cells import Cell
from bench.paper.versions import cell_of, current, outdated, version_of
from stea_fast.selftraining.history import Round


class Runner:
    """Runs cells.

    Args:
        results: the folder of the finished cells.
        checkpoints: the folder where a cell in progress keeps its state.
        threads: of everything; bits may depend on it, so a cell continues only what had as many.
        dwy100k: the folder of DWY100K, which is not part of the project.
        again: run finished cells anew; their new lines count instead of the old ones.
        workers: how many processes run cells side by side; 1 is this process.
    """

    def __init__(
        self, results: Path, checkpoints: Path, threads: int, dwy100k: Path | None = None, *, again: bool = False,
        workers: int = 1,
    ) -> None:  # fmt: skip
        self.path, self.checkpoints, self.threads, self.dwy100k = results / store.CELLS, checkpoints, threads, dwy100k
        self.again, self.workers = again, workers
        self.commit = compute.commit()  # now: the checkout may be another one when a long cell ends

    def finished(self) -> dict[str, dict[str, Any]]:
        """Finished cells by what was computed; of a cell that was run again the last line, outdated lines left out."""
        return {cell_of(record).key: record for record in current(store.read(self.path))}

    def outdated(self) -> dict[str, dict[str, Any]]:
        """Cells whose method has changed since they were run."""
        return outdated(store.read(self.path))

    def run(self, cells: Sequence[Cell]) -> int:
        """Run what is not finished; the number of cells that failed, which does not stop the others."""
        finished = self.finished()
        if not self.again:
            print(progress.kept(cells, finished, self.path), end="", flush=True)
        waiting = [cell for cell in cells if self.again or cell.key not in finished]
        if self.workers > 1:
            from bench.paper.workers import run_side_by_side

            failed = run_side_by_side(waiting, self, len(cells))
        else:
            failed = self._run_in_turn(waiting, len(cells))
        print(progress.state(cells, self.finished(), self.path), flush=True)
        return failed

    def _run_in_turn(self, waiting: Sequence[Cell], number: int) -> int:
        failed = 0
        for place, cell in enumerate(waiting):
            finished = self.finished()  # also what other processes have finished meanwhile
            if not self.again and cell.key in finished:
                continue
            rest = [other for other in waiting[place:] if self.again or other.key not in finished]
            left = progress.time_left(rest, *self.known_times())
            print(f"[{number - len(rest) + 1}/{number}] {cell.id}   {left}", flush=True)
            failed += not self.run_one(cell)
        return failed

    def known_times(self) -> tuple[dict[str, dict[str, Any]], ...]:
        """Lines from which the time of other cells is estimated: the finished cells, and outdated ones behind them."""
        return self.finished(), self.outdated()

    def run_one(self, cell: Cell, patience: float = 0.0) -> bool:
        """Run a cell, unless another process is at it, or finishes it within `patience` seconds; False if it failed."""
        folder = self.checkpoints / f"{cell.key.replace('/', '_')}_threads{self.threads}"
        try:
            until = monotonic() + patience
            while not self._run_if_free(cell, folder):
                if monotonic() >= until:
                    print("  another process is at it", flush=True)
                    break
                sleep(0.1)
        except MissingDataError as error:
            print(f"  skipped: {error}", flush=True)
            return False
        except Exception:
            traceback.print_exc()
            return False
        return True

    def _run_if_free(self, cell: Cell, folder: Path) -> bool:
        with store.reserved(folder) as ours:
            if ours and (self.again or cell.key not in self.finished()):
                self._run(cell, folder)
        return ours

    def _run(self, cell: Cell, folder: Path) -> None:
        pair = compute.load(cell, self.dwy100k)
        begin = perf_counter()

        def show(done: Round) -> None:
            best = done.metrics["refined" if "refined" in done.metrics else "encoder"]["hit1"]
            elapsed = perf_counter() - begin
            print(f"  round {done.number}: Hit@1 {best:.3f}, {done.num_pairs:,} pairs, {elapsed:,.0f} s", flush=True)

        found = compute.run(cell, pair, folder, show)
        origin = {"threads": self.threads, "commit": self.commit, "method_version": version_of(cell)}
        store.append(self.path, {**found, **origin})
        store.discard(folder)
