"""What the encoders run on a CPU: plain arrays in, outputs filled. Native where it can be used, otherwise Numba.

`native` and `by_numba` have the same functions, whose contracts are in `csrc/kernels`; Numba compiles `bodies`.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType

from stea_fast import _backends


def native_is_used() -> bool:
    """Whether the native kernels are: they are asked for by `STEA_BACKEND`, or can run and Numba's are not."""
    name = os.environ.get("STEA_BACKEND", "auto")
    if name == "native":
        return _backends.resolve("native") is not None  # or an error that says why not
    return name != "numba" and _backends.status("native").usable


def chosen() -> ModuleType:
    """The module with the kernels of the trained encoders."""
    return importlib.import_module(f"{__name__}.{'native' if native_is_used() else 'by_numba'}")
