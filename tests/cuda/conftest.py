"""The CUDA backend over host memory: the real bindings, linked with the harness."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys

import pytest

import stea_fast as sf
from stea_fast import _backends

CUDA, HOST = 2, 1  # DLPack's numbers
STREAM = 0x5A0


@pytest.fixture(scope="module")
def harness(builder):
    """The package with `_cuda` replaced by the harness's module; yields the knobs of the harness."""
    pytest.importorskip("pybind11", reason="the bindings are compiled with pybind11")
    path = builder.module()
    # Under a name of its own: pybind11 would give it out for the real module later.
    loader = importlib.util.spec_from_file_location("cuda_on_cpu._cuda", path)
    module = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(module)
    affected = ["stea_fast._cuda", "stea_fast._backends.cuda"]
    with pytest.MonkeyPatch.context() as patch:
        for name in affected:
            patch.delitem(sys.modules, name, raising=False)
        patch.setitem(sys.modules, "stea_fast._cuda", module)
        patch.setattr(sf, "_cuda", module, raising=False)
        _backends.status.cache_clear()
        yield ctypes.CDLL(str(path))
        for name in affected[1:]:
            sys.modules.pop(name, None)
    _backends.status.cache_clear()


@pytest.fixture(scope="module")
def cuda(harness):
    """The backend's module."""
    return importlib.import_module("stea_fast._backends.cuda")


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(60, seed=1)


@pytest.fixture
def plain_gpus(builder):
    """Two GPUs that torch believes in, as long as the test lasts."""
    from posing import build_guard, posing_gpus

    with posing_gpus(builder.target("posing_guard.so", build_guard)) as posing:
        yield posing


@pytest.fixture
def gpus(harness, cuda, plain_gpus):
    """The same, on which the kernels run, each with a stream of its own."""
    harness.harness_pose(CUDA)
    harness.harness_expect_stream(STREAM)
    harness.harness_forget_contexts()
    plain_gpus.on_change = harness.harness_make_current
    plain_gpus.streams = [STREAM, STREAM]
    yield plain_gpus
    harness.harness_pose(HOST)
    harness.harness_expect_stream(None)
