"""Names beside an encoder: what they add to scores, lists and partition sums."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.clues.name_scores import NameScores, with_names

SIZES = 12, 9


@pytest.fixture
def names():
    """About a third of all pairs are alike by name."""
    rng = np.random.default_rng(3)
    similar = np.where(rng.random(SIZES) < 0.3, rng.random(SIZES), 0.0).astype(np.float32)
    keys = np.flatnonzero(similar.ravel())
    return NameScores(keys, similar.ravel()[keys], SIZES)


def dense(names):
    out = np.zeros(SIZES[0] * SIZES[1])
    out[names.keys] = names.scores
    return out.reshape(SIZES)


@pytest.fixture
def found():
    rng = np.random.default_rng(4)
    sides = [rng.standard_normal((size, 6)).astype(np.float32) for size in SIZES]
    return sf.topk(*sides, k=3, csls=0, beta=5.0)


def all_scores(score):
    rows, columns = np.indices(SIZES)
    return np.asarray(score(rows.ravel(), columns.ravel())).reshape(SIZES)


def test_scores_of_pairs_that_are_not_alike_are_zero(names):
    assert np.allclose(all_scores(names), dense(names))


def test_rankings_of_both_directions_give_every_pair_once(names):
    again = NameScores.of_rankings(names.candidates(20).forward, names.candidates(20).backward)
    assert np.array_equal(again.keys, names.keys) and np.array_equal(again.scores, names.scores)


def test_the_nearest_by_name_come_first(names):
    candidates = names.candidates(4)
    for ranking, matrix in ((candidates.forward, dense(names)), (candidates.backward, dense(names).T)):
        for indices, scores, row in zip(ranking.indices, ranking.scores, matrix, strict=True):
            best = np.sort(row[row > 0])[::-1][:4]
            assert np.allclose(scores[indices >= 0], best)
            assert np.allclose(row[indices[indices >= 0]], best)


def test_entities_without_names_are_like_nobody(names):
    hidden = names.without(np.array([2, 5]), np.array([7]))
    kept = dense(names)
    kept[[2, 5]] = 0
    kept[:, 7] = 0
    assert np.allclose(dense(hidden), kept)


def test_an_encoder_with_names_ranks_by_the_sum_of_both(found, names):
    together = with_names(found, names, k=3)
    total = all_scores(found.score) + dense(names)
    assert np.allclose(all_scores(together.score), total)
    for ranking, matrix in ((together.forward, total), (together.backward, total.T)):
        for indices, scores, row in zip(ranking.indices, ranking.scores, matrix, strict=True):
            listed = indices[indices >= 0]
            assert len(set(listed.tolist())) == len(listed)
            assert np.allclose(scores[indices >= 0], row[listed], atol=1e-6)
            assert (np.diff(scores[indices >= 0]) <= 0).all()


def test_partition_sums_are_those_of_the_sum(found, names):
    together = with_names(found, names, k=2)
    total = 5.0 * (all_scores(found.score) + dense(names))
    assert np.allclose(together.log_partition[0], np.logaddexp.reduce(total, axis=1), atol=1e-4)
    assert np.allclose(together.log_partition[1], np.logaddexp.reduce(total, axis=0), atol=1e-4)
