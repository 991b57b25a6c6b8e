"""Kernels compiled at run time: by NVRTC where there is one, kept on the disk, executed as PTX by the interpreter."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import harness_cases as cases
import pytest
from harness_build import ROOT
from test_cuda_kernels import configuration
from test_ptx import check

import build_cuda
from stea_fast import BackendUnavailable
from stea_fast._backends import kernel_cache, nvrtc
from stea_fast._util import disk

HERE = Path(__file__).resolve().parent
KERNELS = ("evidence_of_pairs", "count_statements", "best_of_rows<float>", "best_of_rows<double>",
           "returned_choices<float>", "returned_choices<double>")  # fmt: skip


@pytest.fixture(scope="module")
def compiler():
    try:
        return nvrtc.compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))


class Counting:
    """Stands in for NVRTC: "compiles" by saying what it was asked for."""

    version = "99.0"

    def __init__(self):
        self.calls = 0

    def compile(self, target, kernels):
        self.calls += 1
        return nvrtc.Image(f"{target} {self.calls}".encode() + b"\n\0rest", {name: name.upper() for name in kernels})


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "stea-fast" / "kernels"


def test_what_was_compiled_is_taken_from_the_disk(cache):
    counting = Counting()
    first = kernel_cache.compiled(counting, "sm_90", ["a"])
    assert kernel_cache.compiled(counting, "sm_90", ["a"]) == first and counting.calls == 1
    assert len(list(cache.iterdir())) == 1


def test_other_sources_kernels_targets_and_compilers_are_compiled_anew(cache, monkeypatch):
    counting = Counting()
    kernel_cache.compiled(counting, "sm_90", ["a"])
    kernel_cache.compiled(counting, "sm_80", ["a"])
    kernel_cache.compiled(counting, "sm_90", ["a", "b"])
    counting.version = "99.1"
    kernel_cache.compiled(counting, "sm_90", ["a"])
    monkeypatch.setattr(kernel_cache, "source_bytes", lambda: b"other")
    kernel_cache.compiled(counting, "sm_90", ["a"])
    assert counting.calls == 5 and len(list(cache.iterdir())) == 5


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:30], lambda b: b[:-1] + b"X", lambda b: b"[1]\n"]
)
def test_a_damaged_file_is_compiled_anew_and_replaced(cache, damage, caplog):
    counting = Counting()
    kernel_cache.compiled(counting, "sm_90", ["a"])
    (path,) = cache.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING, logger="stea_fast"):
        again = kernel_cache.compiled(counting, "sm_90", ["a"])
    assert counting.calls == 2 and "damaged" in caplog.text
    assert kernel_cache.compiled(counting, "sm_90", ["a"]) == again and counting.calls == 2


def test_a_folder_that_cannot_be_written_costs_a_warning(cache, monkeypatch, caplog):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(disk, "make_folder", refuse)
    counting = Counting()
    with caplog.at_level(logging.WARNING, logger="stea_fast"):
        image = kernel_cache.compiled(counting, "sm_90", ["a"])
    assert image.entries == {"a": "A"} and not cache.exists()
    assert "cannot be kept" in caplog.text


def test_the_sources_that_the_wheel_brings_are_all_that_is_read():
    brought = {path.relative_to(build_cuda.KERNELS) for path in build_cuda.run_time_sources()}
    assert {Path("views.h"), Path("cuda/evidence.cu"), Path("cuda/warp.cuh")} <= brought
    assert Path("cuda/device.cu") not in brought
    assert not [path for path in brought if path.suffix not in (".h", ".cu", ".cuh")]


def test_machine_code_for_known_devices_and_ptx_for_newer_ones():
    known = nvrtc.Compiler.__new__(nvrtc.Compiler)
    known.version, known.architectures = "12.4", [50, 60, 90]
    assert [known.target(number) for number in (60, 90, 75, 120)] == ["sm_60", "sm_90", "compute_60", "compute_90"]
    with pytest.raises(
        BackendUnavailable, match=r"NVRTC 12\.4 compiles for compute capability 5\.0 and later, not for 3\.7"
    ):
        known.target(37)


def test_a_named_library_that_is_none_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("STEA_NVRTC", str(tmp_path / "libnvrtc.so.13"))
    with pytest.raises(BackendUnavailable, match="libnvrtc"):
        nvrtc.compiler.__wrapped__()


def test_every_launched_kernel_is_known_by_name():
    module = pytest.importorskip("stea_fast._cuda_jit", reason="this build has no launchers for run time")
    assert sorted(module.kernel_names()) == sorted(KERNELS)


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, -1], ids=["oldest", "newest"])
def test_what_nvrtc_makes_of_every_kernel_equals_the_reference(compiler, builder, tmp_path, place):
    image = compiler.compile(f"compute_{compiler.architectures[place]}", KERNELS)
    assert set(image.entries) == set(KERNELS)
    ptx = tmp_path / "nvrtc.ptx"
    ptx.write_bytes(image.code.rstrip(b"\0"))
    assert all(entry in ptx.read_text() for entry in image.entries.values())
    batch = [*cases.shapes(1), cases.star_case(30, 2)]
    check(builder.runner("ptx"), str(ptx), tmp_path, batch, [configuration(64, seed=5)])


@pytest.mark.slow
def test_nvrtc_makes_machine_code_for_all_its_devices(compiler):
    for number in (compiler.architectures[0], compiler.architectures[-1]):
        assert compiler.compile(f"sm_{number}", KERNELS).code[:4] == b"\x7fELF"


@pytest.mark.slow
def test_what_nvrtc_says_of_a_wrong_source_is_told(compiler, monkeypatch):
    monkeypatch.setattr(nvrtc, "_BEGINNING", nvrtc._BEGINNING + "wrong here;\n")
    with pytest.raises(BackendUnavailable, match="cannot compile the kernels for sm_"):
        compiler.compile(f"sm_{compiler.architectures[-1]}", KERNELS)


@pytest.mark.slow
def test_a_pair_is_refined_by_kernels_compiled_here(compiler, builder, cache, tmp_path):
    """Bindings, launchers, cache and the driver's functions as on a GPU; the kernels' PTX is interpreted.

    They are compiled in this process, since NVRTC was seen to crash in one where the tests' driver stands for libcuda.
    """
    kernel_cache.compiled(compiler, f"compute_{compiler.architectures[-1]}", KERNELS)
    pytest.importorskip("stea_fast._cuda_jit", reason="this build has no launchers for run time")
    pytest.importorskip("torch")
    from posing import build_guard

    command = [sys.executable, HERE / "nvrtc_run.py", builder.driver(), builder.target("posing_guard.so", build_guard)]
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}"}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["usable"] and found["same"] and found["pairs"] > 5 and found["off"] < 1e-5
    assert f"compiled here by NVRTC {compiler.version}" in found["detail"]
    executed = {line.split()[1] for line in done.stderr.splitlines() if line.startswith("executed")}
    assert {"evidence_of_pairs", "count_statements"} <= executed
    assert len(list(cache.iterdir())) == 1
