"""Progress of long calls: a bar on a terminal, plain lines elsewhere, or the caller's own function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Step = Callable[[float], None]
Progress = bool | Callable[[float, float], None] | None

QUIET_SECONDS = 2.0  # what is over sooner shows nothing
LINE_SECONDS = 10.0  # between two plain lines


@contextmanager
def steps(progress: Progress, total: float, what: str) -> Iterator[Step]:
    """A function to call with the amount of work just done.

    `progress` None shows a bar only on a terminal, True also elsewhere (as plain lines), False nothing; a
    function is called with (done, total) after every step.
    """
    if callable(progress):
        yield _forwarding(progress, total)
    elif progress is False or (progress is None and not sys.stderr.isatty()):
        yield uncounted
    else:
        meter = _Meter(total, what)
        try:
            yield meter.step
        finally:
            meter.close()


class Repeatable:
    """Counts work that may have to be done again: what was counted since `keep` can be taken back."""

    def __init__(self, step: Step) -> None:
        self.step, self.since = step, 0.0

    def __call__(self, amount: float) -> None:
        """So much has been done."""
        self.since += amount
        self.step(amount)

    def keep(self) -> None:
        """What has been counted is done for good."""
        self.since = 0.0

    def take_back(self) -> None:
        """What was counted since then is to be done again."""
        self.step(-self.since)
        self.since = 0.0


def uncounted(amount: float) -> None:
    """A step that nobody is shown."""


def _forwarding(report: Callable[[float, float], None], total: float) -> Step:
    done = 0.0

    def step(amount: float) -> None:
        nonlocal done
        done += amount
        report(done, total)

    return step


class _Meter:
    """tqdm where it is installed and stderr is a terminal, else a line from time to time."""

    def __init__(self, total: float, what: str) -> None:
        self.total, self.what, self.done = total, what, 0.0
        self.begin = self.last = time.monotonic()
        self.bar: Any = _bar(total, what) if sys.stderr.isatty() else None

    def step(self, amount: float) -> None:
        self.done += amount
        if self.bar is not None:
            self.bar.update(amount)
            return
        now = time.monotonic()
        if self.done > 0 and now - self.begin > QUIET_SECONDS and now - self.last > LINE_SECONDS:
            self.last = now
            left = (now - self.begin) * (self.total / self.done - 1.0)
            share = 100 * self.done / self.total
            rate = share / (now - self.begin)
            print(f"{self.what}: {share:.0f} %, {rate:.1f} % per second, {left:.0f} s left", file=sys.stderr)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def _bar(total: float, what: str) -> Any:
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        return None
    return tqdm(
        total=total, desc=what, leave=False, delay=QUIET_SECONDS, unit_scale=True,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}, {rate_fmt}, {remaining} left",
    )  # fmt: skip
