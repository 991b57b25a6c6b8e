"""Decoding: from rankings to links, by hand and against dense oracles."""

from __future__ import annotations

import sys
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import stea_fast as sf
from stea_fast.alignment.decoding import METHODS, Links, decode, sinkhorn
from stea_fast.encoders import demo
from stea_fast.types import Candidates, Ranking


def ranking(rows: list[list[tuple[int, float]]]) -> Ranking:
    indices = np.array([[target for target, _ in row] for row in rows], dtype=np.int32)
    return Ranking(indices, np.array([[score for _, score in row] for row in rows], dtype=np.float32))


def as_dict(links: Links) -> dict[tuple[int, int], float]:
    assert links.pairs.shape == (len(links.scores), 2)
    scores = [pytest.approx(float(score), abs=1e-6) for score in links.scores]
    return dict(zip(map(tuple, links.pairs.tolist()), scores, strict=True))


def top(scores: np.ndarray, k: int) -> Ranking:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(scores, order, axis=1)
    return Ranking(np.where(values > -9, order, -1).astype(np.int32), values.astype(np.float32))


def dense(candidates: Candidates, num_targets: int) -> np.ndarray:
    """Scores of all pairs that either direction lists, -inf elsewhere."""
    scores = np.full((len(candidates.forward.indices), num_targets), -np.inf)
    for matrix, side in ((scores, candidates.forward), (scores.T, candidates.backward)):
        for row, (ids, values) in enumerate(zip(*side, strict=True) if side else ()):
            for column, value in zip(ids, values, strict=True):
                if column >= 0:
                    matrix[row, column] = max(matrix[row, column], value)
    return scores


@st.composite
def rankings(draw: st.DrawFn, *, both: bool | None = None) -> tuple[Candidates, int]:
    """Candidates with ties, negative scores, holes and empty rows, and the number of targets."""
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    scores = np.round(random.uniform(-1, 1, (n, m)), draw(st.sampled_from([1, 6])))
    scores[random.random((n, m)) < draw(st.sampled_from([0.0, 0.4]))] = -10.0
    both = draw(st.booleans()) if both is None else both
    backward = top(scores.T, draw(st.integers(1, n))) if both else None
    return Candidates(top(scores, draw(st.integers(1, m))), backward), m


# 0 and 0 choose each other; 1 and 2 both choose target 1, which chooses 2; source 3 has no candidate.
BOTH = Candidates(
    ranking([[(0, 0.9), (1, 0.1)], [(1, 0.6), (2, 0.4)], [(1, 0.5), (0, 0.2)], [(-1, 0.0), (-1, 0.0)]]),
    ranking([[(0, 0.8), (2, 0.3)], [(2, 0.7), (1, 0.2)], [(1, 0.7), (0, 0.1)]]),
)
FORWARD = Candidates(BOTH.forward)


def test_greedy_gives_every_source_its_best_candidate():
    links = decode(BOTH)
    assert as_dict(links) == {(0, 0): 0.9, (1, 1): 0.6, (2, 1): 0.5}
    assert links.unmatched.tolist() == [3]
    assert (links.pairs.dtype, links.scores.dtype, links.unmatched.dtype) == (np.int64, np.float32, np.int64)


def test_mutual_gives_pairs_that_are_each_others_best():
    links = decode(BOTH, "mutual")
    assert as_dict(links) == {(0, 0): 0.9, (2, 1): 0.5}
    assert links.unmatched.tolist() == [1, 3]


def test_one_to_one_uses_the_candidates_of_both_directions_with_the_larger_score():
    # By the targets' lists (1, 2) has 0.7; by the sources' lists alone it has 0.4, still better than leaving 1 alone.
    assert as_dict(decode(BOTH, "one_to_one")) == {(0, 0): 0.9, (1, 2): 0.7, (2, 1): 0.7}
    assert as_dict(decode(FORWARD, "one_to_one")) == {(0, 0): 0.9, (1, 2): 0.4, (2, 1): 0.5}


def test_one_to_one_prefers_the_largest_sum_to_the_largest_pair():
    found = Candidates(ranking([[(0, 0.9), (1, 0.8)], [(0, 0.8), (1, 0.1)]]))
    assert as_dict(decode(found, "one_to_one")) == {(0, 1): 0.8, (1, 0): 0.8}


def test_one_to_one_links_sources_whose_scores_are_all_negative():
    distances = Candidates(ranking([[(0, -1.0), (1, -3.0)], [(0, -1.5), (1, -9.0)]]))
    assert as_dict(decode(distances, "one_to_one")) == {(0, 1): -3.0, (1, 0): -1.5}
    assert as_dict(decode(Candidates(ranking([[(0, 0.0)]])), "one_to_one")) == {(0, 0): 0.0}


