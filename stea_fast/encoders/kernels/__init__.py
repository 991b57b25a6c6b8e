"""What the encoders run on a CPU: plain arrays in, outputs filled. Native where it can be used, otherwise Numba.

`native` and `by_numba` have the same functions, whose contracts are in `csrc/kernels`; Numba compiles `bodies`.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from stea_fast._backends.dense import native_is_used


def chosen() -> ModuleType:
    """The module with the kernels of the trained encoders."""
    return importlib.import_module(f"{__name__}.{'native' if native_is_used() else 'by_numba'}")
