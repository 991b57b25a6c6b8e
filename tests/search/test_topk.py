"""Top-K search: every engine equals a brute-force search in double precision, ties included."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast import _backends
from stea_fast._util.array_ops import ops_of
from stea_fast.refinement.temperature import log_sum_exp
from stea_fast.search import exact
from stea_fast.search.engines import cpu

EXACT = ["native", "numba", "torch", "faiss", "reference"]
METRICS = ["cosine", "ip", "l2"]
N1, N2, WIDTH = 230, 310, 24


def usable(engine):
    if engine in ("native", "numba") and not _backends.status(engine).usable:
        pytest.skip(f"{engine}: {_backends.status(engine).detail}")
    package = engine.split("-")[0]
    if package in ("torch", "faiss") and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return engine


def search(engine, emb1, emb2, *args, **options):
    if usable(engine) == "torch":
        import torch

        emb1, emb2 = torch.from_numpy(np.ascontiguousarray(emb1)), torch.from_numpy(np.ascontiguousarray(emb2))
    return sf.topk(emb1, emb2, *args, engine=engine, **options)


def similarities(emb1, emb2, metric):
    a, b = np.asarray(emb1, dtype=np.float64), np.asarray(emb2, dtype=np.float64)
    if metric == "l2":
        return -((a[:, None, :] - b[None]) ** 2).sum(axis=2)
    if metric == "ip":
        return a @ b.T
    norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    return np.divide(a @ b.T, norms, out=np.zeros_like(norms), where=norms > 0)


def scores_of(emb1, emb2, metric="cosine", csls=0):
    sims = similarities(emb1, emb2, metric)
    if csls == 0:
        return sims
    rows = -np.sort(-sims, axis=1)[:, :csls].mean(axis=1)
    columns = -np.sort(-sims, axis=0)[:csls].mean(axis=0)
    return 2 * sims - rows[:, None] - columns


def assert_exact(ranking, scores, k):
    """The indices are those of brute force, except where scores tie within 1e-6; the scores are right."""
    indices, found = np.asarray(ranking.indices), np.asarray(ranking.scores)
    scale = max(1.0, np.abs(scores).max())
    best = -np.sort(-scores, axis=1)[:, :k]
    assert indices.shape == found.shape == (len(scores), k)
    assert all(len(set(row)) == k for row in indices.tolist())
    np.testing.assert_allclose(np.take_along_axis(scores, indices.astype(np.int64), axis=1), best, atol=1e-6 * scale)
    np.testing.assert_allclose(found, best, atol=1e-6 * scale)


def vectors(kind, dtype=np.float32):
    rng = np.random.default_rng(3)
    if kind == "random":
        both = rng.standard_normal((N1, WIDTH)), rng.standard_normal((N2, WIDTH))
    elif kind == "clustered":
        centres = rng.standard_normal((4, WIDTH))
        both = tuple(centres[rng.integers(4, size=n)] + 1e-3 * rng.standard_normal((n, WIDTH)) for n in (N1, N2))
    elif kind == "duplicated":
        distinct = rng.standard_normal((20, WIDTH))
        both = tuple(distinct[rng.integers(20, size=n)] for n in (N1, N2))
    else:
        both = np.ones((N1, WIDTH)), np.ones((N2, WIDTH))
    return tuple(array.astype(dtype) for array in both)


@pytest.mark.parametrize("kind", ["random", "clustered", "duplicated", "equal"])
@pytest.mark.parametrize("csls", [0, 10])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("engine", EXACT)
def test_every_engine_equals_brute_force(engine, metric, csls, kind):
    emb1, emb2 = vectors(kind)
    found = search(engine, emb1, emb2, 10, csls, metric)
    scores = scores_of(emb1, emb2, metric, csls)
    assert_exact(found.forward, scores, 10)
    assert_exact(found.backward, scores.T, 10)
    assert found.engine == engine


@pytest.mark.parametrize("kind", ["clustered", "duplicated", "equal"])
@pytest.mark.parametrize("csls", [0, 5])
@pytest.mark.parametrize("engine", EXACT[:-1])
def test_ties_are_broken_alike_by_every_engine(engine, csls, kind):
    emb1, emb2 = vectors(kind)
    expected = search("reference", emb1, emb2, 7, csls)
    found = search(engine, emb1, emb2, 7, csls)
    for side in ("forward", "backward"):
        np.testing.assert_array_equal(getattr(found, side).indices, getattr(expected, side).indices)
        np.testing.assert_array_equal(getattr(found, side).scores, getattr(expected, side).scores)


@pytest.mark.parametrize("engine", EXACT)
def test_of_equal_scores_the_lower_index_comes_first(engine):
    found = search(engine, *vectors("equal"), 4, 0)
    np.testing.assert_array_equal(found.forward.indices, np.tile(np.arange(4), (N1, 1)))
    np.testing.assert_array_equal(found.forward.scores, np.ones((N1, 4)))


@pytest.mark.parametrize("engine", ["native", "numba"])
@pytest.mark.parametrize("keep_many", [False, True])
def test_results_do_not_depend_on_blocks_or_threads(engine, keep_many, monkeypatch):
    emb1, emb2 = vectors("random")
    k = 90 if keep_many else 5  # many are kept in another way than few
    expected = search(engine, emb1, emb2, k, 3, beta=4.0)
    monkeypatch.setattr(cpu, "BLOCK_ROWS", 37)
    monkeypatch.setattr(cpu, "BLOCK_COLUMNS", 41)
    for n_threads in (1, 2, 5):
        found = search(engine, emb1, emb2, k, 3, beta=4.0, n_threads=n_threads)
        np.testing.assert_array_equal(found.forward.indices, expected.forward.indices)
        np.testing.assert_array_equal(found.backward.scores, expected.backward.scores)
        for sums, others in zip(found.log_partition, expected.log_partition, strict=True):
            np.testing.assert_allclose(sums, others, atol=1e-5)


@pytest.mark.parametrize("tier", ["baseline", "avx2"])
def test_tiers_give_the_same_bits(tier):
    usable("native")
    from stea_fast import _core

    if tier not in _core.tiers():
        pytest.skip(f"this CPU does not run tier {tier}")
    code = (
        "import numpy as np, stea_fast as sf; r = np.random.default_rng(0);"
        "o = sf.topk(r.standard_normal((70, 9)), r.standard_normal((83, 9)), 5, 4, beta=6.0, engine='native');"
        "print(o.forward.indices.tolist(), o.backward.scores.tolist(), [x.tolist() for x in o.log_partition])"
    )
    runs = {
        name: subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "STEA_TIER": name},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in ("baseline", tier)
    }
    assert runs["baseline"] == runs[tier]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("engine", EXACT)
def test_any_number_type(engine, dtype):
    rng = np.random.default_rng(0)
    emb1, emb2 = ((10 * rng.standard_normal((n, 6))).astype(dtype) for n in (40, 31))
    found = search(engine, emb1, emb2, 3, 0, "l2")
    assert_exact(found.forward, scores_of(emb1, emb2, "l2"), 3)


@pytest.mark.parametrize("engine", EXACT)
def test_double_precision_decides_where_single_precision_cannot(engine):
    rng = np.random.default_rng(0)
    query = rng.standard_normal((1, 50))
    keys = query + 1e-7 * rng.standard_normal((200, 50))  # their cosines differ from the seventh digit on
    found = search(engine, np.concatenate([query, keys[:1]]), keys, 5, 0)
    exact = -np.sort(-similarities(query, keys, "cosine"))[0, :5]
    chosen = similarities(query, keys, "cosine")[0, np.asarray(found.forward.indices[0])]
    np.testing.assert_allclose(chosen, exact, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("engine", EXACT)
def test_cosine_of_tiny_and_huge_vectors(engine, scale):
    emb1, emb2 = vectors("random", np.float64)
    lengths = np.where(np.arange(N1) % 2, scale, 1.0)[:, None]
    found = search(engine, emb1 * lengths, emb2, 6, 4)
    assert_exact(found.forward, scores_of(emb1, emb2, csls=4), 6)


@pytest.mark.parametrize("engine", EXACT)
def test_a_zero_vector_is_like_nothing(engine):
    emb1, emb2 = vectors("random")
    emb1[3] = 0.0
    found = search(engine, emb1, emb2, 4, 0)
    np.testing.assert_array_equal(found.forward.scores[3], np.zeros(4))
    np.testing.assert_array_equal(found.forward.indices[3], np.arange(4))


@pytest.mark.parametrize("engine", EXACT)
def test_more_candidates_than_targets_leaves_gaps(engine):
    emb1, emb2 = vectors("random")
    found = search(engine, emb1, emb2[:3], 5, 4)  # and CSLS takes the mean of all there are
    indices, scores = np.asarray(found.forward.indices), np.asarray(found.forward.scores)
    np.testing.assert_array_equal(indices[:, 3:], -np.ones((N1, 2)))
    assert np.all(np.isneginf(scores[:, 3:]))
    assert_exact(sf.Ranking(indices[:, :3], scores[:, :3]), scores_of(emb1, emb2[:3], csls=4), 3)
    assert found.backward.indices.shape == (3, 5)


@pytest.mark.parametrize("block_bytes", [1 << 9, 1 << 12])
@pytest.mark.parametrize("csls", [0, 8])
@pytest.mark.parametrize("engine", ["native", "torch", "reference"])
def test_rows_that_single_precision_cannot_settle_do_not_depend_on_blocks(engine, csls, block_bytes, monkeypatch):
    kinds = np.random.default_rng(4).integers(-1, 2, size=(9, 4)).astype(np.float32)
    emb1, emb2 = kinds[np.arange(70) % 9], kinds[np.arange(200) * 7 % 9]  # every entity has many that look like it
    monkeypatch.setattr(exact, "BLOCK_BYTES", block_bytes)
    found = search(engine, emb1, emb2, 6, csls, "ip")
    scores = np.round(scores_of(emb1, emb2, "ip", csls), 9)
    for side, expected in ((found.forward, scores), (found.backward, scores.T)):
        order = np.argsort(-expected, axis=1, kind="stable")[:, :6]
        np.testing.assert_array_equal(np.asarray(side.indices), order)
        np.testing.assert_allclose(np.asarray(side.scores), np.take_along_axis(expected, order, axis=1), atol=1e-6)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_equal_rows_are_of_one_kind(library):
    values = np.array([[1, 2], [0, 2], [1, 2], [0, 0], [0, 2]], dtype=np.float32)
    if library == "torch":
        torch = pytest.importorskip("torch")
        values = torch.from_numpy(values)
    first, kind = (np.asarray(found) for found in ops_of(values).distinct(values))
    assert len(first) == 3 and kind[0] == kind[2] and kind[1] == kind[4] and len(set(kind.tolist())) == 3
    np.testing.assert_array_equal(np.asarray(values)[first[kind]], np.asarray(values))


@given(
    n1=st.integers(1, 40), n2=st.integers(1, 40), width=st.integers(1, 9), k=st.integers(1, 12),
    csls=st.integers(0, 12),
    metric=st.sampled_from(METRICS), levels=st.integers(1, 3), seed=st.integers(0, 1000),
)  # fmt: skip
def test_engines_agree_on_small_whole_numbers(n1, n2, width, k, csls, metric, levels, seed):
    """Whole numbers make ties everywhere."""
    rng = np.random.default_rng(seed)
    emb1, emb2 = (rng.integers(-levels, levels + 1, size=(n, width)).astype(np.float32) for n in (n1, n2))
    expected = sf.topk(emb1, emb2, k, csls, metric, engine="reference")
    found = sf.topk(emb1, emb2, k, csls, metric)
    for side in ("forward", "backward"):
        np.testing.assert_array_equal(getattr(found, side).indices, getattr(expected, side).indices)


@pytest.mark.parametrize("csls", [0, 10])
@pytest.mark.parametrize("beta", [0.0, 3.0, 500.0])
@pytest.mark.parametrize("engine", ["native", "numba", "torch"])
def test_partition_sums_come_from_the_same_pass(engine, beta, csls):
    emb1, emb2 = vectors("random")
    found = search(engine, emb1, emb2, 5, csls, beta=beta)
    scores = beta * scores_of(emb1, emb2, csls=csls)
    np.testing.assert_allclose(found.log_partition[0], log_sum_exp(scores), atol=1e-4, rtol=1e-5)
    np.testing.assert_allclose(found.log_partition[1], log_sum_exp(scores.T), atol=1e-4, rtol=1e-5)
    assert found.beta == beta


@pytest.mark.parametrize("engine", ["native", "numba"])
def test_partition_sums_of_columns_whose_nearest_come_late(engine):
    """The first block of rows is far from half of the columns: nothing of it is above their floor."""
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(8)[:2], 1300, axis=0)
    emb1, emb2 = centres + 0.1 * rng.standard_normal((2, *centres.shape))
    found = search(engine, emb1, emb2, 5, 5, beta=10.0)
    scores = 10.0 * scores_of(emb1, emb2, csls=5)
    np.testing.assert_allclose(found.log_partition[0], log_sum_exp(scores), atol=1e-4, rtol=1e-5)
    np.testing.assert_allclose(found.log_partition[1], log_sum_exp(scores.T), atol=1e-4, rtol=1e-5)


def test_refine_takes_the_result_with_its_partition_sums():
    from stea_fast.encoders import demo

    pair = sf.synthetic_pair(300, seed=1)
    cand = sf.topk(*demo.encode(pair), beta=8.0)
    with_sums = sf.TopK(cand.forward, cand.backward, log_partition=cand.log_partition, beta=8.0)
    out, given, without = (
        sf.refine(found, pair.kg1, pair.kg2, seeds=pair.train, method=sf.Product(beta=beta))
        for found, beta in ((cand, None), (with_sums, 8.0), (sf.Candidates(cand.forward, cand.backward), 8.0))
    )
    np.testing.assert_array_equal(out.forward.probs, given.forward.probs)
    assert without.forward.probs.sum(axis=1).min() > 0.999
    assert out.betas == (8.0, 8.0)
    assert out.forward.probs.sum(axis=1).min() < 0.999  # some of the mass lies on other targets
    pairs, _ = sf.mutual_nearest(cand)
    assert len(pairs) > 50


def test_tensors_come_back_as_tensors():
    torch = pytest.importorskip("torch")
    emb1, emb2 = (torch.from_numpy(array) for array in vectors("random"))
    for engine in ("auto", "torch"):
        found = sf.topk(emb1.requires_grad_(), emb2.half(), 5, engine=engine, beta=2.0)
        assert found.forward.indices.dtype == torch.int64 and found.forward.scores.dtype == torch.float32
        assert isinstance(found.log_partition[0], torch.Tensor)
        assert_exact(found.forward, scores_of(emb1.detach().numpy(), emb2.half().numpy(), csls=10), 5)


@pytest.mark.parametrize("engine", ["faiss-ivf", "faiss-hnsw"])
def test_approximate_search_reports_its_recall(engine):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((50, 16))
    emb1, emb2 = (centres[rng.integers(50, size=n)] + 0.3 * rng.standard_normal((n, 16)) for n in (1500, 2000))
    found = search(engine, emb1, emb2, 10, 5)
    exact = sf.topk(emb1, emb2, 10, 5)
    overlap = np.mean(
        [len(set(a) & set(b)) / 10 for a, b in zip(found.forward.indices, exact.forward.indices, strict=True)]
    )
    assert found.recall is not None and exact.recall is None
    assert found.recall[0] == pytest.approx(overlap, abs=0.05)
    assert overlap > 0.5
