"""The CUDA kernels, run on the CPU: every kernel, block size and mode equals the reference, whatever the schedule."""

from __future__ import annotations

import subprocess

import harness_cases as cases
import mutants
import pytest
from harness_build import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from stea_fast._backends.counts import scale_bits

pytestmark = pytest.mark.slow  # compiles the kernels several times, with sanitizers
BLOCKS = (32, 64, 128, 256, 512, 1024)
PATIENCE = 600  # seconds; only a kernel that never ends takes so long
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=1", "TSAN_OPTIONS": "halt_on_error=1"}


def configuration(block, *, capacity=4096, seed=0, workers=1):
    """What the runner takes: block size, capacity of the counts, schedule, host threads."""
    return f"{block}:{capacity}:{seed}:{workers}"


def run(program, folder, batch, configurations):
    """Run a batch; returns the outcomes per case and configuration, or the report."""
    problems, results = folder / "problems.bin", folder / "results.bin"
    problems.write_bytes(cases.pack(batch))
    command = [program, problems, results, *configurations]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None, f"a kernel did not end within {PATIENCE} s"
    if done.returncode != 0 or done.stderr:
        return None, f"exit code {done.returncode}: {done.stderr}"
    return cases.unpack(results.read_bytes(), batch, len(configurations)), ""


def check(program, folder, batch, configurations):
    """All outcomes agree with the reference."""
    outcomes, report = run(program, folder, batch, configurations)
    assert outcomes is not None, report
    for case, found in zip(batch, outcomes, strict=True):
        wanted = cases.expected(case)
        for outcome in found:
            cases.assert_agrees(outcome, wanted, scale_bits(case.kg1))
    return outcomes


@pytest.mark.parametrize(
    ("mode", "workers", "examples"), [("plain", 1, 12), ("asan", 1, 4), ("tsan", 1, 3), ("tsan", 2, 3)]
)
def test_kernels_equal_the_reference_on_graphs_of_any_shape(builder, tmp_path, mode, workers, examples):
    program = builder.runner(mode)
    blocks = BLOCKS if workers == 1 else (32, 64, 256)

    @settings(max_examples=examples)
    @given(st.lists(cases.cases(), min_size=1, max_size=6), st.integers(0, 2**31))
    def all_agree(batch, seed):
        check(program, tmp_path, batch, [configuration(b, seed=seed, workers=workers) for b in blocks])

    all_agree()


@pytest.mark.parametrize("mode", ["plain", "ucontext", "asan", "tsan"])
@pytest.mark.parametrize("workers", [1, 2])
def test_kernels_equal_the_reference_on_hubs(builder, tmp_path, mode, workers):
    """Rows too large for shared memory, and candidates that are searched instead of walked."""
    batch = cases.shapes(workers, size=60)
    check(builder.runner(mode), tmp_path, batch, [configuration(b, seed=b, workers=workers) for b in (32, 128)])


@pytest.fixture(scope="module")
def real_case(dbp15k):
    return cases.real_case(dbp15k)


@pytest.mark.parametrize("mode", ["plain", "asan", "tsan"])
@pytest.mark.parametrize("block", BLOCKS)
def test_kernels_equal_the_reference_on_a_real_pair(builder, tmp_path, real_case, mode, block):
    workers = 2 if block in (64, 128) else 1
    one = configuration(block, capacity=65536, seed=block, workers=workers)
    check(builder.runner(mode), tmp_path, [real_case], [one])


def test_no_schedule_changes_a_bit(builder, tmp_path):
    """Different orders of threads and blocks, on one worker and on several: two runs on a GPU cannot differ either."""
    batch = [cases.star_case(60, seed=3), cases.star_case(9, seed=4), cases.parallel_case(40, seed=5)]
    batch += [cases.dense_case(seed=6), cases.wide_case(seed=7)]
    schedules = [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3)]
    for block in (32, 256):
        configurations = [configuration(block, seed=seed, workers=n) for seed, n in schedules]
        for first, *others in check(builder.runner("plain"), tmp_path, batch, configurations):
            assert all(first.same_bits(other) for other in others)


def test_a_full_table_of_counts_is_reported_not_overrun(builder, tmp_path):
    with pytest.raises(AssertionError, match="too small"):
        run(builder.runner("asan"), tmp_path, [cases.star_case(30, seed=0)], [configuration(32, capacity=2)])


def test_failing_calls_are_reported_and_only_some_are_final(builder):
    """Every call of the runtime with every kind of error; and no device gets a context that was not asked for."""
    assert host_report(builder.runner("plain")) == ""


def host_report(program):
    """What the checks of the host side complain about."""
    done = subprocess.run([program, "--host"], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode == 0) == (done.stderr == ""), done
    return done.stderr


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_seeded_defects_are_noticed(builder, tmp_path, mutant):
    mutant.write_to(ROOT / "csrc", tmp_path)
    if mutant.mode == "host":
        assert host_report(builder.mutant("plain", mutant.name, tmp_path)) != ""
        return
    program = builder.mutant(mutant.mode, mutant.name, tmp_path)
    batch = cases.shapes(1)
    outcomes, report = run(program, tmp_path, batch, [configuration(64, seed=5, workers=2)])
    if outcomes is None:
        assert mutant.symptom in report, report
        return
    assert not mutant.symptom, f"expected {mutant.symptom!r}; the run went through"
    assert any(differs(outcome[0], case) for case, outcome in zip(batch, outcomes, strict=True))


def differs(outcome, case):
    try:
        cases.assert_agrees(outcome, cases.expected(case), scale_bits(case.kg1))
    except AssertionError:
        return True
    return False
