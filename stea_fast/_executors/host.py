"""What a worker holds: the objects of its parts, of every session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stea_fast._executors.base import Make


class Host:
    """The objects of some parts of some sessions; a worker of any kind has one.

    Args:
        n_threads: how many threads the kernels of a part may take.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.objects: dict[str, dict[int, Any]] = {}

    def make(self, session: str, make: Make, parts: Mapping[int, Any], common: Sequence[Any]) -> None:
        """Make the objects of these parts, beside those that the session has here."""
        made = {number: make(part, self.n_threads, *common) for number, part in parts.items()}
        self.objects.setdefault(session, {}).update(made)

    def call(
        self, session: str, method: str, common: Sequence[Any], each: Mapping[int, Any] | None
    ) -> list[tuple[int, Any]]:
        """Call a method of every object that a session has here; the numbers of the parts, and what it returned."""
        return [
            (number, getattr(part, method)(*common, *(() if each is None else (each[number],))))
            for number, part in self.objects[session].items()
        ]

    def run(self, work: Callable[..., Any], part: Any, common: Sequence[Any]) -> Any:
        """Compute a part of work that has no state."""
        return work(part, self.n_threads, *common)

    def drop(self, session: str) -> None:
        """Let the objects of a session go."""
        self.objects.pop(session, None)


def dealt(numbers: Sequence[int], workers: Sequence[Any]) -> list[tuple[Any, list[int]]]:
    """Parts dealt out to workers, one after the other; only workers that get any."""
    hands = [(worker, list(numbers[i :: len(workers)])) for i, worker in enumerate(workers)]
    return [(worker, hand) for worker, hand in hands if hand]
