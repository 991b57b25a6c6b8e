"""The backends: which are usable here, and which one to use.

A backend is a module with functions over a range of source rows (`evidence`, `evidence_and_witnesses`, `blanket`,
`proposals`, `relation_counts`; see `reference.py` for their meaning), `containment`, which makes probabilities of
counts, and `strengths`, which prepares a relation alignment for them. "Present" and "usable" are different questions:
a backend is imported, then asked.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType

logger = logging.getLogger("stea_fast")

NAMES = ("native", "numba", "cuda", "reference")
NO_CUDA_BLANKET = "the blanket has no CUDA kernel; use blanket='local', or backend='native'"
AUTOMATIC = ("native", "numba")  # in order of preference; the reference is never chosen on its own


@dataclass(frozen=True)
class BackendStatus:
    """Whether one backend can run here, and why not or how.

    Attributes:
        name: The name of the backend: "native", "numba", "cuda" or "reference".
        usable: Whether it can run on this machine.
        detail: One line: how it runs, or why it cannot ("absent" and "broken" are told apart).

    Example:
        >>> import stea_fast as sf
        >>> sf.backends()["reference"].usable
        True
    """

    name: str
    usable: bool
    detail: str


class BackendUnavailable(RuntimeError):
    """Raised when a backend or engine is asked for by name and cannot run here; the message says why."""


@cache
def status(name: str) -> BackendStatus:
    """Import a backend and ask whether it can run."""
    try:
        module = importlib.import_module(f"stea_fast._backends.{name}")
        return BackendStatus(name, True, module.describe())
    except BackendUnavailable as error:  # it is there, and says itself why it cannot run
        return BackendStatus(name, False, str(error))
    except ModuleNotFoundError as error:
        return BackendStatus(name, False, f"absent: {error}")
    except Exception as error:  # a broken binary must not take the other backends down
        return BackendStatus(name, False, f"broken: {type(error).__name__}: {error}")


def backends() -> dict[str, BackendStatus]:
    """List all backends, and say which of them can run here.

    Returns:
        A `BackendStatus` for every name: "native", "numba", "cuda" and "reference".

    Example:
        >>> import stea_fast as sf
        >>> sorted(sf.backends())
        ['cuda', 'native', 'numba', 'reference']
    """
    return {name: status(name) for name in NAMES}


def resolve(name: str = "auto") -> ModuleType:
    """The backend module for a name; "auto" takes `STEA_BACKEND` or the fastest usable one."""
    if name == "auto":
        name = os.environ.get("STEA_BACKEND", "auto")
    if name == "auto":
        return _automatic()
    if name not in NAMES:
        raise ValueError(f"backend must be 'auto' or one of {', '.join(map(repr, NAMES))}; got {name!r}")
    found = status(name)
    if not found.usable:
        raise BackendUnavailable(f"backend {name!r} cannot run here: {found.detail}")
    return importlib.import_module(f"stea_fast._backends.{name}")


def use_cuda(arrays: Iterable[object], backend: str) -> bool:
    """Whether the CUDA backend is to work on these arrays: it is asked for, or they are CUDA tensors and none is."""
    if backend == "auto":
        backend = os.environ.get("STEA_BACKEND", "auto")
    if backend == "cuda":
        return resolve("cuda") is not None
    on_gpu = any(getattr(getattr(array, "device", None), "type", "cpu") == "cuda" for array in arrays)
    return backend == "auto" and on_gpu and status("cuda").usable


@cache
def _automatic() -> ModuleType:
    for name in AUTOMATIC:
        found = status(name)
        if found.usable:
            logger.info("stea_fast uses the %s backend (%s)", name, found.detail)
            return importlib.import_module(f"stea_fast._backends.{name}")
        logger.warning("stea_fast cannot use the %s backend: %s", name, found.detail)
    raise BackendUnavailable("no backend can run here; see `python -m stea_fast info`")
