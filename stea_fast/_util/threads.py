"""How many threads to use, and how rows are shared out among them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

from stea_fast._util import validate

Part = TypeVar("Part")
Result = TypeVar("Result")
Blocks = list[tuple[int, int]]  # ranges of rows: begin and end
PARTS_AHEAD = 8  # for every thread: how many results may wait for an earlier part that takes longer


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


def equal_blocks(rows: int, size: int) -> Blocks:
    """All of 0, …, rows - 1 in ranges of `size`, the last of which may be shorter."""
    return [(begin, min(begin + size, rows)) for begin in range(0, rows, size)]


def run_blocks(task: Callable[[int, int], Result], blocks: Blocks, n_threads: int) -> list[Result]:
    """The results of `task(begin, end)` for every range of rows, in their order."""
    pool = ThreadPoolExecutor(n_threads)
    try:
        futures = [pool.submit(task, begin, end) for begin, end in blocks]
        return [future.result() for future in futures]
    finally:  # on Ctrl-C the blocks not yet begun are dropped
        pool.shutdown(wait=False, cancel_futures=True)


def in_order(task: Callable[[Part], Result], parts: Iterable[Part], n_threads: int) -> Iterator[Result]:
    """The results of `task(part)` in the order of the parts, of which each thread computes one at a time."""
    if n_threads == 1:
        yield from map(task, parts)
        return
    pool = ThreadPoolExecutor(n_threads)
    waiting: deque[Future[Result]] = deque()
    try:
        for part in parts:
            waiting.append(pool.submit(task, part))
            if len(waiting) > PARTS_AHEAD * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # also where nobody wants the other results any more
        pool.shutdown(wait=True, cancel_futures=True)
