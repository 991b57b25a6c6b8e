"""How many threads to use, and how rows are shared out among them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

from stea_fast._util import validate

Result = TypeVar("Result")
Blocks = list[tuple[int, int]]  # ranges of rows: begin and end


def thread_count(n_threads: int | None) -> int:
    """Threads to use: the argument, else `STEA_NUM_THREADS`, else the CPUs this process may run on."""
    if n_threads is None:
        given = os.environ.get("STEA_NUM_THREADS")
        if given is not None and not given.isdigit():
            raise ValueError(f"STEA_NUM_THREADS must be a whole number, got {given!r}")
        n_threads = int(given) if given else _available_cpus()
    return validate.count(n_threads, "n_threads", minimum=1, maximum=1024)


def _available_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def row_blocks(cost: np.ndarray, count: int, first: int = 0) -> Blocks:
    """About `count` ranges of rows of about equal cost, in order.

    Args:
        cost: [rows + 1], increasing: what the rows before each one cost.
        first: the number of the first row.
    """
    cuts = np.searchsorted(cost, np.linspace(cost[0], cost[-1], count + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], cuts, [len(cost) - 1]])) + first
    return list(pairwise(bounds.tolist()))


def run_blocks(task: Callable[[int, int], Result], blocks: Blocks, n_threads: int) -> list[Result]:
    """The results of `task(begin, end)` for every range of rows, in their order."""
    pool = ThreadPoolExecutor(n_threads)
    try:
        futures = [pool.submit(task, begin, end) for begin, end in blocks]
        return [future.result() for future in futures]
    finally:  # on Ctrl-C the blocks not yet begun are dropped
        pool.shutdown(wait=False, cancel_futures=True)