def test_one_to_one_leaves_the_weaker_of_two_sources_of_one_target_alone():
    links = decode(Candidates(ranking([[(0, 0.8)], [(0, 0.9)]])), "one_to_one")
    assert (as_dict(links), links.unmatched.tolist()) == ({(1, 0): 0.9}, [0])


def test_sinkhorn_resolves_what_greedy_gives_twice():
    # Both sources like target 0 best; source 1 has hardly another choice, source 0 has.
    found = Candidates(
        ranking([[(0, 0.80), (1, 0.79)], [(0, 0.80), (1, 0.20)]]),
        ranking([[(0, 0.80), (1, 0.80)], [(0, 0.79), (1, 0.20)]]),
    )
    assert decode(found).pairs.tolist() == [[0, 0], [1, 0]]
    links = decode(found, "sinkhorn")
    assert links.pairs.tolist() == [[0, 1], [1, 0]]
    assert ((links.scores > 0.9) & (links.scores <= 1)).all()


def test_one_round_of_sinkhorn_by_hand():
    found = Candidates(ranking([[(0, 1.0), (1, 0.0)], [(0, 0.0), (-1, 0.0)]]))
    e = np.e
    again = sinkhorn(found, temperature=1.0, iterations=1)
    row = np.array([e, 1]) / (e + 1)  # the first source's x after its row was normalised; the second's is 1
    assert again.forward.indices.tolist() == [[1, 0], [0, -1]]
    np.testing.assert_allclose(again.forward.scores, [[1.0, row[0] / (row[0] + 1)], [1 / (row[0] + 1), 0]], rtol=1e-6)
    assert again.backward is None


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("greedy", [[0, 0], [1, 1]]),
        ("mutual", [[0, 0]]),
        ("one_to_one", [[0, 0], [1, 2], [2, 1]]),  # (2, 1) has 0.5 forward, but 0.7 backward
        ("sinkhorn", [[0, 0], [1, 2], [2, 1]]),
    ],
)
def test_sources_with_no_score_above_the_threshold_abstain(how, expected):
    links = decode(BOTH, how, threshold=0.55)
    assert links.pairs.tolist() == expected
    assert links.unmatched.tolist() == sorted(set(range(4)) - {source for source, _ in expected})
    none = decode(BOTH, how, threshold=0.9)  # must be exceeded
    assert (none.pairs.shape, none.scores.shape, none.unmatched.tolist()) == ((0, 2), (0,), [0, 1, 2, 3])


def test_the_threshold_of_mutual_is_asked_of_both_directions():
    assert as_dict(decode(BOTH, "mutual", threshold=0.79)) == {(0, 0): 0.9}
    assert as_dict(decode(BOTH, "mutual", threshold=0.85)) == {}


def test_a_candidate_below_the_threshold_cannot_take_a_target_away():
    found = Candidates(ranking([[(0, 0.9), (1, 0.8)], [(0, 0.4), (1, -1.0)]]))
    assert as_dict(decode(found, "one_to_one")) == {(0, 1): 0.8, (1, 0): 0.4}
    assert as_dict(decode(found, "one_to_one", threshold=0.5)) == {(0, 0): 0.9}


def test_the_x_of_sinkhorn_has_a_threshold_of_its_own():
    x = sinkhorn(BOTH)
    likely, links = decode(x, threshold=0.999), decode(x)
    assert 0 < len(likely.pairs) < len(links.pairs)
    assert likely.pairs.tolist() == links.pairs[links.scores > 0.999].tolist()


@pytest.mark.parametrize("how", METHODS)
def test_entities_of_seeds_take_no_part(how):
    links = decode(BOTH, how, seeds=[[0, 1]])
    assert 0 not in links.pairs[:, 0] and 1 not in links.pairs[:, 1]
    assert 0 not in links.unmatched
    assert [1, 2] in links.pairs.tolist()  # with target 1 gone, each other's best


def test_a_seed_may_have_a_target_that_nobody_lists():
    assert as_dict(decode(FORWARD, seeds=[[0, 77]])) == {(1, 1): 0.6, (2, 1): 0.5}


def test_entities_of_seeds_get_empty_rows_from_sinkhorn():
    x = sinkhorn(BOTH, seeds=[[0, 1]])
    assert x.forward.indices[0].tolist() == [-1, -1] and x.backward.indices[1].tolist() == [-1, -1]
    assert not (x.forward.indices == 1).any() and not (x.backward.indices == 0).any()


