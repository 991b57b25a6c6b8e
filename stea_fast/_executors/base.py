"""What an executor offers: objects that are made once for every part of the work, and methods called on all of them.

The parts are fixed by whoever divides the work, never by the number of workers, and results come back in their order:
so what is computed of them is the same to the bit wherever the parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol

Make = Callable[..., Any]  # make(part, n_threads, *common): the object of a part
Done = Callable[[int], None]  # told how many parts have just been finished


class ExecutorError(RuntimeError):
    """Raised when the workers of an executor cannot be used: the message says why, and what to do."""


class WorkersReplaced(Exception):
    """Raised by `Session.map` when workers were lost: others have taken their parts, made anew, without their state."""


class Session(Protocol):
    """The objects of all parts, each with some worker."""

    def map(self, method: str, *common: Any, each: Sequence[Any] | None = None, done: Done | None = None) -> list[Any]:
        """Call a method of every part's object; what it returns, in the order of the parts.

        Args:
            method: its name.
            common: arguments of all calls; workers must not change them.
            each: a further last argument for every part.
            done: called as parts are finished.

        Raises:
            WorkersReplaced: workers were lost during the call.
            ExecutorError: workers cannot be used any more.
        """

    def close(self) -> None:
        """Let the objects go."""

    def __enter__(self) -> Session:
        """The session itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the objects go."""


class Executor(Protocol):
    """Where the parts of heavy work are."""

    @property
    def can_lose_workers(self) -> bool:
        """Whether a worker may die while the caller goes on."""

    def session(self, make: Make, parts: Sequence[Any], *common: Any) -> Session:
        """Make an object for every part: make(part, n_threads, *common), where `n_threads` are those of a worker."""
