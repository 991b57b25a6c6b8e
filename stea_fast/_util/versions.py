"""Versions of this package, of Python and of what it may use."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

from stea_fast import __version__
from stea_fast._util.threads import thread_count

PACKAGES = ("numpy", "scipy", "numba", "torch", "faiss-cpu", "faiss-gpu-cu12", "pyoxigraph", "pyarrow", "zstandard")


def versions() -> dict[str, Any]:
    """This package, Python and what it may use."""
    return {
        "stea_fast": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": thread_count(None),
        **{name: _version(name) for name in PACKAGES},
    }


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
