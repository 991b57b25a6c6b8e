"""What the encoders run on a CPU: plain arrays in, outputs filled. Native where it can be used, otherwise Numba.

`native` and `by_numba` have the same functions, whose contracts are in `csrc/kernels`; `bodies` holds what is compiled by Numba.
"""

from __future__ import annotations

import os
from types import ModuleType

from stea_fast import _backends


def chosen() -> ModuleType:
    """The module to use: that of `STEA_BACKEND` where it names one of them, else the fastest that can run."""
    name = os.environ.get("STEA_BACKEND", "auto")
    native = _backends.resolve("native") if name == "native" else _backends.status("native").usable and name != "numba"
    if native:
        from stea_fast.encoders.kernels import native as module
    else:
        from stea_fast.encoders.kernels import by_numba as module
    return module
