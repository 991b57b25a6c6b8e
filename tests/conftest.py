"""Shared by all tests: where the real data is, and deterministic property tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:
    # Several processes, each with a thread per processor: a thread of torch that waits must not keep a processor busy.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

settings.register_profile(
    "default", deadline=None, max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")

DATA = Path(os.environ.get("STEA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data_folder():
    """The folder of the real pairs, which need not be there."""
    return DATA


@pytest.fixture
def device(tmp_path):
    """Gives devices to write to, by their names in /dev.

    Whoever may replace the real ones, by a mistake that a test should notice, gets some of the same kind elsewhere.
    """

    def make(name: str) -> Path:
        real = Path("/dev", name)
        if not real.is_char_device():
            pytest.skip(f"this system has no {real}")
        if not os.access("/dev", os.W_OK):
            return real
        try:
            os.mknod(tmp_path / name, real.stat().st_mode, real.stat().st_rdev)
            os.close(os.open(tmp_path / name, os.O_WRONLY))
        except OSError as error:
            pytest.skip(f"no device can be made here: {error}")
        return tmp_path / name

    return make


@pytest.fixture(scope="session")
def dbp15k():
    """The real pair dbp15k_zh_en at 30 % seeds."""
    folder = DATA / "dbp15k_zh_en"
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}; set STEA_DATA")
    from stea_fast import load_pair

    return load_pair(folder, 0.3)


@pytest.fixture(scope="session")
def builder(tmp_path_factory):
    """Compiles the CUDA kernels for the CPU (tests/cuda), once for all test processes; skips where that cannot be."""
    from harness_build import Builder, why_not

    reason = why_not()
    if reason:
        pytest.skip(reason)
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return Builder(shared / "cuda_harness")
