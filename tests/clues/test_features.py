"""Vectors of somebody else's model: how they are scored, what they weigh beside names, and where they start a run."""

from __future__ import annotations

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.clues.features import feature_scores
from stea_fast.clues.fusion import ENOUGH_LINKS, fuse, implied_pairs

DIMENSIONS = 16


@pytest.fixture(scope="module")
def known():
    """Graphs of the same entities: source i is target 299 - i."""
    pair = sf.synthetic_pair(300, seed=2)
    order = np.arange(pair.kg1.num_entities)[::-1].copy()
    triples = pair.kg1.triples.astype(np.int64)
    turned = np.stack([order[triples[:, 0]], triples[:, 1], order[triples[:, 2]]], axis=1)
    links = np.stack([np.arange(len(order)), order], axis=1)
    return sf.make_pair(pair.kg1, sf.KG(turned, len(order), pair.kg1.num_relations), seeds=[], test=links), links


def vectors(links, noise, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((len(links), DIMENSIONS)).astype(np.float32)
    second = np.empty_like(first)
    second[links[:, 1]] = first[links[:, 0]] + noise * rng.standard_normal(first.shape)
    return first, second


def hit1(scores, links):
    best = scores.candidates(1).forward.indices[:, 0]
    return float((best[links[:, 0]] == links[:, 1]).mean())


def test_what_is_not_listed_is_no_nearer_than_what_is(known):
    _, links = known
    first, second = vectors(links, 1.0)
    shape = len(first), len(second)
    scores = feature_scores((first, second), shape, 10, 1)
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (first, second)]
    cosines = unit[0] @ unit[1].T
    floors = np.sort(cosines, axis=1)[:, -10], np.sort(cosines, axis=0)[-10]
    expected = np.maximum(cosines - (floors[0][:, None] + floors[1]) / 2, 0.0)
    listed = (cosines >= floors[0][:, None]) | (cosines >= floors[1])
    rows, columns = np.indices(shape)
    got = scores(rows.ravel(), columns.ravel()).reshape(shape)
    assert np.allclose(got, np.where(listed, expected, 0.0), atol=1e-6)
    assert (expected[~listed] == 0).all() and (got > 0).any()


def test_a_row_of_zeros_says_nothing(known):
    _, links = known
    first, second = vectors(links, 0.0)
    first[7], second[8] = 0.0, 0.0
    rows, columns = np.divmod(feature_scores((first, second), (300, 300), 10, 1).keys, 300)
    assert 7 not in rows and 8 not in columns and 6 in rows


@pytest.mark.parametrize(("change", "error", "message"), [
    (lambda a, b: (a[:-1], b), ValueError, r"features\[0\] must have a row for each of 300 entities, got shape \(299"),
    (lambda a, b: (a, b[:, 0]), ValueError, r"features\[1\] must have a row for each"),
    (lambda a, b: (a, b[:, :-1]), ValueError, "must be of one width, got 16 and 15"),
    (lambda a, b: (a[:, :0], b[:, :0]), ValueError, "must be of one width"),
    (lambda a, b: (a, np.where(np.arange(300)[:, None] == 5, np.nan, b)), ValueError, r"features\[1\]\[5\] holds NaN"),
    (lambda a, b: (a.astype(str), b), TypeError, r"features\[0\] must hold numbers"),
    (lambda a, b: a, TypeError, "features must be two matrices"),
    (lambda a, b: (a, b, b), TypeError, "features must be two matrices"),
])  # fmt: skip
def test_features_that_cannot_be_used_are_named(known, change, error, message):
    pair, links = known
    with pytest.raises(error, match=message):
        sf.find_clues(pair, features=change(*vectors(links, 0.0)))


def test_pairs_next_to_the_same_known_pairs_are_right(known):
    pair, links = known
    found = implied_pairs(pair.kg1, pair.kg2, links[:100])
    assert len(found) >= ENOUGH_LINKS and not np.isin(found[:, 0], links[:100, 0]).any()
    assert (links[found[:, 0], 1] == found[:, 1]).mean() > 0.95


@pytest.mark.parametrize("by", ["seeds", "anchors"])
@pytest.mark.parametrize("seed", range(8))
def test_a_view_weighs_what_it_knows_and_noise_nothing(known, by, seed):
    """The noise lists as many pairs with as large scores, some of them right by chance."""
    pair, links = known
    seeded = sf.make_pair(pair.kg1, pair.kg2, seeds=links[:100]) if by == "seeds" else pair
    anchors = links[:0] if by == "seeds" else links[:150]
    good = feature_scores(vectors(links, 0.7), (300, 300), 10, 1)
    noise = feature_scores((vectors(links, 0.0, seed)[0], vectors(links, 0.0, seed + 100)[1]), (300, 300), 10, 1)
    fused, weights = fuse({"good": good, "noise": noise}, seeded, anchors)
    assert weights.by_view["good"] > 1.0 and weights.by_view["noise"] == 0.0
    assert f"learned from {len(seeded.train) or ''}" in str(weights)
    assert hit1(fused, links) == hit1(good, links)


