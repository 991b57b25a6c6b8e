"""Products of dense matrices whose bits others rely on."""

from __future__ import annotations

import os

import numpy as np

from stea_fast import _backends
from stea_fast._util.threads import thread_count


def native_is_used() -> bool:
    """Whether kernels that only native code and NumPy or Numba have are native.

    They are where `STEA_BACKEND` asks for that, or where native code can run and Numba is not asked for.
    """
    name = os.environ.get("STEA_BACKEND", "auto")
    if name == "native":
        return _backends.resolve("native") is not None  # or an error that says why not
    return name != "numba" and _backends.status("native").usable


def dense_product(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """a times b: float32 [m, n] from [m, d] and [d, n], into `out` where it is given.

    The native kernel gives the same bits with any number of threads and on any processor; NumPy's product does not.
    """
    out = np.empty((len(a), b.shape[1]), dtype=np.float32) if out is None else out
    if not native_is_used():
        return np.matmul(a, b, out=out)
    from stea_fast import _core
    from stea_fast._backends.native import tier

    _core.dense_product(np.ascontiguousarray(a), np.ascontiguousarray(b), out, thread_count(None), tier())
    return out
