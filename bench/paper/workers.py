"""Cells side by side: a process of its own for every cell, a fixed number of them at a time.

A process that is killed fails only its own cell. All of them end with this one, however it ends, so that a run that is
killed and started again finds every cell free.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from bench.paper import progress
from bench.paper.cells import Cell

if TYPE_CHECKING:
    from bench.paper.runner import Runner

METHOD = "spawn"  # libraries read the number of threads when they are imported
PATIENCE = 5.0  # seconds until a process whose parent was killed has surely ended


def run_side_by_side(cells: Sequence[Cell], runner: Runner, number: int) -> int:
    """Run cells in `runner.workers` processes; the number of those that failed."""
    context: Any = multiprocessing.get_context(METHOD)
    waiting, failed = list(cells), 0
    running: dict[Any, tuple[Cell, Any]] = {}
    while waiting or running:
        while waiting and len(running) < runner.workers:
            cell = waiting.pop(0)
            rest = [cell, *(other for other, _ in running.values()), *waiting]
            left = progress.time_left(rest, *runner.known_times(), workers=runner.workers)
            print(f"[{number - len(waiting)}/{number}] {cell.id}   {left}", flush=True)
            process = context.Process(target=_work, args=(cell, runner))
            process.start()
            running[process.sentinel] = cell, process
        for sentinel in wait(list(running)):
            cell, process = running.pop(sentinel)
            process.join()
            failed += process.exitcode != 0
            print(f"  {_end(cell, process.exitcode, runner)}", flush=True)
    return failed


def _end(cell: Cell, exitcode: int, runner: Runner) -> str:
    if exitcode < 0:
        return f"killed by signal {-exitcode}: {cell.id}"
    record = runner.finished().get(cell.key)
    return f"not finished: {cell.id}" if record is None else f"finished: {progress.outcome(record)}  {cell.id}"


def _work(cell: Cell, runner: Runner) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os._exit(0 if runner.run_one(cell, PATIENCE) else 1)  # at once: what threads of libraries still do is of no use


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
