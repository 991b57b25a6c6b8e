"""The CUDA backend from `refine` down to the kernels, over host memory: the real bindings, linked with the harness."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from device_calls import as_tensors, refined_on_device
from harness_cases import star_case
from hypothesis import given, settings
from hypothesis import strategies as st
from test_parity import assert_close, problems

import stea_fast as sf
from stea_fast import _backends
from stea_fast._backends import reference
from stea_fast._backends.witnesses import WITNESSES
from stea_fast.encoders import demo
from stea_fast.refinement import selection

torch = pytest.importorskip("torch", reason="the CUDA backend holds its arrays in torch tensors")
pytestmark = pytest.mark.slow  # compiles the kernels and the bindings for the CPU


def test_the_backend_says_what_it_runs_on(cuda):
    assert _backends.status("cuda").usable
    assert _backends.status("cuda").detail == "CPU (sm_90) and 1 more; CUDA kernels compiled beforehand"


def test_a_device_that_the_kernels_are_not_compiled_for_is_not_offered(cuda, harness):
    harness.harness_capability(61)
    try:
        with pytest.raises(
            sf.BackendUnavailable, match=r"compute capability 7\.5 and later, but there is CPU \(6\.1\)"
        ):
            cuda.describe()
    finally:
        harness.harness_capability(90)


def test_without_a_device_it_says_why(cuda, harness):
    harness.harness_fail_call(b"cudaGetDeviceCount", 35, 1)
    with pytest.raises(sf.BackendUnavailable, match=r"built, but no CUDA device: .*cudaErrorInsufficientDriver"):
        cuda.describe()


@settings(max_examples=15)
@given(problem=problems(), forward=st.booleans(), witnesses=st.sampled_from(WITNESSES))
def test_the_backend_keeps_the_contract_of_the_reference(cuda, problem, forward, witnesses):
    kg1, kg2, candidates, beliefs, relations = problem
    rows = (0, kg1.num_entities)

    def results(module):
        given = (relations, kg1, kg2) if forward else (relations.swapped(), kg2, kg1)
        strengths = module.strengths(*given)
        inputs, common = (kg1, kg2, candidates, beliefs, strengths), {"forward": forward, "rows": rows}
        evidence, number = module.evidence_and_witnesses(*inputs, **common, witnesses=witnesses)
        assert np.array_equal(module.evidence(*inputs, **common, witnesses=witnesses), evidence)
        return evidence, np.zeros(0), module.relation_counts(kg1, kg2, beliefs, rows=rows), number

    assert_close(results(cuda), results(reference))


def test_blocks_of_rows_give_the_rows_of_the_whole(cuda):
    case = star_case(30, seed=0)
    strengths = cuda.strengths(case.relations, case.kg1, case.kg2)

    def part(begin, end):
        candidates = case.candidates[begin:end]
        given = (case.kg1, case.kg2, candidates, case.beliefs, strengths)
        return cuda.evidence(*given, forward=True, rows=(begin, end))

    n = case.kg1.num_entities
    assert np.array_equal(part(0, n), np.concatenate([part(0, 3), part(3, 3), part(3, n)]))
    whole = cuda.relation_counts(case.kg1, case.kg2, case.beliefs, rows=(0, n))
    halves = [cuda.relation_counts(case.kg1, case.kg2, case.beliefs, rows=rows) for rows in ((0, 1), (1, n))]
    assert np.array_equal(whole.den, halves[0].den + halves[1].den)


def test_a_small_table_of_counts_grows(cuda, monkeypatch):
    case = star_case(30, seed=0)
    rows = (0, case.kg1.num_entities)
    expected = cuda.relation_counts(case.kg1, case.kg2, case.beliefs, rows=rows)
    monkeypatch.setattr(cuda, "first_capacity", lambda num_edges: 2)
    found = cuda.relation_counts(case.kg1, case.kg2, case.beliefs, rows=rows)
    assert np.array_equal(found.keys, expected.keys) and np.array_equal(found.num, expected.num)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "product"},
        {"method": sf.Product(evidence="soft"), "select": "either", "threshold": 0.5},
        {"method": sf.Paper(sweeps=4), "select": "forward", "threshold": 0.3},
        {"method": sf.Product(normalisation="minmax", k=5), "select": "backward", "threshold": 0.2},
        {"method": "paper", "rows_per_block": 7},
    ],
)
def test_refining_on_a_device_gives_what_the_native_backend_gives(cuda, pair, options):
    candidates = demo.candidates(pair)
    arguments = {"seeds": pair.train, **options}
    wanted = sf.refine(candidates, pair.kg1, pair.kg2, backend="native", **arguments)
    found = sf.refine(as_tensors(candidates), pair.kg1, pair.kg2, backend="cuda", **arguments)
    assert isinstance(found.pairs, torch.Tensor) and found.forward.indices.dtype == torch.int64
    assert found.sweeps == wanted.sweeps
    for ours, theirs in zip(found.betas, wanted.betas, strict=True):
        assert ours == (theirs if theirs is None else pytest.approx(theirs, rel=1e-6))
    assert found.pairs.tolist() == wanted.pairs.tolist()
    np.testing.assert_allclose(found.pair_probs, wanted.pair_probs, rtol=1e-4)
    for ours, theirs in ((found.forward, wanted.forward), (found.backward, wanted.backward)):
        np.testing.assert_allclose(ours.probs, theirs.probs, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found.relations.sub12.toarray(), wanted.relations.sub12.toarray(), rtol=1e-5)
    if len(wanted.pairs):
        e, e2 = wanted.pairs[0].tolist()
        assert found.explain(e, e2).evidence == pytest.approx(wanted.explain(e, e2).evidence, rel=1e-4)


def test_arrays_come_back_as_arrays_and_one_direction_will_do(cuda, pair):
    ranking = demo.candidates(pair).forward
    arguments = {"seeds": pair.train[10:], "holdout": pair.train[:10], "method": "product"}
    found = sf.refine((ranking.indices, ranking.scores), pair.kg1, pair.kg2, backend="cuda", **arguments)
    wanted = sf.refine((ranking.indices, ranking.scores), pair.kg1, pair.kg2, backend="native", **arguments)
    assert isinstance(found.forward.probs, np.ndarray) and found.backward is None
    np.testing.assert_allclose(found.forward.probs, wanted.forward.probs, rtol=1e-3, atol=1e-6)
    again = sf.refine(
        (ranking.indices, ranking.scores), pair.kg1, pair.kg2, backend="cuda", relations=found.relations, **arguments
    )
    np.testing.assert_allclose(again.relations.sub21.toarray(), found.relations.sub21.toarray())


def test_partition_sums_are_used_on_the_device(cuda, pair):
    emb1, emb2 = (torch.tensor(emb) for emb in demo.encode(pair, dim=16))
    candidates = sf.topk(emb1, emb2, k=8, beta=12.0)
    wanted, found = (
        sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, method="product", backend=backend)
        for backend in ("native", "cuda")
    )
    np.testing.assert_allclose(found.forward.probs, wanted.forward.probs, rtol=1e-3, atol=1e-6)


def test_two_refinements_are_bit_identical_whatever_the_schedule(cuda, harness, pair):
    first = refined_on_device(pair, demo.candidates(pair)).forward
    harness.harness_schedule(99, 2)
    second = refined_on_device(pair, demo.candidates(pair)).forward
    harness.harness_schedule(0, 1)
    assert np.array_equal(first.probs, second.probs) and np.array_equal(first.evidence, second.evidence)


def test_nothing_is_copied_to_the_host_but_what_is_asked_for(cuda, pair, monkeypatch):
    candidates = as_tensors(demo.candidates(pair))

    def copied(tensor, *arguments, **options):
        raise AssertionError("a tensor was copied to the host")

    for method in ("cpu", "numpy", "__array__"):
        monkeypatch.setattr(torch.Tensor, method, copied)
    found = refined_on_device(pair, candidates)
    assert len(found.pairs) > 0
    with pytest.raises(AssertionError, match="copied"):
        _ = found.relations.sub12


def test_the_training_step_selects_the_same_pairs(cuda, pair):
    embeddings = [torch.tensor(emb) for emb in demo.encode(pair, dim=16)]
    on_device, on_host = (
        sf.Refiner(pair.kg1, pair.kg2, pair.train, refinement="product", backend=backend)(*embeddings)
        for backend in ("cuda", "native")
    )
    assert on_device.tolist() == on_host.tolist()


def test_an_executor_and_the_cuda_backend_exclude_each_other(cuda, pair):
    with pytest.raises(ValueError, match="an executor runs on CPUs"):
        sf.refine(demo.candidates(pair), pair.kg1, pair.kg2, backend="cuda", executor="processes")


def test_tensors_of_a_gpu_choose_the_backend(cuda, monkeypatch):
    there, here = (SimpleNamespace(device=SimpleNamespace(type=kind)) for kind in ("cuda", "cpu"))
    assert _backends.use_cuda([here, there], "auto")
    assert not _backends.use_cuda([here, np.zeros(1)], "auto")
    assert not _backends.use_cuda([there], "native")
    monkeypatch.setenv("STEA_BACKEND", "cuda")
    assert _backends.use_cuda([here], "auto")


def test_an_empty_side_has_no_partners(cuda):
    kernels, none = cuda.Kernels("cpu"), (torch.empty((0, 2), dtype=torch.int32), torch.empty((0, 2)))
    there = torch.full((3, 2), -1, dtype=torch.int32), torch.zeros((3, 2))
    partner, value = kernels.mutual_best(there, none)
    assert partner.tolist() == [-1, -1, -1] and value.tolist() == [0, 0, 0]
    assert [len(part) for part in kernels.mutual_best(none, there)] == [0, 0]


def test_mutual_best_is_that_of_the_selection(cuda):
    case = star_case(25, seed=5)
    kernels = cuda.Kernels("cpu")
    rankings = [tuple(map(torch.tensor, side)) for side in ((case.candidates, case.scores), case.back)]
    for dtype in (torch.float32, torch.float64):
        partner, value = kernels.mutual_best(*((ids, scores.to(dtype)) for ids, scores in rankings))
        pairs, values = selection.mutual_best((case.candidates, case.scores), case.back)
        chosen = partner >= 0
        assert torch.nonzero(chosen)[:, 0].tolist() == pairs[:, 0].tolist()
        assert partner[chosen].tolist() == pairs[:, 1].tolist()
        np.testing.assert_allclose(value[chosen], values, rtol=1e-6)
