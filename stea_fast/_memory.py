"""Memory of this process."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_megabytes() -> float:
    """The largest resident size so far, in megabytes of a million bytes; NaN where the system does not say."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    try:
        import resource
    except ModuleNotFoundError:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
