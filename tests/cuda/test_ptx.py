"""The PTX that nvcc made of the kernels, executed: it equals the reference, without races and stray accesses."""

from __future__ import annotations

import subprocess

import harness_cases as cases
import mutants
import pytest
from harness_build import PTX_ARCHITECTURES, ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cuda_kernels import configuration, differs

import build_cuda
from stea_fast._backends.counts import scale_bits

pytestmark = pytest.mark.slow
# Of the seeded defects, those that a look at addresses, races and masks must find in the compiled code, too.
SYMPTOMS = {
    "filter_is_filled_before_it_is_empty": "data race",
    "table_is_read_before_it_is_written": "data race",
    "heads_are_written_while_they_are_read": "data race",
    "every_lane_writes_the_first_pair": "data race",
    "reads_a_pair_too_many": "outside of every allocation",
    "writes_a_pair_too_many": "outside of every allocation",
    "too_little_shared_memory": "outside of shared memory",
    "lanes_without_a_pair_leave": "named in the mask",
    "takes_one_statement_of_a_run": "",
    "queue_is_never_emptied": "",
}


@pytest.fixture(scope="module", autouse=True)
def _needs_nvcc():
    try:
        build_cuda.find_toolkit()
    except build_cuda.ToolkitMissingError as error:
        pytest.skip(f"nothing makes PTX here: {error}")


def run(program, ptx, folder, batch, configurations, **environment):
    """Run a batch; returns the outcomes per case and configuration, or the report."""
    problems, results = folder / "problems.bin", folder / "results.bin"
    problems.write_bytes(cases.pack(batch))
    command = [program, problems, results, *configurations]
    environment = {"STEA_PTX": ptx, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)
    if done.returncode != 0:
        return None, done.stderr
    return cases.unpack(results.read_bytes(), batch, len(configurations)), ""


def check(program, ptx, folder, batch, configurations):
    """All outcomes agree with the reference, and no schedule changes a bit of them."""
    outcomes, report = run(program, ptx, folder, batch, configurations)
    assert outcomes is not None, report
    for case, found in zip(batch, outcomes, strict=True):
        for outcome in found:
            cases.assert_agrees(outcome, cases.expected(case), scale_bits(case.kg1))
            assert outcome.same_bits(found[0])


@pytest.mark.parametrize("architecture", PTX_ARCHITECTURES)
def test_ptx_of_every_kernel_equals_the_reference_on_hubs(builder, tmp_path, architecture):
    configurations = [configuration(block, seed=seed) for block in (32, 64, 512) for seed in (0, 5)]
    check(builder.runner("ptx"), builder.ptx(architecture), tmp_path, cases.shapes(1), configurations)


def test_ptx_of_every_kernel_equals_the_reference_on_graphs_of_any_shape(builder, tmp_path):
    program, ptx = builder.runner("ptx"), builder.ptx()

    @settings(max_examples=10)
    @given(st.lists(cases.cases(), min_size=1, max_size=6), st.integers(0, 2**31))
    def all_agree(batch, seed):
        check(program, ptx, tmp_path, batch, [configuration(block, seed=seed) for block in (32, 128)])

    all_agree()


def test_ptx_of_every_kernel_equals_the_reference_on_a_real_pair(builder, tmp_path, dbp15k):
    one = configuration(128, capacity=65536, seed=3)
    check(builder.runner("ptx"), builder.ptx(), tmp_path, [cases.real_case(dbp15k, entities=150)], [one])


def test_what_was_executed_is_counted(builder, tmp_path):
    counts = tmp_path / "counts"
    batch = cases.shapes(1)
    run(builder.runner("ptx"), builder.ptx(), tmp_path, batch, [configuration(64)], STEA_PTX_COUNTS=str(counts))
    lines = [line.split("\t") for line in counts.read_text(encoding="utf-8").splitlines()]
    kernels = {name for name, *_ in lines}
    assert {"evidence_of_pairs", "count_statements", "best_of_rows<float>", "returned_choices<float>"} <= kernels
    for _, *numbers in lines:
        warps, instructions, lanes, accesses, sectors = map(int, numbers)
        assert warps <= instructions <= lanes <= 32 * instructions
        assert 0 <= accesses <= sectors


@pytest.mark.parametrize("name", SYMPTOMS)
def test_seeded_defects_are_noticed_in_the_compiled_code(builder, tmp_path, name):
    mutant = next(each for each in mutants.MUTANTS if each.name == name)
    mutant.write_to(ROOT / "csrc", tmp_path)
    program = builder.mutant("ptx", f"ptx-{name}", tmp_path)
    batch = cases.shapes(1)
    ptx = builder.ptx(name=f"{name}-", csrc=tmp_path)
    outcomes, report = run(program, ptx, tmp_path, batch, [configuration(64, seed=5)])
    if SYMPTOMS[name]:
        assert outcomes is None
        assert SYMPTOMS[name] in report
    else:
        assert outcomes is None or any(differs(found[0], case) for case, found in zip(batch, outcomes, strict=True))
