"""Which of the two CUDA modules is taken, and what is said of it, on machines of all kinds; both modules stand in."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import pytest

from stea_fast import BackendUnavailable
from stea_fast._backends import cuda_modules, nvrtc

OLD = "cudaErrorInsufficientDriver"


def module(*, error="", capability=90):
    """A module that sees one GPU, or says why it sees none."""
    return SimpleNamespace(
        devices=lambda: (0, error) if error else (1, ""),
        device_properties=lambda number: ("GPU", capability),
        driver_version=lambda: 12040,
    )


@pytest.fixture
def machine(monkeypatch):
    """Sets both modules (None: not part of the build), NVRTC's oldest architecture (None: no NVRTC) and the choice."""

    def make(prebuilt, compiling, oldest=50, choice=""):
        def compiler():
            if oldest is None:
                raise BackendUnavailable("no libnvrtc was found")
            found = nvrtc.Compiler.__new__(nvrtc.Compiler)
            found.version, found.architectures = "12.4", [oldest, 90]
            return found

        monkeypatch.setitem(sys.modules, "stea_fast._cuda", prebuilt)
        monkeypatch.setitem(sys.modules, "stea_fast._cuda_jit", compiling)
        monkeypatch.setattr(nvrtc, "compiler", compiler)
        monkeypatch.setenv("STEA_CUDA_KERNELS", choice)
        return cuda_modules.choose()

    return make


@pytest.mark.parametrize(
    ("prebuilt", "reason"),
    [
        (module(error=OLD), f"the compiled kernels see no device: {OLD}"),
        (module(capability=61), r"built for compute capability 7.5 and later, but there is GPU \(6.1\)"),
        (None, "not part of this build"),
    ],
    ids=["old driver", "old GPU", "no toolkit"],
)
def test_where_compiled_kernels_do_not_serve_nvrtc_compiles(machine, prebuilt, reason):
    launchers = machine(prebuilt, module(capability=61))
    assert launchers.compiles
    assert re.match(rf"CUDA kernels compiled here by NVRTC 12\.4 \({reason}", launchers.check())


def test_compiled_kernels_are_taken_where_they_serve(machine):
    launchers = machine(module(), module())
    assert not launchers.compiles and launchers.check() == "CUDA kernels compiled beforehand"


def test_an_old_driver_without_nvrtc_is_told(machine):
    launchers = machine(module(error=OLD), module(), oldest=None)
    with pytest.raises(BackendUnavailable, match=rf"no CUDA device: {OLD} \(the driver supports CUDA 12\.4\)"):
        launchers.check()


def test_a_gpu_that_neither_serves_is_told(machine):
    launchers = machine(module(capability=35), module(capability=35))
    with pytest.raises(BackendUnavailable, match=r"7\.5 and later, but there is GPU \(3\.5\)"):
        launchers.check()
    with pytest.raises(BackendUnavailable, match=r"not part of this build.*nor can .*5\.0 and later, not for 3\.5"):
        machine(None, module(capability=35))


def test_a_choice_is_kept(machine):
    assert machine(module(), module(), choice="nvrtc").check().endswith("(STEA_CUDA_KERNELS=nvrtc)")
    with pytest.raises(BackendUnavailable, match=OLD):
        machine(module(error=OLD), module(), choice="prebuilt").check()
    with pytest.raises(BackendUnavailable, match=r"not part of this build.*STEA_CUDA_KERNELS=prebuilt"):
        machine(None, module(), choice="prebuilt")
    with pytest.raises(BackendUnavailable, match="must be one of auto, prebuilt, nvrtc; got 'best'"):
        machine(module(), module(), choice="best")
