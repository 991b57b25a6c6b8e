"""Timing on a noisy machine, facts about it, and Markdown tables."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

REPEATS = 3
PACKAGES = ("stea-fast", "numpy", "scipy", "numba", "torch")


@dataclass(frozen=True)
class Timing:
    """Seconds of one contender over the rounds."""

    median: float
    lower: float
    upper: float
    rounds: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        lower, median, upper = np.percentile(seconds, [25, 50, 75])
        return cls(float(median), float(lower), float(upper), len(seconds))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def interleave(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    between: Callable[[int], object] | None = None,
) -> dict[str, Timing]:
    """Time contenders in turns, so that a slow minute of the machine hits all of them alike.

    Every contender is first called once untimed (compilation, first touch of memory). In every round each is
    called REPEATS times in a row and the median of these counts; the order of the contenders rotates.
    `between` is called with the number of the round after each.
    """
    for call in contenders.values():
        call()
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            seconds[name].append(float(np.median([_seconds(contenders[name]) for _ in range(REPEATS)])))
        if between is not None:
            between(number)
    return {name: Timing.of(values) for name, values in seconds.items()}


def _seconds(call: Callable[[], object]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin


def machine_facts() -> dict[str, Any]:
    """What a reader must know of the machine; nothing that identifies it."""
    return {
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "load_average": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        if package == "stea-fast":  # used from a checkout
            import stea_fast

            return stea_fast.__version__
        return None


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are aligned to the right."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def duration(seconds: float) -> str:
    """Three significant digits with a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def times(ratio: float) -> str:
    """A ratio with three significant digits, or as a whole number where it is large."""
    return f"{_digits(ratio)} ×"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:#.3g}".rstrip(".")
