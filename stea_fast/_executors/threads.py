"""The executor that needs nothing: all parts are in this process, and each uses all its threads."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from stea_fast._executors.base import Done, Make
from stea_fast._util.threads import in_order, thread_count

PARTS_PER_THREAD = 4  # from so many on, parts keep the threads busy; of fewer, kernels share out the rows


class ThreadsSession:
    """Some parts at a time, each by a thread; or one after the other, each by all threads of its kernels."""

    def __init__(self, objects: list[Any], at_once: int) -> None:
        self.objects, self.at_once = objects, at_once

    def map(self, method: str, *common: Any, each: Sequence[Any] | None = None, done: Done | None = None) -> list[Any]:
        """See `Session`."""

        def call(i: int) -> Any:
            return getattr(self.objects[i], method)(*common, *(() if each is None else (each[i],)))

        results = []
        for result in in_order(call, range(len(self.objects)), self.at_once):
            results.append(result)
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

    def at_once(self, num_parts: int) -> int:
        """How many of so many parts are computed at a time."""
        return self.n_threads if num_parts >= PARTS_PER_THREAD * self.n_threads else 1

    def session(self, make: Make, parts: Sequence[Any], *common: Any) -> ThreadsSession:
        """See `Executor`."""
        at_once = self.at_once(len(parts))
        return ThreadsSession([make(part, self.n_threads // at_once, *common) for part in parts], at_once)
