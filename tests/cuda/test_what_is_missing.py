"""Machines with a GPU that cannot be used: `info` says why, and everything else works."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from harness_build import ROOT

pytestmark = pytest.mark.slow  # compiles the kernels and the bindings for the CPU

# The module of the harness takes the place of the one with the compiled kernels, in a process of its own.
BEGINNING = """
import ctypes, importlib.util, sys
path = sys.argv[1]
loader = importlib.util.spec_from_file_location("stea_fast._cuda", path)
module = importlib.util.module_from_spec(loader)
loader.loader.exec_module(module)
sys.modules["stea_fast._cuda"] = module
sys.modules["stea_fast._cuda_jit"] = None
harness = ctypes.CDLL(path)
harness.harness_pose(2)
"""
NO_TORCH = 'sys.modules["torch"] = None\n'
OLD_DRIVER = """
real = module.devices
def devices():
    harness.harness_fail_call(b"cudaGetDeviceCount", 35, 1)  # cudaErrorInsufficientDriver, every time
    return real()
module.devices = devices
"""
INFO = 'from stea_fast.cli.main import main; sys.exit(main(["info", "--json"]))\n'
WORK = """
import stea_fast as sf
pair = sf.synthetic_pair(60, seed=0)
print(len(sf.align(pair, preset="structural", calibration="none").pairs) > 5)
print(len(sf.align(pair, preset="fast", rounds=1, calibration="none").pairs) > 5)
candidates = sf.topk(*sf.demo.encode(pair, dim=16), 5)
print(len(sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train).pairs) > 5)
try:
    sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, backend="cuda")
except sf.BackendUnavailable as error:
    print(error)
"""


def python(module, code):
    command = [sys.executable, "-c", BEGINNING + code, str(module)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        (NO_TORCH, "built, but torch is not installed, which holds the arrays"),
        (OLD_DRIVER, "built, but no CUDA device: cudaGetDeviceCount: cudaErrorInsufficientDriver"),
    ],
    ids=["no torch", "old driver"],
)
def test_info_says_why_and_everything_else_works(builder, missing, reason):
    module = builder.module()
    told = python(module, missing + INFO)
    assert told.returncode == 0, told.stderr
    facts = json.loads(told.stdout)
    assert not facts["backends"]["cuda"]["usable"] and facts["backends"]["cuda"]["detail"].startswith(reason)
    if missing == OLD_DRIVER:
        assert "(the driver supports CUDA 13.0)" in facts["backends"]["cuda"]["detail"]
    assert facts["automatic"] == "native" and facts["backends"]["numba"]["usable"]
    worked = python(module, missing + WORK)
    assert worked.returncode == 0, worked.stderr
    *aligned, refused = worked.stdout.splitlines()
    assert aligned == ["True"] * 3
    assert refused.startswith(f"backend 'cuda' cannot run here: {reason}")


def test_nothing_is_missing_otherwise(builder):
    """The process of these tests does not fail by itself: without what is taken away the device is reached."""
    pytest.importorskip("torch")
    told = python(builder.module(), "import stea_fast as sf; print(sf.backends()['cuda'].detail)")
    reached = r"this torch .* does not see the CUDA device|CPU \(sm_90\)"  # whether torch has CUDA of its own
    assert re.search(reached, told.stdout), told.stderr
