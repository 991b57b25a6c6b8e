"""Processes of their own for what must be measured in a fresh one, and the number of threads of this one.

Imports nothing beyond the standard library, since `limit_threads` must be called before NumPy is imported.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from bench.lib.folders import ROOT

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "STEA_NUM_THREADS")


def limit_threads(count: int) -> None:
    """Give every library this many threads. NumPy, Numba and torch read these variables once, when imported."""
    os.environ.update(dict.fromkeys(_THREADS, str(count)))


def module_command(module: str, *arguments: object) -> list[str]:
    """The command that runs a module of the benches in a fresh process; start it with `environment()`."""
    return [sys.executable, "-m", module, *map(str, arguments)]


def environment() -> dict[str, str]:
    """The environment for a process that must import these benches and the same stea_fast as this process."""
    found = importlib.util.find_spec("stea_fast")
    assert found is not None and found.origin is not None, "stea_fast is installed, or in the root of the project"
    package_root = Path(found.origin).resolve().parents[1]
    path = dict.fromkeys([str(package_root), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in path if part)}
