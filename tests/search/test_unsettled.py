"""The search among what is still open."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.search.unsettled import topk_of_unsettled

SETTLED = np.array([[3, 5], [0, 1], [7, 9]])


@pytest.fixture
def sides():
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 16), dtype=np.float32), rng.standard_normal((50, 16), dtype=np.float32)


def same(one, other):
    return all(
        np.array_equal(np.asarray(a), np.asarray(b))
        for side in ("forward", "backward")
        for a, b in zip(getattr(one, side), getattr(other, side), strict=True)
    )


@pytest.mark.parametrize("csls", [0, 4])
def test_open_entities_find_what_a_search_without_the_settled_finds(sides, csls):
    opened = [np.delete(np.arange(len(side)), SETTLED[:, i]) for i, side in enumerate(sides)]
    among = sf.topk(sides[0][opened[0]], sides[1][opened[1]], 5, csls, beta=3.0)
    found = topk_of_unsettled(*sides, SETTLED, 5, csls, beta=3.0)
    assert np.array_equal(found.forward.indices[opened[0]], opened[1][among.forward.indices])
    assert np.array_equal(found.backward.indices[opened[1]], opened[0][among.backward.indices])
    assert np.array_equal(found.forward.scores[opened[0]], among.forward.scores)
    assert np.array_equal(found.log_partition[0][opened[0]], among.log_partition[0])
    assert np.array_equal(found.log_partition[1][opened[1]], among.log_partition[1])


@pytest.mark.parametrize("csls", [0, 4])
def test_a_settled_entity_has_its_partner_and_nobody_else(sides, csls):
    found = topk_of_unsettled(*sides, SETTLED, 5, csls, beta=3.0)
    for ranking, (own, other) in ((found.forward, (0, 1)), (found.backward, (1, 0))):
        assert np.array_equal(ranking.indices[SETTLED[:, own], 0], SETTLED[:, other])
        assert (ranking.indices[SETTLED[:, own], 1:] == -1).all()
    scores = found.score(*SETTLED.T)
    np.testing.assert_allclose(found.forward.scores[SETTLED[:, 0], 0], scores, rtol=1e-6)
    np.testing.assert_allclose(found.log_partition[1][SETTLED[:, 1]], 3.0 * scores)
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    cosines = (unit[0][SETTLED[:, 0]] * unit[1][SETTLED[:, 1]]).sum(1)
    if not csls:
        np.testing.assert_allclose(scores, cosines, rtol=1e-5)
    else:  # less the same for all: the mean of the means of the open ones, of both sides
        np.testing.assert_allclose(np.diff(scores - 2 * cosines), 0.0, atol=1e-6)


def test_scores_are_those_that_are_listed(sides):
    found = topk_of_unsettled(*sides, SETTLED, 5, 4)
    rows, places = np.nonzero(found.forward.indices >= 0)
    listed = found.forward.scores[rows, places]
    np.testing.assert_allclose(found.score(rows, found.forward.indices[rows, places]), listed, rtol=1e-5, atol=1e-6)


def test_where_nothing_is_settled_or_nobody_is_open_everything_is_searched(sides):
    whole = sf.topk(*sides, 5, 4, beta=3.0)
    assert same(topk_of_unsettled(*sides, SETTLED[:0], 5, 4, beta=3.0), whole)
    everybody = np.stack([np.arange(40), np.arange(40)], axis=1)
    assert same(topk_of_unsettled(*sides, everybody, 5, 4, beta=3.0), whole)


def test_fewer_open_entities_than_candidates(sides):
    settled = np.stack([np.arange(38), np.arange(38)], axis=1)
    found = topk_of_unsettled(*sides, settled, 5, 4)
    assert (found.backward.indices[38:, 2:] == -1).all()
    assert np.isin(found.backward.indices[38:, :2], [38, 39]).all()


def test_tensors_stay_tensors(sides):
    torch = pytest.importorskip("torch")
    found = topk_of_unsettled(*map(torch.from_numpy, sides), SETTLED, 5, 4, beta=3.0)
    expected = topk_of_unsettled(*sides, SETTLED, 5, 4, beta=3.0)
    assert all(torch.is_tensor(part) for part in (*found.forward, *found.backward, *found.log_partition))
    assert same(found, expected)


def test_later_rounds_of_two_views_search_what_is_open(monkeypatch):
    pair = sf.synthetic_pair(num_entities=300, seed=0)
    searched = []

    def noted(emb1, emb2, settled, *rest, **options):
        searched.append(settled)
        return topk_of_unsettled(emb1, emb2, settled, *rest, **options)

    monkeypatch.setattr("stea_fast.selftraining.searching.topk_of_unsettled", noted)
    result = sf.SelfTraining(pair, method=sf.Stea(two_views=True), rounds=2, progress=False).run()
    assert [len(settled) for settled in searched] == [len(pair.train) + done.num_pairs for done in result.history[:2]]
    searched.clear()
    sf.SelfTraining(pair, method=sf.Stea(), rounds=2, progress=False).run()
    assert searched == []
