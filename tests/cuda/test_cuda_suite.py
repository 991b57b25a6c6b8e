"""`bench_cuda --suite` on GPUs that pose: what it writes, and that it notices and names what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from time import perf_counter
from types import SimpleNamespace

import numpy as np
import pytest
from harness_build import ROOT

import stea_fast as sf
from bench.kernels import bench_cuda, cuda_calls, cuda_suite
from bench.lib import inputs
from stea_fast.encoders import demo

torch = pytest.importorskip("torch", reason="GPUs pose through torch")
pytestmark = pytest.mark.slow  # compiles the kernels and the bindings for the CPU
KERNELS = [
    *(f"evidence of {what}s, {way}" for way in ("forward", "backward") for what in ("statement", "neighbour")),
    *(f"relation counts, {way}" for way in ("forward", "backward")),
    "evidence of neighbours, sparse pairs",
    "mutual best, float32",
    "mutual best, float64",
]
TIMES = {"median", "lower", "upper", "rounds"}


class Event:
    """As torch's: a moment on the current stream of the current device."""

    def __init__(self, *, enable_timing):
        assert enable_timing

    def record(self):
        self.device, self.moment = torch.cuda.current_device(), perf_counter()

    def elapsed_time(self, other):
        assert self.device == other.device
        return 1000 * (other.moment - self.moment)


@pytest.fixture(scope="module")
def tiny():
    pair = sf.synthetic_pair(40, seed=1)
    return inputs.prepare(pair, demo.candidates(pair, 5), "synthetic-15K", "encoder")


