"""Which backend and tier is used, and what is said when one cannot be. Environment switches run in subprocesses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stea_fast as sf
from stea_fast import _backends
from stea_fast._util.threads import thread_count


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


RESOLVE = "from stea_fast import _backends; print(_backends.resolve('auto').__name__)"
BLOCK_CORE = "import sys; sys.modules['stea_fast._core'] = None; "
BREAK_CORE = """
import importlib.abc, sys
class Broken(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "stea_fast._core":
            raise ImportError("undefined symbol: broken_binary")
sys.meta_path.insert(0, Broken())
"""


def test_the_native_backend_is_the_automatic_choice():
    assert python(RESOLVE).stdout.strip() == "stea_fast._backends.native"


def test_without_the_compiled_module_numba_takes_over_and_refines():
    code = BLOCK_CORE + (
        "import stea_fast as sf; from stea_fast import demo; p = sf.synthetic_pair(60);"
        "out = sf.refine(demo.candidates(p), p.kg1, p.kg2, seeds=p.train); print(len(out.pairs) > 0);"
        "s = sf.backends()['native']; print(s.usable, s.detail)"
    )
    lines = python(code).stdout.splitlines()
    assert lines[0] == "True"
    assert lines[1].startswith("False absent")


def test_a_broken_binary_is_told_apart_from_an_absent_one():
    result = python(BREAK_CORE + "import stea_fast as sf; print(sf.backends()['native'].detail)")
    assert result.stdout.startswith("broken: ImportError: undefined symbol: broken_binary")


def test_a_build_without_cuda_says_so():
    code = (
        "import sys; sys.modules['stea_fast._cuda'] = sys.modules['stea_fast._cuda_jit'] = None;"
        "import stea_fast as sf; print(sf.backends()['cuda'].detail);"
        "print(sf.align(sf.synthetic_pair(60, seed=0), preset='structural', calibration='none').pairs.shape)"
    )
    said, shape = python(code).stdout.splitlines()
    assert said.startswith("not part of this build") and "nor can the kernels be compiled here: " in said
    assert not shape.startswith("(0,")


def test_the_bench_of_the_cuda_backend_refuses_where_it_cannot_run():
    if sf.backends()["cuda"].usable:
        pytest.skip("there is a CUDA device")
    command = [sys.executable, "-m", "bench.kernels.bench_cuda"]
    root = Path(__file__).resolve().parents[1]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "bench_cuda needs the CUDA backend, which cannot run here: " in result.stderr


def test_the_choice_can_be_forced_by_the_environment():
    assert python(RESOLVE, STEA_BACKEND="numba").stdout.strip() == "stea_fast._backends.numba"


def test_a_forced_backend_that_cannot_run_fails_loudly():
    code = BLOCK_CORE + "from stea_fast import _backends; _backends.resolve('native')"
    assert "BackendUnavailable: backend 'native' cannot run here: absent" in python(code).stderr
    if not sf.backends()["cuda"].usable:
        with pytest.raises(sf.BackendUnavailable, match=r"backend 'cuda' cannot run here: (not part|built, but)"):
            _backends.resolve("cuda")
    with pytest.raises(ValueError, match="backend must be"):
        _backends.resolve("quantum")
    assert "backend must be" in python(RESOLVE, STEA_BACKEND="quantum").stderr


def test_the_tier_can_be_forced_and_is_checked():
    code = "from stea_fast._backends import native; print(native.tier())"
    assert python(code, STEA_TIER="baseline").stdout.strip() == "baseline"
    assert "cannot run here; usable tiers: baseline" in python(code, STEA_TIER="avx9000").stderr


def test_the_number_of_threads_comes_from_the_environment():
    code = "from stea_fast._util.threads import thread_count; print(thread_count(None))"
    assert python(code, STEA_NUM_THREADS="3").stdout.strip() == "3"
    assert "STEA_NUM_THREADS must be a whole number" in python(code, STEA_NUM_THREADS="many").stderr
    with pytest.raises(ValueError, match="n_threads"):
        thread_count(0)


def test_the_automatic_choice_is_logged_once():
    code = (
        "import logging; logging.basicConfig(level=logging.INFO);"
        "from stea_fast import _backends; _backends.resolve(); _backends.resolve()"
    )
    assert python(code).stderr.count("uses the native backend") == 1


def test_info_lists_every_backend_with_its_reason():
    command = [sys.executable, "-m", "stea_fast", "info"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for word in ("native", "numba", "cuda", "reference", "tier", "numpy", "blas", "automatic choice: native"):
        assert word in text
    facts = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    if not facts["backends"]["cuda"]["usable"]:
        assert facts["backends"]["cuda"]["detail"].startswith(("not part of this build", "built, but"))
    assert facts["stea_fast"] == sf.__version__
    assert facts["blas"].startswith("of NumPy: ")
