"""FAISS with GPUs, of which there are none here: a stand-in that takes and refuses what FAISS does."""

from __future__ import annotations

import types

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.search import topk as topk_module

faiss = pytest.importorskip("faiss")
from stea_fast.search.engines import faiss_engine  # noqa: E402

N1, N2, WIDTH = 150, 170, 12


def stand_in(used: list[tuple[int, int]]) -> types.SimpleNamespace:
    """`faiss` as a build for two GPUs offers it."""

    def knn_gpu(res, xq, xb, k, *, metric=faiss.METRIC_L2, device=-1):
        assert isinstance(res, Resources) and 0 <= device < 2
        assert all(side.dtype == np.float32 and side.flags.c_contiguous for side in (xq, xb))
        if k > 2048:
            raise RuntimeError(f"GPU index only supports min/max-K selection up to 2048 (requested {k})")
        used.append((device, len(xq)))
        return faiss.knn(xq, xb, k, metric=metric)

    class Resources:
        pass

    return types.SimpleNamespace(
        get_num_gpus=lambda: 2, StandardGpuResources=Resources, knn_gpu=knn_gpu, knn=faiss.knn,
        METRIC_INNER_PRODUCT=faiss.METRIC_INNER_PRODUCT, METRIC_L2=faiss.METRIC_L2,
    )  # fmt: skip


@pytest.fixture
def used(monkeypatch):
    """The (GPU, number of queries) of every search on a GPU; every search is large enough for one."""
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(faiss_engine, "faiss", stand_in(calls))
    monkeypatch.setattr(topk_module, "LEAST_WORK_FOR_A_GPU", 0.0)
    return calls


@pytest.fixture
def embeddings():
    rng = np.random.default_rng(3)
    return rng.standard_normal((N1, WIDTH)), rng.standard_normal((N2, WIDTH))


def assert_same(found, wanted):
    for ours, theirs in ((found.forward, wanted.forward), (found.backward, wanted.backward)):
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-6)


def test_queries_are_shared_out_among_the_gpus_that_answer(used, embeddings):
    found = sf.topk(*embeddings, 5, 0)
    assert found.engine == "faiss"
    assert_same(found, sf.topk(*embeddings, 5, 0, engine="reference"))
    assert {device for device, _ in used} == {0, 1}
    assert sum(count for _, count in used) == N1 + N2


def test_csls_is_searched_on_the_gpus(used, embeddings):
    found = sf.topk(*embeddings, 5, 10)
    assert found.engine == "faiss" and sum(count for _, count in used) == 2 * (N1 + N2)
    assert_same(found, sf.topk(*embeddings, 5, 10, engine="reference"))


@pytest.mark.parametrize("request_", [{"k": 5, "beta": 12.0}, {"k": 2048}, {"k": 5, "csls": 2041}])
def test_faiss_is_not_chosen_for_what_its_gpus_cannot_do(used, embeddings, request_):
    found = sf.topk(*embeddings, **request_)
    assert found.engine != "faiss" and used == []
    assert_same(found, sf.topk(*embeddings, **request_, engine="numba"))


@pytest.mark.parametrize("csls", [0, 10])
def test_partition_sums_come_from_a_pass_of_our_own(used, embeddings, csls):
    found, wanted = (sf.topk(*embeddings, 5, csls, engine=engine, beta=12.0) for engine in ("faiss", "numba"))
    for ours, theirs in zip(found.log_partition, wanted.log_partition, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert_same(found, wanted)
    assert sum(count for _, count in used) == (2 if csls else 1) * (N1 + N2)


def test_more_neighbours_than_a_gpu_selects_are_searched_on_the_cpu(used):
    rng = np.random.default_rng(4)
    emb1, emb2 = rng.standard_normal((40, 4)), rng.standard_normal((2100, 4))
    found = sf.topk(emb1, emb2, 2060, 0, engine="faiss")
    np.testing.assert_array_equal(
        found.forward.indices, sf.topk(emb1, emb2, 2060, 0, engine="reference").forward.indices
    )
    assert {count for _, count in used} == {1050}  # of the other direction, which asks for 40 neighbours only


def test_the_default_run_works_beside_a_gpu_build_of_faiss(used):
    pair = sf.synthetic_pair(num_entities=120, seed=0)
    alignment = sf.align(pair, rounds=1, calibration="none")
    assert len(alignment.pairs) > 60