@pytest.mark.parametrize("seed", range(8))
def test_noise_alone_weighs_nothing_beside_seeds(known, seed):
    pair, links = known
    seeded = sf.make_pair(pair.kg1, pair.kg2, seeds=links[:100])
    noise = vectors(links, 0.0, seed)[0], vectors(links, 0.0, seed + 100)[1]
    clues = sf.find_clues(seeded, names=False, features=noise)
    assert clues.weights.by_view["features"] == 0.0 and len(clues.names.keys) == 0


def test_a_view_that_no_link_can_judge_keeps_the_usual_weight(known):
    pair, links = known
    seeded = sf.make_pair(pair.kg1, pair.kg2, seeds=links[:100])
    good = feature_scores(vectors(links, 0.7), (300, 300), 10, 1)
    _, weights = fuse({"good": good, "elsewhere": good.without(links[:100, 0], links[:100, 1])}, seeded, links[:0])
    assert weights.by_view["good"] > 1.0 and weights.by_view["elsewhere"] == pytest.approx(1.0)


def test_with_nothing_to_learn_from_views_weigh_the_same(known):
    pair, links = known
    scores = feature_scores(vectors(links, 0.7), (300, 300), 10, 1)
    fused, weights = fuse({"features": scores}, pair, links[:0])
    assert dict(weights.by_view) == {"features": 1.0} and "not learned" in str(weights)
    assert np.array_equal(fused.scores, scores.scores)


def test_weights_are_those_of_the_largest_likelihood(known):
    """Against a search over a grid, with the same prior."""
    pair, links = known
    seeded = sf.make_pair(pair.kg1, pair.kg2, seeds=links[:60])
    scores = feature_scores(vectors(links, 1.5), (300, 300), 10, 1)
    _, weights = fuse({"features": scores}, seeded, links[:0])
    dense = scores(*(part.ravel() for part in np.indices((300, 300)))).reshape(300, 300)

    def likelihood(beta):
        total = -((beta - 15) ** 2) / (2 * 60**2)
        for matrix, pairs in ((dense, links[:60]), (dense.T, links[:60, ::-1])):
            rows = beta * matrix[pairs[:, 0]]
            total += (rows[np.arange(60), pairs[:, 1]] - np.log(np.exp(rows).sum(axis=1))).sum()
        return total

    grid = 15 * np.linspace(0.02, 12, 600)
    assert 15 * weights.by_view["features"] == pytest.approx(grid[np.argmax([likelihood(b) for b in grid])], abs=0.5)


def test_features_alone_align_without_seeds_and_the_result_says_so(known):
    pair, links = known
    clues = sf.find_clues(pair, features=vectors(links, 1.0))
    alignment = sf.align(pair, clues=clues, rounds=1, calibration="none")
    assert sf.evaluate(alignment, pair.test, pool="all").hit1 > 0.95
    assert "features 1.00" in alignment.settings["clues"][-1]


def test_without_structure_names_and_features_decide_alone(known):
    pair, links = known
    scores = feature_scores(vectors(links, 1.0), (300, 300), 10, 1)
    clues = sf.find_clues(pair, features=vectors(links, 1.0))
    bare = pair.without_structure()
    told = []
    alignment = sf.align(bare, clues=clues, calibration="none", callbacks=[told.append])
    assert bare.kg1.num_triples == 0 and len(told) == len(alignment.result.history) == 1
    assert 0.9 > sf.evaluate(alignment, pair.test, pool="all").hit1 >= hit1(scores, links) > 0.5
    with pytest.raises(ValueError, match="kg1 has no triples"):
        sf.align(sf.make_pair(bare.kg1, bare.kg2, seeds=links[:20]))


def test_features_that_connect_nothing_are_nothing_to_start_from(known):
    pair, _ = known
    empty = np.zeros((300, 4)), np.zeros((300, 4))
    with pytest.raises(sf.NoStartError, match="nothing to start from"):
        sf.find_clues(pair, features=empty).check_start(pair.train)


def test_checkpoints_tell_features_apart(known):
    pair, links = known
    one, other = (sf.find_clues(pair, features=vectors(links, 1.0, seed)) for seed in (0, 1))
    assert one.fingerprint != other.fingerprint
