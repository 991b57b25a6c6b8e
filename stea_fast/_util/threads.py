"""How many threads to use."""

from __future__ import annotations

import os

from stea_fast._util import validate


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
