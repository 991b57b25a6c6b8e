"""Work without state, spread over the workers of an executor: whoever is free takes the next part."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from stea_fast._executors.base import Done, Executor
from stea_fast._executors.crew import Crew, Loss, check_losses
from stea_fast._util.progress import uncounted

logger = logging.getLogger("stea_fast")

Work = Callable[..., Any]  # work(part, n_threads, *common): the result of a part; a function of a module
PARTS_AHEAD = 3  # for every worker: how far beyond the oldest open part others may be, since their results are kept


def spread(
    executor: Executor | None, work: Work, parts: Iterable[Any], n_threads: int, *common: Any, done: Done = uncounted
) -> Iterator[Any]:
    """Compute every part of some work; the results come in the order of the parts, as soon as that allows.

    The parts must not depend on the workers. Then what is made of the results does not either, to the bit.

    Args:
        executor: whose workers compute; None, or one that has none, computes here, part by part as results are taken.
        work: called with a part, the number of threads, and `common`.
        parts: what distinguishes the calls.
        n_threads: how many threads are used here; workers have their own number.
        common: what all calls share; it is sent to every worker at most once per machine, and must not be changed.
        done: told how many parts have just been finished, by whoever it was.
    """
    crew = getattr(executor, "crew", None)
    if crew is None:
        return _here(work, parts, n_threads, common, done)
    return _Spread(crew, work, parts, common, done).results()


def _here(work: Work, parts: Iterable[Any], n_threads: int, common: Sequence[Any], done: Done) -> Iterator[Any]:
    for part in parts:
        result = work(part, n_threads, *common)
        done(1)
        yield result


class _Spread:
    """Who computes what, and what has come back too early."""

    def __init__(self, crew: Crew, work: Work, parts: Iterable[Any], common: Sequence[Any], done: Done) -> None:
        self.crew, self.work, self.parts, self.done = crew, work, list(parts), done
        self.common = crew.packed(common)
        self.open = deque(range(len(self.parts)))
        self.asked: list[tuple[Any, int]] = []
        self.pending: list[Any] = []
        self.idle: list[Any] = []
        self.early: dict[int, Any] = {}
        self.given_out = self.losses = self.most_ahead = 0

    def results(self) -> Iterator[Any]:
        """In the order of the parts."""
        self.idle = self.crew.workers() if self.parts else []
        self.most_ahead = PARTS_AHEAD * len(self.idle)
        self._ask()
        try:
            for number, answer in self.crew.answers(self.pending):
                self._take(number, answer)
                while self.given_out in self.early:
                    result = self.early.pop(self.given_out)
                    self.given_out += 1
                    self._ask()
                    yield result
                self._ask()
        except BaseException:  # an error of a part, or Ctrl-C: the others must not go on with what nobody wants
            self.crew.abandon()
            raise

    def _ask(self) -> None:
        """Give parts to whoever is free."""
        while self.idle and self.open and self.open[0] < self.given_out + self.most_ahead:
            worker, number = self.idle.pop(), self.open.popleft()
            self.asked.append((worker, number))
            self.pending.append(self.crew.ask(worker, "run", self.work, self.parts[number], self.common))

    def _take(self, place: int, answer: Any) -> None:
        worker, number = self.asked[place]
        if not isinstance(answer, Loss):
            self.early[number] = answer
            self.idle.append(worker)
            self.done(1)
            return
        self.losses += 1
        check_losses(self.losses, answer)
        logger.warning("a worker was lost (%s); another one takes its part", answer)
        self.crew.discard(worker)
        self.open.appendleft(number)
        known = {id(other) for other in self.idle} | {id(other) for other, _ in self.asked}
        self.idle += [new for new in self.crew.workers() if id(new) not in known]
