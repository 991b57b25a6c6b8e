"""Executors by name."""

from __future__ import annotations

from stea_fast._executors.base import Executor
from stea_fast._util import validate

NAMES = ("threads", "processes", "ray")


def executor_of(executor: str | Executor | None) -> Executor | None:
    """An executor that was given, or one by its name; None stays None, the threads of this process."""
    if not isinstance(executor, str):
        if executor is not None and not hasattr(executor, "session"):
            raise TypeError(f"executor must be a name or an executor such as sf.RayExecutor(), got {executor!r}")
        return executor
    if validate.choice(executor, "executor", NAMES) == "processes":
        from stea_fast._executors.processes import ProcessExecutor

        return ProcessExecutor()
    if executor == "ray":
        from stea_fast._executors.ray_cluster import RayExecutor

        return RayExecutor()
    return None
