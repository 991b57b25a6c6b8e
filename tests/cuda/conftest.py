"""The harness, built once for all test processes of a session."""

from __future__ import annotations

import harness_build
import pytest


@pytest.fixture(scope="session")
def builder(tmp_path_factory, worker_id):
    """Compiles the kernels for the CPU; skips where that cannot be done."""
    reason = harness_build.why_not()
    if reason:
        pytest.skip(reason)
    base = tmp_path_factory.getbasetemp()
    return harness_build.Builder((base if worker_id == "master" else base.parent) / "cuda_harness")