@pytest.mark.parametrize("how", ["greedy", "mutual", "sinkhorn"])
def test_ties_go_to_the_lower_target_wherever_it_is_listed(how):
    equal = ranking([[(2, 0.5), (0, 0.5), (1, 0.5)]])
    links = decode(Candidates(equal, ranking([[(0, 0.5)], [(0, 0.5)], [(0, 0.5)]])), how)
    assert links.pairs.tolist() == [[0, 0]]


@pytest.mark.parametrize("how", METHODS)
def test_nothing_listed_at_all_gives_no_link(how):
    empty = ranking([[(-1, 0.0)], [(-1, 0.0)]])
    links = decode(Candidates(empty, empty), how)
    assert (links.pairs.shape, links.unmatched.tolist()) == ((0, 2), [0, 1])
    assert (sinkhorn(Candidates(empty, empty)).backward.indices == -1).all()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e5, 1e30])
def test_sinkhorn_survives_scores_of_any_size(scale):
    scores = np.random.default_rng(0).uniform(-1, 1, (6, 6)) * scale
    order = np.argsort(-scores, axis=1)
    found = Candidates(Ranking(order, np.take_along_axis(scores, order, axis=1)))
    with np.errstate(all="raise", under="ignore"):
        again = sinkhorn(found, iterations=40)
    assert np.isfinite(again.forward.scores).all() and (again.forward.scores[:, 0] > 0).all()


@given(rankings(), st.sampled_from([None, 0.0, 0.3]))
def test_a_matching_is_one_to_one_with_the_largest_sum(drawn, threshold):
    found, num_targets = drawn
    links = decode(found, "one_to_one", threshold=threshold)
    scores = dense(found, num_targets)
    scores[scores <= np.float32(-np.inf if threshold is None else threshold)] = -np.inf
    usable = np.isfinite(scores)
    assert len(set(links.pairs[:, 0])) == len(set(links.pairs[:, 1])) == len(links.pairs)
    np.testing.assert_allclose(links.scores, scores[links.pairs[:, 0], links.pairs[:, 1]], rtol=1e-6)
    raised = np.where(usable, scores - min(0.0, scores[usable].min(initial=0.0)), 0.0)
    best = raised[linear_sum_assignment(raised, maximize=True)].sum()
    assert raised[links.pairs[:, 0], links.pairs[:, 1]].sum() == pytest.approx(best, abs=1e-5)


@given(rankings(), st.sampled_from([0.02, 0.3]), st.integers(1, 20))
def test_sinkhorn_is_the_dense_one_on_the_listed_pairs(drawn, temperature, iterations):
    found, num_targets = drawn
    scores = dense(found, num_targets)
    x = np.exp((scores - scores.max()) / temperature) if np.isfinite(scores).any() else np.zeros_like(scores)
    for _ in range(iterations):
        for axis in (1, 0):
            sums = x.sum(axis=axis, keepdims=True)
            x = np.divide(x, sums, out=np.zeros_like(x), where=sums > 0)
    again = sinkhorn(found, temperature=temperature, iterations=iterations)
    for matrix, side in ((x, again.forward), (x.T, again.backward)):
        for row, (ids, values) in enumerate(zip(*side, strict=True) if side else ()):
            listed = ids[ids >= 0]
            assert len(set(listed)) == len(listed)
            np.testing.assert_allclose(values[ids >= 0], matrix[row, listed], rtol=1e-4, atol=1e-7)
            best_first = np.sort(matrix[row])[::-1][: len(ids)]
            np.testing.assert_allclose(values, best_first, rtol=1e-4, atol=1e-7)


def test_rows_of_very_different_lengths_are_ranked_best_first():
    random = np.random.default_rng(0)
    scores = random.random((600, 40))
    scores[random.random((600, 40)) < random.random((600, 1))] = -10.0
    found = Candidates(top(scores, 20), top(scores.T, 200))
    again = sinkhorn(found)
    assert (np.diff(again.forward.scores, axis=1) <= 0).all() and (np.diff(again.backward.scores, axis=1) <= 0).all()
    np.testing.assert_array_equal(decode(again).pairs, decode(found, "sinkhorn").pairs)
    np.testing.assert_array_equal(again.forward.indices >= 0, again.forward.scores > 0)


def test_when_scaling_factors_are_multiplied_in_does_not_matter(monkeypatch):
    scores = np.random.default_rng(1).uniform(-1, 1, (7, 5))
    found = Candidates(top(scores, 4), top(scores.T, 3))
    expected = sinkhorn(found)
    monkeypatch.setattr(sys.modules[decode.__module__], "_LARGE", 1.5)
    np.testing.assert_allclose(sinkhorn(found).forward.scores, expected.forward.scores, rtol=1e-5, atol=1e-30)


