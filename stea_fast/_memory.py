"""Memory of this process, in bytes."""

from __future__ import annotations

import sys
from pathlib import Path


def peak() -> float:
    """The largest resident size so far; NaN where the system does not say.

    The kernel's mark of this process image (VmHWM), where there is one: a process started by a large one inherits the
    other one, ru_maxrss.
    """
    return _status("VmHWM") or _largest()


def resident() -> float:
    """The resident size now; the largest so far where only that is known."""
    return _status("VmRSS") or _largest()


def _status(field: str) -> float | None:
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024.0
    return None


def _largest() -> float:
    try:
        import resource
    except ModuleNotFoundError:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)
