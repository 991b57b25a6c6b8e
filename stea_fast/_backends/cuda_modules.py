"""Which module launches the CUDA kernels: `stea_fast._cuda`, which holds them compiled, or `_cuda_jit`, for which
NVRTC compiles them here.

`STEA_CUDA_KERNELS` is "auto" (compiled kernels where they fit all devices), "prebuilt" or "nvrtc".
"""

from __future__ import annotations

import importlib
import logging
import os
from dataclasses import dataclass
from typing import Any

from stea_fast._backends import BackendUnavailable

logger = logging.getLogger("stea_fast")

LEAST_CAPABILITY = 75  # of the devices that the kernels are compiled for; see build_cuda.py
CHOICES = ("auto", "prebuilt", "nvrtc")
NOT_BUILT = "not part of this build (STEA_CUDA=off, or there was no CUDA toolkit)"


@dataclass(frozen=True)
class Launchers:
    """The module with the launchers, whether NVRTC compiles the kernels, and why the compiled ones are not used."""

    module: Any
    compiles: bool = False
    reason: str = ""

    def prepare(self, device: int) -> None:
        """Make the kernels ready on a device: compile them, or take them from the disk."""
        if not self.compiles or device in _ready:
            return
        from stea_fast._backends import kernel_cache, nvrtc

        compiler, names = nvrtc.compiler(), self.module.kernel_names()
        target = compiler.target(self.module.device_properties(device)[1])
        image = kernel_cache.compiled(compiler, target, names)
        self.module.load_kernels(device, image.code, list(image.entries.items()))
        _ready.add(device)

    def check(self) -> str:
        """How the kernels are made, for `info`; raises where a device is not served."""
        count, error = self.module.devices()
        if count == 0:
            raise BackendUnavailable(f"built, but no CUDA device: {error}{self._driver()}")
        if not self.compiles:
            if why_not := unserved(self.module):
                raise BackendUnavailable(why_not)
            return "CUDA kernels compiled beforehand"
        from stea_fast._backends import nvrtc

        nvrtc.sources()
        compiler = nvrtc.compiler()
        for number in range(count):
            compiler.target(self.module.device_properties(number)[1])
        return f"CUDA kernels compiled here by NVRTC {compiler.version} ({self.reason})"

    def _driver(self) -> str:
        version = self.module.driver_version()
        return f" (the driver supports CUDA {version // 1000}.{version % 1000 // 10})" if version else ""


_ready: set[int] = set()


def unserved(module: Any) -> str:
    """Why the compiled kernels do not serve the devices here; empty if they do."""
    devices = [module.device_properties(number) for number in range(module.devices()[0])]
    too_old = [f"{name} ({number // 10}.{number % 10})" for name, number in devices if number < LEAST_CAPABILITY]
    return f"built for compute capability 7.5 and later, but there is {', '.join(too_old)}" if too_old else ""


def choose() -> Launchers:
    """The launchers to use here. Raises BackendUnavailable if the build has none."""
    choice = os.environ.get("STEA_CUDA_KERNELS", "auto") or "auto"
    if choice not in CHOICES:
        raise BackendUnavailable(f"STEA_CUDA_KERNELS must be one of {', '.join(CHOICES)}; got {choice!r}")
    prebuilt, why_not = (None, "STEA_CUDA_KERNELS=nvrtc") if choice == "nvrtc" else _prebuilt()
    if prebuilt is not None and (choice == "prebuilt" or not why_not):
        return prebuilt
    compiling, why_neither = (None, "STEA_CUDA_KERNELS=prebuilt") if choice == "prebuilt" else _compiling(why_not)
    if compiling is not None:
        return compiling
    if prebuilt is not None:  # it says itself why it cannot run
        return prebuilt
    raise BackendUnavailable(f"{why_not}; nor can the kernels be compiled here: {why_neither}")


def _prebuilt() -> tuple[Launchers | None, str]:
    """The module with compiled kernels if it can be imported, and why it does not serve."""
    try:
        module = importlib.import_module("stea_fast._cuda")
    except ModuleNotFoundError:
        return None, NOT_BUILT
    except ImportError as error:
        return None, f"broken: {error}"
    count, why_none = module.devices()
    return Launchers(module), unserved(module) if count else f"the compiled kernels see no device: {why_none}"


def _compiling(reason: str) -> tuple[Launchers | None, str]:
    """The launchers for kernels that are compiled here if they can work, and why they cannot."""
    try:
        module = importlib.import_module("stea_fast._cuda_jit")
    except ImportError as error:
        return None, str(error)
    launchers = Launchers(module, compiles=True, reason=reason)
    try:
        launchers.check()
    except BackendUnavailable as error:
        return None, str(error)
    return launchers, ""