@given(st.integers(2, 7), st.integers(0, 1000))
def test_rows_and_columns_sum_to_one_where_everything_is_listed(n, seed):
    scores = np.random.default_rng(seed).uniform(-1, 1, (n, n))
    again = sinkhorn(Candidates(top(scores, n), top(scores.T, n)), temperature=1.0, iterations=30)
    np.testing.assert_allclose(again.forward.scores.sum(axis=1), 1.0, atol=1e-3)
    np.testing.assert_allclose(again.backward.scores.sum(axis=1), 1.0, atol=1e-5)


@given(rankings())
def test_the_links_of_sinkhorn_are_the_best_of_its_ranking(drawn):
    found, _ = drawn
    links, again = decode(found, "sinkhorn"), decode(sinkhorn(found))
    np.testing.assert_array_equal(links.pairs, again.pairs)
    np.testing.assert_array_equal(links.scores, again.scores)


@given(rankings(both=True), st.sampled_from(METHODS))
def test_every_source_is_linked_unmatched_or_a_seed(drawn, how):
    found, _ = drawn
    links = decode(found, how, threshold=-0.5, seeds=[[0, 0]])
    sources = links.pairs[:, 0].tolist()
    assert sources == sorted(sources)
    assert sorted(sources + links.unmatched.tolist() + [0]) == list(range(len(found.forward.indices)))


def test_links_and_sinkhorn_can_be_evaluated():
    pair = sf.synthetic_pair(80, 0, num_relations=5)
    found = demo.candidates(pair, 5)
    links = decode(found, "one_to_one", seeds=pair.train)
    judged = sf.evaluate(links, pair.test)
    assert 0 < judged.f1 <= 1 and np.isnan(judged.hit1)
    assert 0 < sf.evaluate(sinkhorn(found, seeds=pair.train), pair.test).hit1 <= 1
    with pytest.raises(FrozenInstanceError):
        links.pairs = None


@pytest.mark.parametrize("how", METHODS)
def test_tensors_give_tensors(how):
    torch = pytest.importorskip("torch")
    tensors = Candidates(*(Ranking(*map(torch.tensor, side)) for side in (BOTH.forward, BOTH.backward)))
    expected, found = decode(BOTH, how), decode(tensors, how)
    for name in ("pairs", "scores", "unmatched"):
        assert isinstance(getattr(found, name), torch.Tensor)
        np.testing.assert_array_equal(getattr(found, name).numpy(), getattr(expected, name))
    assert isinstance(sinkhorn(tensors).backward.scores, torch.Tensor)


@pytest.mark.parametrize(
    ("result", "options", "error", "message"),
    [
        (BOTH, {"how": "best"}, ValueError, "how must be one of 'greedy', 'mutual'.*got 'best'"),
        (FORWARD, {"how": "mutual"}, ValueError, "how='mutual' needs candidates in both directions"),
        (BOTH, {"threshold": "high"}, TypeError, "threshold must be a number, got str"),
        (BOTH, {"threshold": np.nan}, ValueError, "threshold must be a finite number"),
        (BOTH, {"temperature": 0.0}, ValueError, "temperature must be a finite number between 1e-06"),
        (BOTH, {"iterations": 0}, ValueError, "iterations must be between 1"),
        (BOTH, {"iterations": 2.5}, TypeError, "iterations must be an integer, got float"),
        (BOTH, {"seeds": [[0, 3]]}, ValueError, r"seeds\[:, 1\] holds 3, but there are only 3 target entities"),
        (BOTH, {"seeds": [[4, 0]]}, ValueError, r"seeds\[:, 0\] holds 4"),
        (BOTH, {"seeds": [[0, 0], [0, 1]]}, ValueError, "seeds links source entity 0 2 times"),
        (BOTH.forward, {}, TypeError, "result must be .* with a .forward, got Ranking"),
        (SimpleNamespace(forward=None), {}, TypeError, "result must be .* with a .forward"),
        (Candidates(ranking([[(0, np.nan)]])), {}, ValueError, r"forward.scores\[0, 0\] is nan"),
        (Candidates(ranking([[(1, 0.5)]]), ranking([[(0, 0.5)]])), {}, ValueError, "forward.indices holds 1"),
        (Candidates(ranking([[(0, 0.5)]]), ranking([[(1, 0.5)]])), {}, ValueError, "backward.indices holds 1"),
    ],
)
def test_bad_input_is_an_error_that_names_the_argument(result, options, error, message):
    with pytest.raises(error, match=message):
        decode(result, **options)
