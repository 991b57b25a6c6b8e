"""What the benches of kernels time does run, and is what they say it is: on a small pair, without a clock."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from bench.kernels import contenders, memory
from bench.lib import inputs
from stea_fast.encoders import demo


@pytest.fixture(scope="module")
def case():
    pair = sf.synthetic_pair(num_entities=200, seed=0)
    return inputs.prepare(pair, demo.candidates(pair, inputs.K), "small", "encoder")


def test_a_case_starts_from_the_first_sweep_of_the_method_product(case):
    pair = case.pair

    def of_first_sweep(evidence):
        method = sf.Product(sweeps=1, evidence=evidence)
        return sf.refine(case.candidates, pair.kg1, pair.kg2, seeds=pair.train, method=method).relations.sub12

    by_beliefs = sf.align_relations(pair.kg1, pair.kg2, case.forward.beliefs, case.backward.beliefs).sub12
    assert case.k == inputs.K and by_beliefs.nnz > 0
    np.testing.assert_array_equal(by_beliefs.toarray(), of_first_sweep("soft").toarray())
    np.testing.assert_array_equal(case.relations.sub12.toarray(), of_first_sweep("mutual").toarray())


@pytest.mark.parametrize("backend", ["native", "numba"])
def test_every_contender_runs(case, backend):
    if not sf.backends()[backend].usable:
        pytest.skip(f"{backend} cannot run here")
    contenders.evidence(case, backend, 1)()
    contenders.table_and_evidence(case, backend, 1)()
    contenders.relation_alignment(case, backend, 1)()
    for method in ("joint", "product", "paper"):
        contenders.whole_refinement(case, method, backend=backend, n_threads=1)()


def test_every_tier_runs(case):
    core = pytest.importorskip("stea_fast._core", reason="the native kernels are not built")
    for tier in core.tiers():
        contenders.evidence_of_tier(case, tier, 1)()


def test_the_per_pair_way_agrees_with_the_kernels(case):
    per_pair = pytest.importorskip("bench.kernels.per_pair", reason="the per-pair way needs torch")
    sample = per_pair.timed_and_checked(case, True, np.arange(20))
    assert sample.compatibility.shape == (20, inputs.K) and sample.compatibility.max() > 0.1


def test_memory_is_that_of_the_method_that_recorded_figures_are_of(case, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "case", lambda name: case)
    memory._save_inputs("small", tmp_path)
    found = memory._refine_saved(tmp_path)
    expected = sf.refine(case.candidates, case.pair.kg1, case.pair.kg2, seeds=case.pair.train, method="product")
    assert found["sweeps"] == expected.sweeps and found["peak_mb"] >= found["before_mb"] > 0
