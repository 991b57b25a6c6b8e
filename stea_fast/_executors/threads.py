"""The executor that needs nothing: all parts are in this process, and each uses all its threads."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from stea_fast._executors.base import Done, Make
from stea_fast._util.threads import thread_count


class ThreadsSession:
    """One part after the other: kernels share the rows of a part out among threads better than parts could be."""

    def __init__(self, objects: list[Any]) -> None:
        self.objects = objects

    def map(self, method: str, *common: Any, each: Sequence[Any] | None = None, done: Done | None = None) -> list[Any]:
        """See `Session`."""
        results = []
        for i, part in enumerate(self.objects):
            results.append(getattr(part, method)(*common, *(() if each is None else (each[i],))))
            if done is not None:
                done(1)
        return results

    def close(self) -> None:
        """Let the objects go."""
        self.objects = []

    def __enter__(self) -> ThreadsSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ThreadsExecutor:
    """Run everything in this process, by the threads of its kernels; the default.

    Args:
        n_threads: The number of threads; the default, None, takes `STEA_NUM_THREADS` or all CPUs of this process.

    Raises:
        ValueError: The number of threads is not positive.
    """

    can_lose_workers = False

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = thread_count(n_threads)

    def session(self, make: Make, parts: Sequence[Any], *common: Any) -> ThreadsSession:
        """See `Executor`."""
        return ThreadsSession([make(part, self.n_threads, *common) for part in parts])
