"""Approximate search by cells, and partition sums from a sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast.search.engines import partitioned
from stea_fast.search.engines.partitioned import Best


def clustered(size, width=24, clusters=12, seed=0):
    """Two noisy copies of points around some centres: neighbours exist, as they do among embeddings."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, width))
    points = centres[rng.integers(clusters, size=size)] + 0.6 * rng.standard_normal((size, width))
    noisy = points + 0.1 * rng.standard_normal((size, width))
    return points.astype(np.float32), noisy.astype(np.float32)


@pytest.fixture(scope="module")
def sides():
    return clustered(3000)


@pytest.mark.parametrize("csls", [0, 5])
def test_most_of_the_true_neighbours_are_found_and_the_recall_says_how_many(sides, csls):
    exact, found = (sf.topk(*sides, 10, csls, engine=engine) for engine in ("auto", "partitioned"))
    assert found.engine == "partitioned" and exact.recall is None
    for true, cells, recall in zip(
        (exact.forward, exact.backward), (found.forward, found.backward), found.recall, strict=True
    ):
        shared = [len(np.intersect1d(a, b)) for a, b in zip(true.indices, cells.indices, strict=True)]
        assert np.sum(shared) / true.indices.size == pytest.approx(recall, abs=0.03)
        assert recall > 0.7


def test_scores_are_those_of_the_exact_search(sides):
    found = sf.topk(*sides, 5, 0, engine="partitioned")
    rows, columns = np.arange(len(sides[0])), found.forward.indices[:, 0]
    units = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    assert np.allclose(found.forward.scores[:, 0], (units[0][rows] * units[1][columns]).sum(1), atol=1e-5)
    assert (np.diff(found.forward.scores, axis=1) <= 0).all()


def test_no_candidate_is_listed_twice(sides):
    for ranking in (found := sf.topk(*sides, 10, 5, engine="partitioned")).forward, found.backward:
        ordered = np.sort(ranking.indices, axis=1)
        assert not ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any()


def test_the_result_does_not_depend_on_threads(sides):
    one, two = (sf.topk(*sides, 10, 5, engine="partitioned", beta=8.0, n_threads=n) for n in (1, 2))
    assert np.array_equal(one.forward.indices, two.forward.indices)
    assert np.array_equal(one.backward.scores, two.backward.scores)
    assert np.array_equal(one.log_partition[0], two.log_partition[0])


def test_one_cell_is_the_exact_search(sides, monkeypatch):
    monkeypatch.setattr(partitioned, "ROOTS_PER_CELL", 1e9)
    found, exact = (sf.topk(*sides, 10, 5, engine=engine) for engine in ("partitioned", "auto"))
    assert np.array_equal(found.forward.indices, exact.forward.indices) and found.recall == (1.0, 1.0)


def test_a_zero_vector_has_no_candidates():
    emb1, emb2 = clustered(400)
    emb1[7] = 0
    found = sf.topk(emb1, emb2, 5, 3, engine="partitioned", beta=2.0)
    assert (found.forward.indices[7] == -1).all() and not (found.backward.indices == 7).any()
    assert np.isfinite(found.log_partition[0]).all()


@pytest.mark.parametrize("engine", ["partitioned", "faiss-ivf"])
@pytest.mark.parametrize("beta", [1.0, 15.0])
def test_partition_sums_from_a_sample_are_near_the_true_ones(sides, engine, beta):
    if engine.startswith("faiss"):
        pytest.importorskip("faiss")
    exact, found = (sf.topk(*sides, 10, 5, engine=name, beta=beta) for name in ("auto", engine))
    for true, estimated in zip(exact.log_partition, found.log_partition, strict=True):
        error = np.abs(true - estimated)
        assert np.median(error) < 0.1 and error.mean() < 0.3


def test_other_metrics_are_refused(sides):
    with pytest.raises(ValueError, match="by cosine only, got metric='l2'"):
        sf.topk(*sides, 5, 0, "l2", engine="partitioned")


@settings(max_examples=60, deadline=None)
@given(
    offers=st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5)), max_size=6), max_size=5),
    keep=st.integers(1, 4),
)
def test_offered_candidates_are_kept_as_if_offered_at_once(offers, keep):
    best = Best(1, keep)
    scores = {}
    for offer in offers:
        distinct = {number: scores.setdefault(number, score) for number, score in offer}
        ordered = sorted(distinct, key=lambda number: -distinct[number])[:keep]
        padding = keep - len(ordered)
        indices = np.array([[*ordered, *[-1] * padding]])
        values = np.array([[*(float(distinct[n]) for n in ordered), *[-np.inf] * padding]])
        best.offer(np.array([0]), np.arange(10), indices, values)
    expected = sorted((score for score in _reachable(offers, scores, keep)), reverse=True)[:keep]
    kept = best.scores[0][best.indices[0] >= 0]
    assert kept.tolist() == expected and len(set(best.indices[0][best.indices[0] >= 0])) == len(kept)


def _reachable(offers, scores, keep):
    """The scores of the candidates that were among the best of some offer."""
    numbers = set()
    for offer in offers:
        distinct = dict.fromkeys(number for number, _ in offer)
        numbers |= set(sorted(distinct, key=lambda number: -scores[number])[:keep])
    return [float(scores[number]) for number in numbers]
