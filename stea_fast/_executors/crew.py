"""Sessions whose parts are with workers outside this process: who has which, and what happens when one is lost."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from stea_fast._executors.base import Done, ExecutorError, Make, WorkersReplaced
from stea_fast._executors.host import dealt

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_LOSSES = 5  # of workers in one session: after that it is not chance


class Loss(Exception):
    """A worker is gone: why, as far as it is known."""


def check_losses(count: int, last: Loss) -> None:
    """After many losses the next worker would be lost, too."""
    if count > MOST_LOSSES:
        raise ExecutorError(
            f"{count} workers were lost, the last one because {last}; if they ran out of memory, use fewer workers on "
            "a machine, or machines with more memory. The last checkpoint is whole: the same call continues from it"
        )


class Crew(Protocol):
    """Workers, and how they are spoken to; the calls of `Host`, answered later."""

    def workers(self) -> list[Any]:
        """Those that are there, started if need be."""

    def packed(self, common: Sequence[Any]) -> Any:
        """Arguments in a form that may be sent to every worker at the cost of one."""

    def ask(self, worker: Any, request: str, *arguments: Any) -> Any:
        """Send a request of `Host` to a worker; what to wait for."""

    def answers(self, pending: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """The number of each pending call, and its answer or its `Loss`, as they come; calls may be added meanwhile.

        A worker has at most one of them at a time.
        """

    def has(self, worker: Any) -> bool:
        """Whether a worker is still there."""

    def discard(self, worker: Any) -> None:
        """Do without a worker that is lost."""

    def abandon(self) -> None:
        """End calls that nobody waits for any more."""

    def close(self) -> None:
        """End the workers."""


class CrewExecutor:
    """What executors with workers outside this process have in common; a `with` statement closes them."""

    can_lose_workers = True

    def __init__(self, crew: Crew) -> None:
        self.crew = crew

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, and remove what was made for them; what was there before, such as a cluster, stays."""
        self.crew.close()

    def session(self, make: Make, parts: Sequence[Any], *common: Any) -> CrewSession:
        """Make an object for every part of some work, which the workers hold.

        Args:
            make: A function of a module, called with a part, the number of threads, and `common`.
            parts: What distinguishes the objects.
            common: Arguments that all of them share.

        Returns:
            A session, whose `map` calls a method of all objects.

        Raises:
            ExecutorError: The workers cannot be used; the message says why.
        """
        self.crew.workers()  # before anything is written for them: a closed executor says that it is
        return CrewSession(self.crew, make, parts, common)


class CrewSession:
    """The objects of all parts with the workers of a crew."""

    def __init__(self, crew: Crew, make: Make, parts: Sequence[Any], common: Sequence[Any]) -> None:
        self.crew, self.making, self.parts = crew, make, list(parts)
        self.name = uuid.uuid4().hex
        self.common = crew.packed(common)
        self.held: list[tuple[Any, list[int]]] = []
        self.losses = 0
        self._make(range(len(self.parts)))

    def map(self, method: str, *common: Any, each: Sequence[Any] | None = None, done: Done | None = None) -> list[Any]:
        """See `Session`."""
        packed = self.crew.packed(common)
        pending = [
            self.crew.ask(
                worker, "call", self.name, method, packed, None if each is None else {i: each[i] for i in own}
            )
            for worker, own in self.held
        ]
        results: list[Any] = [None] * len(self.parts)
        lost = []
        for number, answer in self._answers(pending):
            if isinstance(answer, Loss):
                lost.append((number, answer))
                continue
            for part, result in answer:
                results[part] = result
            if done is not None:
                done(len(answer))
        if lost:
            self._replace(lost)
        return results

    def _answers(self, pending: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        try:
            yield from self.crew.answers(pending)
        except BaseException:  # an error of a part, or Ctrl-C: the others must not go on with what nobody wants
            self.crew.abandon()
            raise

    def _replace(self, lost: list[tuple[int, Loss]]) -> None:
        """Give the parts of lost workers to others, without their state, and say so."""
        orphans = self._without(lost)
        self._make(orphans)
        reason = lost[0][1]
        raise WorkersReplaced(f"{len(lost)} of the workers were lost ({reason}); others have taken their parts")

    def _without(self, lost: list[tuple[int, Loss]]) -> list[int]:
        self.losses += len(lost)
        check_losses(self.losses, lost[-1][1])
        gone = {number for number, _ in lost}
        for number in gone:
            self.crew.discard(self.held[number][0])
        orphans = sorted(part for number in gone for part in self.held[number][1])
        self.held = [held for number, held in enumerate(self.held) if number not in gone]
        return orphans

    def _make(self, numbers: Sequence[int]) -> None:
        """Make the objects of some parts, with the workers that have least to do."""
        while numbers:
            workers = self.crew.workers()
            load = {id(worker): len(own) for worker, own in self.held}
            hands = dealt(list(numbers), sorted(workers, key=lambda worker: load.get(id(worker), 0)))
            pending = [
                self.crew.ask(worker, "make", self.name, self.making, {i: self.parts[i] for i in own}, self.common)
                for worker, own in hands
            ]
            before = len(self.held)
            self.held += hands
            lost = [(before + number, answer) for number, answer in self._answers(pending) if isinstance(answer, Loss)]
            numbers = self._without(lost) if lost else ()
        self._merge()

    def _merge(self) -> None:
        """One entry for every worker."""
        by_worker: dict[int, tuple[Any, list[int]]] = {}
        for worker, own in self.held:
            by_worker.setdefault(id(worker), (worker, []))[1].extend(own)
        self.held = list(by_worker.values())

    def close(self) -> None:
        """Let the objects go."""
        held, self.held = self.held, []
        pending = [self.crew.ask(worker, "drop", self.name) for worker, _ in held if self.crew.has(worker)]
        for _ in self.crew.answers(pending):
            pass

    def __enter__(self) -> CrewSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
