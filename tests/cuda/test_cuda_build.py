"""The build switch, and what nvcc makes of the kernels. What needs a toolkit is skipped where there is none."""

from __future__ import annotations

import importlib.util
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from harness_build import ROOT

sys.path.insert(0, str(ROOT))
import build_cuda

FATBIN = struct.pack("<I", 0xBA55ED50)
PTX, MACHINE_CODE = 1, 2


@pytest.fixture(scope="module")
def toolkit():
    try:
        return build_cuda.find_toolkit()
    except build_cuda.ToolkitMissingError as error:
        pytest.skip(str(error))


def decide(**environment):
    """What the build decides, in a process of its own."""
    code = "import build_cuda; print(build_cuda.decide() is not None)"
    clean = {name: value for name, value in os.environ.items() if name not in ("STEA_CUDA", "CUDA_HOME")}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**clean, **environment},
        check=False,
    )


def test_off_builds_no_cuda_and_says_nothing():
    result = decide(STEA_CUDA="off")
    assert (result.stdout.strip(), result.stderr) == ("False", "")


def test_auto_without_a_toolkit_goes_on_and_says_so_in_one_line(tmp_path):
    result = decide(PATH=str(tmp_path))
    assert result.stdout.strip() == "False"
    assert result.stderr.count("\n") == 1 and "no CUDA backend: no nvcc in PATH" in result.stderr


def test_on_without_a_toolkit_is_an_error_that_says_what_is_missing(tmp_path):
    result = decide(STEA_CUDA="on", PATH=str(tmp_path))
    assert result.returncode == 1
    assert "STEA_CUDA=on, but the CUDA backend cannot be built: no nvcc in PATH" in result.stderr
    assert "CUDA_HOME" in decide(STEA_CUDA="on", CUDA_HOME=str(tmp_path)).stderr


def fake_nvcc(folder, text):
    (folder / "nvcc").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "nvcc").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_a_toolkit_without_the_static_runtime_is_not_enough(tmp_path):
    path = fake_nvcc(tmp_path, f"echo '#$ TOP={tmp_path}'")
    assert "no libcudart_static.a in" in decide(STEA_CUDA="on", PATH=path).stderr


def test_an_nvcc_that_says_nothing_of_its_root_is_not_enough(tmp_path):
    assert "no line TOP=" in decide(STEA_CUDA="on", PATH=fake_nvcc(tmp_path, "true")).stderr


def test_the_switch_takes_three_values():
    assert "STEA_CUDA must be auto, on or off; got 'maybe'" in decide(STEA_CUDA="maybe").stderr


@pytest.mark.slow
def test_no_kernel_spills_on_any_architecture(toolkit, tmp_path):
    uses = build_cuda.kernel_use(toolkit, tmp_path)
    assert {use.architecture for use in uses} == set(toolkit.architectures())
    assert {use.kernel for use in uses} >= {"evidence_of_pairs", "count_statements", "best_of_rows<float>"}
    assert [use for use in uses if use.spills] == []
    assert all((build_cuda.occupancy(use) or 1.0) >= 0.5 for use in uses)
    # Every kernel must start with the largest block: 1,024 threads share 65,536 registers.
    assert all(use.registers <= 64 for use in uses)


def test_spills_and_registers_are_read_from_the_report_of_ptxas():
    text = """ptxas info    : Compiling entry function '_ZN4stea4cuda4loudIfEEvv' for 'sm_90'
ptxas info    : Function properties for it
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 33 registers, used 1 barriers, 640 bytes smem, 520 bytes cmem[0]"""
    assert build_cuda.parse_ptxas(text) == [build_cuda.KernelUse("loud<float>", 90, 33, 640, 20)]


def embedded(module: Path) -> set[tuple[int, int]]:
    """(kind, architecture) of everything in the fat binaries of a compiled module."""
    data, found = module.read_bytes(), set()
    begin = data.find(FATBIN)
    while begin >= 0:
        _, _, header, size = struct.unpack_from("<IHHQ", data, begin)
        at, end = begin + header, begin + header + size
        while at < end:
            kind, _, entry_header, payload = struct.unpack_from("<HHIQ", data, at)
            found.add((kind, struct.unpack_from("<8I", data, at)[7]))
            at += entry_header + payload
        begin = data.find(FATBIN, end)
    return found


@pytest.fixture
def module():
    """The file of the CUDA module."""
    found = importlib.util.find_spec("stea_fast._cuda")
    if found is None or found.origin is None:
        pytest.skip("this build has no CUDA module")
    return Path(found.origin)


def test_the_module_holds_code_for_all_architectures_and_ptx_of_the_oldest_and_the_newest(toolkit, module):
    architectures = toolkit.architectures()
    held = embedded(module)
    assert {(MACHINE_CODE, number) for number in architectures} <= held
    assert {number for kind, number in held if kind == PTX} == {min(architectures), max(architectures)}
    assert {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121} == set(architectures) or toolkit.release != "13.0"


def test_the_module_is_small(module):
    assert module.stat().st_size < 2_500_000


def test_the_module_imports_without_a_driver():
    if importlib.util.find_spec("stea_fast._cuda") is None:
        pytest.skip("this build has no CUDA module")
    code = "import stea_fast._cuda as c; count, error = c.devices(); print(count, bool(error))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found[0] != "0" or found[1] == "True"
