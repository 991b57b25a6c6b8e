"""Memory of this process: how many bytes it has, and what becomes of those it frees."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_before_mark = 0.0
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?B?)", re.IGNORECASE)
_UNITS = {
    unit + byte: 10.0**power for unit, power in (("", 0), ("K", 3), ("M", 6), ("G", 9), ("T", 12)) for byte in ("", "B")
}


def peak() -> float:
    """The largest resident size so far; NaN where the system does not say.

    The kernel's mark of this process image (VmHWM), where there is one: a process started by a large one inherits the
    other one, ru_maxrss.
    """
    return max(_before_mark, peak_since_mark())


def mark() -> None:
    """Let `peak_since_mark` count from now. `peak` forgets nothing."""
    global _before_mark
    _before_mark = peak()
    with suppress(OSError):  # 5 resets the kernel's mark and touches no page
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_since_mark() -> float:
    """The largest resident size since `mark`; where the kernel cannot reset its mark, the largest so far."""
    return _status("VmHWM") or _largest()


def resident() -> float:
    """The resident size now; the largest so far where only that is known."""
    return _status("VmRSS") or _largest()


def available() -> float:
    """What this process may still take: what the system has left, or its control group if that is less; else inf."""
    found = [_meminfo("MemAvailable") or float("inf")]
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # "max" is no number: then nothing limits the group
        limit = float((group / "memory.max").read_text(encoding="utf-8"))
        found.append(limit - float((group / "memory.current").read_text(encoding="utf-8")))
    return max(0.0, min(found))


def size_in_bytes(size: str | float, name: str) -> float:
    """A size such as "8GB", "500 MB" or a number of bytes."""
    if isinstance(size, str):
        match = _SIZE.fullmatch(size.strip())
        if match is None:
            raise ValueError(f"{name} must be a size such as '8GB' or '500MB', got {size!r}")
        number, unit = match.groups()
        return float(number) * _UNITS[unit.upper()]
    if isinstance(size, bool) or not isinstance(size, (int, float)):
        raise TypeError(f"{name} must be a size such as '8GB' or a number of bytes, got {type(size).__name__}")
    if not size > 0:
        raise ValueError(f"{name} must be more than nothing, got {size!r}")
    return float(size)


@contextmanager
def recycled() -> Iterator[None]:
    """Let the C library keep the memory that is freed for what asks next, instead of returning it to the system.

    Training makes and frees the same large matrices in every step; clearing new pages for them is a tenth of its time.
    Does nothing where the C library is not glibc.
    """
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):  # TypeError: Windows
        yield
        return
    trim_threshold, mmap_max = -1, -4  # names of glibc's malloc.h
    mallopt(trim_threshold, 2**31 - 1)
    mallopt(mmap_max, 0)
    try:
        yield
    finally:
        mallopt(trim_threshold, 2**26)  # the highest that glibc sets by itself
        mallopt(mmap_max, 2**16)
        trim(0)


def _status(field: str) -> float | None:
    return _kilobytes(Path("/proc/self/status"), field)


def _meminfo(field: str) -> float | None:
    return _kilobytes(Path("/proc/meminfo"), field)


def _kilobytes(table: Path, field: str) -> float | None:
    if table.exists():
        for line in table.read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024.0
    return None


def _largest() -> float:
    try:
        import resource
    except ModuleNotFoundError:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)