@pytest.fixture
def suite(gpus, tiny, tmp_path, monkeypatch):
    """Runs the suite on the tiny pair; gives the exit code and what was written."""

    def case(name):
        return tiny if name in inputs.SYNTHETIC else inputs.dataset_folder(name)

    properties = SimpleNamespace(total_memory=1 << 30, multi_processor_count=4)
    for name, value in {
        "Event": Event,
        "synchronize": lambda device=None: None,
        "get_device_properties": lambda number: properties,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(inputs, "DATA", tmp_path / "nothing")
    monkeypatch.setattr(inputs, "case", case)
    monkeypatch.setattr(cuda_suite, "COPIED", 1 << 12)
    monkeypatch.setitem(cuda_suite.PRESETS, "fast", 1)

    def run(*arguments):
        path = tmp_path / "suite.json"
        monkeypatch.setattr(sys, "argv", ["bench_cuda", "--suite", "--rounds", "2", "--json", str(path), *arguments])
        return bench_cuda.main(), json.loads(path.read_text())

    return run


def only_kernels(monkeypatch):
    monkeypatch.setattr(cuda_suite, "PRESETS", {})


def failed(content):
    return {failure["what"] for failure in content["failures"]}


def test_everything_is_measured_and_written_down(suite, tiny):
    code, content = suite("--case", "synthetic-15K")
    assert (code, content["failures"], content["skipped"], content["finished"]) == (0, [], [], True)
    assert content["format"] == 1 and content["driver_cuda"] == "13.0" and "numpy" in content["machine"]
    assert "CPU (sm_90) and 1 more" in content["backend"] and {"driver", "torch_cuda"} <= content.keys()
    assert [device["name"] for device in content["devices"]] == ["CPU", "CPU"]
    assert content["devices"][0] == {
        "name": "CPU", "capability": "9.0", "total_memory": 1 << 30, "multi_processor_count": 4, "L2_cache_size": None,
        "memory_clock_rate": None, "memory_bus_width": None,
    }  # fmt: skip
    for device in (0, 1):
        measured = {entry["kernel"]: entry for entry in content["kernels"] if entry["device"] == device}
        assert sorted(measured) == sorted(["copy", *KERNELS])
        for entry in measured.values():
            assert entry["seconds"].keys() == TIMES and entry["seconds"]["rounds"] == 2
            speed = entry["bytes"] / entry["seconds"]["median"] / 1e9
            assert entry["gigabytes_per_second"] == pytest.approx(speed, rel=1e-3, abs=1e-3)
        presets = [entry for entry in content["presets"] if entry["device"] == device]
        assert [entry["preset"] for entry in presets] == ["structural", "fast"]
        assert all(entry["links_in_common"] == 1 and entry["links"] > 5 for entry in presets)
        assert all(entry["probabilities_off"] < 1e-5 and entry["seconds"].keys() == TIMES for entry in presets)
    (several,) = content["several_devices"]
    assert several["devices"] == 2 and several["seconds"].keys() == TIMES and several["seconds_of_one_device"] > 0


def test_real_pairs_that_are_not_there_are_named_and_replaced(suite, monkeypatch):
    only_kernels(monkeypatch)
    code, content = suite("--case", "dbp15k_zh_en")
    (skipped,) = content["skipped"]
    assert code == 0 and skipped["case"] == "dbp15k_zh_en" and "set STEA_DATA" in skipped["reason"]
    assert {entry["case"] for entry in content["kernels"]} == {None, "synthetic-15K"}


def shifted_evidence(results, _):
    results[0].flatten()[3] += 1.0
    return results


def doubled_counts(results, _):
    return results._replace(den=2 * results.den)


def no_partner(results, arguments, kind=torch.float32):
    return (results[0].fill_(-1), results[1]) if arguments[0][1].dtype == kind else results


@pytest.mark.parametrize(
    ("function", "spoiled", "named"),
    [
        ("evidence_and_witnesses", shifted_evidence, "evidence"),
        ("relation_counts", doubled_counts, "relation counts"),
        ("mutual_best", no_partner, "mutual best, float32"),
        ("mutual_best", partial(no_partner, kind=torch.float64), "mutual best, float64"),
    ],
)
def test_a_wrong_kernel_is_named_and_not_timed(suite, cuda, monkeypatch, capsys, function, spoiled, named):
    only_kernels(monkeypatch)
    real = getattr(cuda.Kernels, function)
    monkeypatch.setattr(
        cuda.Kernels, function, lambda self, *given, **options: spoiled(real(self, *given, **options), given)
    )
    code, content = suite("--case", "synthetic-15K")
    wrong_ones = {name for name in KERNELS if name.startswith(named)}
    assert code == 1 and failed(content) - {"several devices"} == wrong_ones
    assert ("several devices" in failed(content)) == (named == "evidence")
    assert {entry["kernel"] for entry in content["kernels"]} == {"copy", *KERNELS} - wrong_ones
    said = capsys.readouterr().err
    assert all(f"FAILED: {name} (case synthetic-15K, device 1): AssertionError: " in said for name in wrong_ones)


def test_a_kernel_that_gives_other_bits_the_second_time_is_named(suite, cuda, monkeypatch):
    only_kernels(monkeypatch)
    real, calls = cuda.Kernels.mutual_best, []

    def unsteady(self, *arguments):
        partner, value = real(self, *arguments)
        calls.append(partner)
        return partner, value * (1.0 + 3e-7 * (len(calls) % 2)) if value.dtype == torch.float32 else value

    monkeypatch.setattr(cuda.Kernels, "mutual_best", unsteady)
    code, content = suite("--case", "synthetic-15K")
    assert code == 1 and failed(content) == {"mutual best, float32"}
    assert all("two runs give different bits" in failure["reason"] for failure in content["failures"])


def test_a_device_that_fails_once_costs_one_step(suite, harness, monkeypatch):
    only_kernels(monkeypatch)
    harness.harness_fail_call(b"cudaGetLastError", 400, 2)
    code, content = suite("--case", "synthetic-15K")
    (failure,) = content["failures"]
    assert code == 1 and failure["what"] == KERNELS[0] and "cudaErrorInvalidResourceHandle" in failure["reason"]
    assert len(content["kernels"]) == 2 * (len(KERNELS) + 1) - 1


def test_a_preset_that_finds_other_links_is_named(suite, cuda, monkeypatch):
    monkeypatch.setattr(cuda_suite, "PRESETS", {"structural": None})
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(cuda_suite, "kernel_calls", lambda case: cuda_calls.kernel_calls(case)[:1])
    real = cuda.Kernels.evidence_and_witnesses

    def blind(self, *arguments, **options):
        found, number = real(self, *arguments, **options)
        return (found, number) if options.get("witnesses", "statement") == "statement" else (found.zero_(), number)

    monkeypatch.setattr(cuda.Kernels, "evidence_and_witnesses", blind)
    code, content = suite("--case", "synthetic-15K")
    assert code == 1 and failed(content) == {"preset structural"}
    assert all(entry["links_in_common"] < 0.995 for entry in content["presets"])


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(gpus, tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        cuda_suite.Report(tmp_path / "nowhere" / "suite.json", {})


def test_what_is_not_a_number_is_as_far_off_as_can_be():
    def alignment(probs):
        links = SimpleNamespace(targets=np.array([0, 1]), probs=np.array(probs))
        return SimpleNamespace(links=links, pairs=np.array([[0, 0], [1, 1]]))

    assert cuda_suite._compared(alignment([0.5, 0.75]), alignment([0.5, 0.5])) == (1.0, 0.25)
    assert cuda_suite._compared(alignment([0.5, np.nan]), alignment([0.5, 0.5])) == (1.0, 1.0)


def test_without_a_gpu_it_says_why_and_writes_nothing(tmp_path):
    blocked = "import sys; sys.modules['stea_fast._cuda'] = sys.modules['stea_fast._cuda_jit'] = None;"
    code = f"{blocked} sys.argv[1:] = ['--suite']; from bench.kernels.bench_cuda import main; sys.exit(main())"
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "cannot run here: not part of this build" in done.stderr
    assert list(tmp_path.iterdir()) == []
