"""Evaluation: ranks by hand, pessimistic ties, pools, directions, quality of pairs, significance, calibration."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

import stea_fast as sf
from stea_fast.data.sealed import reveal
from stea_fast.encoders.demo import candidates
from stea_fast.evaluation.metrics import calibration_error, paired_t_test
from stea_fast.types import Candidates, Ranking, RefinedRanking


def ranking(indices: list[list[int]], scores: list[list[float]]) -> Ranking:
    return Ranking(np.array(indices), np.array(scores, dtype=np.float32))


# True targets: 0 at rank 1; 1 at rank 2 behind target 5, which is no test target; 2 at rank 3; 3 missing.
TEST = np.array([[0, 0], [1, 1], [2, 2], [3, 3]])
FORWARD = ranking(
    [[0, 1, 2], [5, 1, 0], [0, 1, 2], [0, 1, -1]],
    [[0.9, 0.5, 0.1], [0.8, 0.7, 0.1], [0.9, 0.8, 0.7], [0.4, 0.3, 9.9]],
)
CANDIDATES = Candidates(FORWARD)


def with_pairs(*pairs: tuple[int, int]) -> SimpleNamespace:
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return SimpleNamespace(forward=FORWARD, backward=None, pairs=array)


def test_open_pool_ranks_the_true_target_among_all_candidates():
    found = sf.evaluate(CANDIDATES, TEST, pool="all")
    assert (found.hit1, found.hit10) == (1 / 4, 3 / 4)
    assert found.mrr == pytest.approx((1 + 1 / 2 + 1 / 3 + 0) / 4)
    assert (found.pool, found.num_links) == ("all", 4)


def test_closed_pool_ranks_it_among_the_targets_of_the_test_links_only():
    found = sf.evaluate(CANDIDATES, TEST)
    assert (found.hit1, found.hit10) == (2 / 4, 3 / 4)
    assert found.mrr == pytest.approx((1 + 1 + 1 / 3 + 0) / 4)
    assert found.pool == "test"


def test_the_mean_rank_is_that_of_the_targets_that_were_found():
    assert sf.evaluate(CANDIDATES, TEST, "all").mean_rank == pytest.approx((1 + 2 + 3) / 3)
    assert sf.evaluate(CANDIDATES, TEST).mean_rank == pytest.approx((1 + 1 + 3) / 3)
    assert np.isnan(sf.evaluate(CANDIDATES, TEST[3:]).mean_rank)


def test_hits_at_every_depth_that_the_rankings_reach():
    found = sf.evaluate(CANDIDATES, TEST, "all")
    assert found.hits == {1: 1 / 4, 3: 3 / 4}  # the lists hold three candidates: Hit@5 was not measured
    assert sf.evaluate(CANDIDATES, TEST, "all", ks=(2, 3, 4)).hits == {2: 2 / 4, 3: 3 / 4}
    assert found.hit1 == found.hits[1]
    assert isinstance(hash(found), int)


def test_only_the_rows_of_the_test_links_count():
    found = sf.evaluate(CANDIDATES, TEST[:1], pool="all")
    assert (found.hit1, found.mrr, found.num_links) == (1.0, 1.0, 1)


def test_hit_10_ends_after_the_tenth_place():
    row = ranking([list(range(12))], [[1 - 0.01 * place for place in range(12)]])
    assert sf.evaluate(Candidates(row), [[0, 9]], "all").hit10 == 1.0
    found = sf.evaluate(Candidates(row), [[0, 10]], "all")
    assert (found.hit10, found.mrr) == (0.0, pytest.approx(1 / 11))


def test_equal_scores_rank_the_true_target_last_wherever_it_is_listed():
    indices = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 1, 4, 3]]
    constant = ranking(indices, [[0.5] * 5] * 3)
    found = sf.evaluate(Candidates(constant), [[0, 0], [1, 4], [2, 3]], "all")
    assert (found.hit1, found.mrr) == (0.0, pytest.approx(1 / 5))


def test_a_tie_with_a_better_score_ahead_counts_both():
    row = ranking([[7, 0, 1, 2]], [[0.9, 0.5, 0.5, 0.1]])
    assert sf.evaluate(Candidates(row), [[0, 0]], "all").mrr == pytest.approx(1 / 3)


def test_missing_candidates_do_not_compete_whatever_their_score():
    row = ranking([[-1, 4, -1]], [[np.nan, 0.1, 5.0]])
    assert sf.evaluate(Candidates(row), [[0, 4]], "all").hit1 == 1.0


def test_the_order_of_the_candidates_in_a_row_does_not_matter():
    order = [2, 0, 1]
    shuffled = Candidates(Ranking(FORWARD.indices[:, order], FORWARD.scores[:, order]))
    assert str(sf.evaluate(shuffled, TEST, "all")) == str(sf.evaluate(CANDIDATES, TEST, "all"))


@pytest.mark.parametrize("pool", ["test", "all"])
def test_the_order_of_the_test_links_does_not_matter(pool):
    pair = sf.synthetic_pair(80, 0, num_relations=5)
    out = sf.refine(candidates(pair, 5), pair.kg1, pair.kg2, seeds=pair.train, method="paper")
    order = np.random.default_rng(0).permutation(len(pair.test))
    one, other = sf.evaluate(out, pair.test, pool), sf.evaluate(out, reveal(pair.test)[order], pool)
    assert replace(one, mrr=0.0) == replace(other, mrr=0.0)
    assert one.mrr == pytest.approx(other.mrr, rel=1e-12)
    assert 0 < one.hit1 < 1


def test_the_backward_direction_ranks_sources_for_targets():
    backward = ranking([[1, 0], [0, 1], [2, 0]], [[0.9, 0.8], [0.7, 0.6], [0.5, 0.4]])
    both = Candidates(ranking([[0], [1], [2]], [[1.0], [1.0], [1.0]]), backward)
    links = [[0, 0], [2, 2]]  # target 0 has source 1 before source 0, but source 1 is in no test link
    assert sf.evaluate(both, links, "all", direction="backward").mrr == pytest.approx((1 / 2 + 1) / 2)
    assert sf.evaluate(both, links, "test", direction="backward").mrr == 1.0
    assert sf.evaluate(both, links, "all").hit1 == 1.0


def test_precision_recall_and_f1_of_the_pairs():
    found = sf.evaluate(with_pairs((0, 0), (1, 1), (2, 5)), TEST)
    assert (found.precision, found.recall) == (2 / 3, 2 / 4)
    assert found.f1 == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))
    assert found.num_pairs == 3


def test_no_right_pair_and_no_pair_at_all_give_zero():
    for result in (with_pairs((0, 1), (1, 0)), with_pairs()):
        found = sf.evaluate(result, TEST)
        assert (found.precision, found.recall, found.f1) == (0.0, 0.0, 0.0)


def test_links_without_rankings_are_judged_by_their_pairs_alone():
    links = SimpleNamespace(pairs=np.array([[0, 0], [1, 1], [2, 5]]), scores=np.ones(3), unmatched=np.array([3]))
    found, ranked = sf.evaluate(links, TEST), sf.evaluate(with_pairs((0, 0), (1, 1), (2, 5)), TEST)
    assert (found.precision, found.recall, found.f1) == (ranked.precision, ranked.recall, ranked.f1)
    assert np.isnan([found.hit1, found.hit10, found.mrr, found.mean_rank]).all()
    assert (found.hits, found.num_links, found.num_pairs) == ({}, 4, 3)
    assert str(found) == "precision 0.667  recall 0.500  F1 0.571"


def test_pairs_are_judged_from_source_to_target_in_either_direction():
    result = with_pairs((0, 1), (1, 0))
    result.backward = ranking([[1], [0]], [[0.9], [0.9]])
    assert sf.evaluate(result, [[0, 1], [1, 0]], direction="backward").f1 == 1.0


def test_candidates_have_no_pairs_and_so_no_precision():
    found = sf.evaluate(CANDIDATES, TEST)
    assert np.isnan([found.precision, found.recall, found.f1]).all()
    assert found.num_pairs == 0


def test_the_text_names_what_was_measured():
    assert str(sf.evaluate(CANDIDATES, TEST)) == "Hit@1 0.500  Hit@10 0.750  MRR 0.583"
    text = str(sf.evaluate(with_pairs((0, 0)), TEST))
    assert text == "Hit@1 0.500  Hit@10 0.750  MRR 0.583  precision 1.000  recall 0.250  F1 0.400"


def test_tensors_are_evaluated_like_arrays():
    torch = pytest.importorskip("torch")
    tensors = SimpleNamespace(
        forward=Ranking(torch.tensor(FORWARD.indices), torch.tensor(FORWARD.scores, requires_grad=True)),
        pairs=torch.tensor([[0, 0], [3, 1]]),
    )
    found = sf.evaluate(tensors, torch.tensor(TEST), "all")
    assert (found.hit1, found.hit10, found.precision) == (1 / 4, 3 / 4, 1 / 2)


@pytest.mark.parametrize(
    ("result", "test", "options", "error", "message"),
    [
        (CANDIDATES, [], {}, ValueError, "test is empty"),
        (CANDIDATES, [[0, 0, 0]], {}, ValueError, r"test must have shape \(n, 2\)"),
        (CANDIDATES, [[0.0, 1.0]], {}, TypeError, "test must hold integers"),
        (CANDIDATES, [[4, 0]], {}, ValueError, r"test\[:, 0\] holds 4"),
        (CANDIDATES, [[-1, 0]], {}, ValueError, r"test\[:, 0\] holds -1"),
        (CANDIDATES, [[3, -1]], {}, ValueError, r"test\[:, 1\] holds -1"),
        (Candidates(FORWARD, FORWARD), [[0, 4]], {}, ValueError, r"test\[:, 1\] holds 4"),
        (CANDIDATES, TEST, {"pool": "closed"}, ValueError, "pool must be one of 'test', 'all'"),
        (CANDIDATES, TEST, {"direction": "both"}, ValueError, "direction must be one of"),
        (CANDIDATES, TEST, {"direction": "backward"}, ValueError, "no backward ranking"),
        (CANDIDATES, TEST, {"ks": (0,)}, ValueError, "ks must be between 1"),
        (SimpleNamespace(pairs=TEST), TEST, {"pool": "closed"}, ValueError, "pool must be one of 'test', 'all'"),
        (SimpleNamespace(pairs=TEST), [], {}, ValueError, "test is empty"),
        (SimpleNamespace(pairs=[[0, 0, 1]]), TEST, {}, ValueError, r"pairs must have shape \(n, 2\)"),
        ((FORWARD.indices, FORWARD.scores), TEST, {}, TypeError, "result must be .* got tuple"),
        (Candidates(ranking([[0, 1]], [[np.nan, 0.5]])), [[0, 0]], {}, ValueError, "scores must be finite"),
        (Candidates(ranking([[0, 1]], [[0.5]])), [[0, 0]], {}, ValueError, "indices and scores"),
        (Candidates(ranking([[0.5]], [[0.5]])), [[0, 0]], {}, TypeError, "indices must hold integers"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error(result, test, options, error, message):
    with pytest.raises(error, match=message):
        sf.evaluate(result, test, **options)


def guesses(targets: list[int], *, backward: bool = False) -> Candidates:
    """One candidate for every row."""
    only = Ranking(np.array(targets)[:, None], np.ones((len(targets), 1)))
    return Candidates(only, only if backward else None)


FIVE = np.stack([np.arange(5), np.arange(5)], axis=1)


def test_two_equal_results_differ_by_chance_alone():
    same = paired_t_test(CANDIDATES, CANDIDATES, TEST)
    assert (same.difference, same.t, same.p, same.n) == (0.0, 0.0, 1.0, 4)


def test_a_result_that_is_better_everywhere_differs_for_certain():
    right, wrong = guesses([0, 1, 2, 3, 4]), guesses([1, 2, 3, 4, 0])
    better, worse = paired_t_test(right, wrong, FIVE), paired_t_test(wrong, right, FIVE)
    assert (better.difference, better.t, better.p) == (1.0, np.inf, 0.0)
    assert (worse.difference, worse.t, worse.p) == (-1.0, -np.inf, 0.0)


def test_the_t_test_by_hand():
    # Right for four of five against one of five: gains 1, 1, 1, 0, 0 have mean 0.6 and variance 0.3.
    found = paired_t_test(guesses([0, 1, 2, 3, 0]), guesses([4, 4, 4, 3, 0]), FIVE)
    assert found.difference == pytest.approx(0.6)
    assert found.t == pytest.approx(0.6 / np.sqrt(0.3 / 5))
    assert (0 < found.p < 0.1, found.n) == (True, 5)


@given(st.integers(2, 12), st.integers(0, 1000), st.sampled_from(["hit1", "mrr"]), st.sampled_from(["test", "all"]))
def test_the_t_test_is_that_of_scipy(n, seed, metric, pool):
    random = np.random.default_rng(seed)
    first, second = (
        Candidates(Ranking(np.argsort(random.random((n, n)), axis=1)[:, :5], -np.sort(random.random((n, min(n, 5))))))
        for _ in range(2)
    )
    links = np.stack([np.arange(n), random.permutation(n)], axis=1)
    a, b = (
        np.array([getattr(sf.evaluate(each, links[[row]], "all"), metric) for row in range(n)])
        for each in (first, second)
    )
    found = paired_t_test(first, second, links, metric=metric, pool=pool)  # every target is in the closed pool
    assert found.difference == pytest.approx((a - b).mean())
    if np.ptp(a - b) > 0:
        expected = ttest_rel(a, b)
        assert (found.t, found.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))


def test_the_t_test_compares_the_direction_asked_for():
    right, wrong = guesses([0, 1, 2], backward=True), guesses([0, 2, 1], backward=True)
    links = [[0, 0], [1, 1], [2, 2]]
    assert paired_t_test(right, wrong, links, direction="backward").difference == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("second", "test", "options", "message"),
    [
        (CANDIDATES, TEST, {"metric": "hit10"}, "metric must be one of 'hit1', 'mrr'; got 'hit10'"),
        (CANDIDATES, TEST[:1], {}, "test holds one link"),
        (CANDIDATES, [], {}, "test is empty"),
        (CANDIDATES, TEST, {"pool": "closed"}, "pool must be one of"),
        (CANDIDATES, TEST, {"direction": "backward"}, "no backward ranking"),
        (guesses([0]), TEST, {}, r"test\[:, 0\] holds 3"),
    ],
)
def test_what_cannot_be_compared_is_an_error(second, test, options, message):
    with pytest.raises(ValueError, match=message):
        paired_t_test(CANDIDATES, second, test, **options)


def certain(probs: list[float], right: list[bool]) -> tuple[Candidates, np.ndarray]:
    """One candidate per source with its probability, and test links of which these are right."""
    sources = np.arange(len(probs))
    links = np.stack([sources, np.where(right, sources, sources + len(probs))], axis=1)
    return Candidates(Ranking(sources[:, None], np.array(probs)[:, None])), links


def test_probabilities_that_hold_have_no_calibration_error():
    found = calibration_error(*certain([0.5, 0.5, 1.0, 1.0], [True, False, True, True]))
    assert found.error == 0.0
    assert found.counts.tolist() == [0, 0, 0, 0, 0, 2, 0, 0, 0, 2]
    assert (found.confidence[5], found.accuracy[5], found.confidence[9], found.accuracy[9]) == (0.5, 0.5, 1.0, 1.0)
    assert np.isnan(found.confidence[[0, 1]]).all() and np.isnan(found.accuracy[[0, 1]]).all()


def test_the_calibration_error_by_hand():
    # Two bins: 0.1 and 0.3 with one right, 0.8 and 1.0 and 0.9 with one right.
    found = calibration_error(*certain([0.1, 0.3, 0.8, 1.0, 0.9], [True, False, True, False, False]), bins=2)
    np.testing.assert_allclose(found.confidence, [0.2, 0.9])
    np.testing.assert_allclose(found.accuracy, [1 / 2, 1 / 3])
    assert found.error == pytest.approx(2 / 5 * (0.5 - 0.2) + 3 / 5 * (0.9 - 1 / 3))
    assert found.counts.tolist() == [2, 3]


def test_an_empty_row_counts_as_wrong_with_probability_zero():
    found = calibration_error(Candidates(ranking([[-1, -1], [1, 0]], [[9.0, 9.0], [1.0, 0.0]])), [[0, 0], [1, 1]])
    assert (found.error, found.confidence[0], found.accuracy[0]) == (0.0, 0.0, 0.0)


def test_refined_probabilities_and_tensors_have_a_calibration():
    torch = pytest.importorskip("torch")
    probs = np.array([[0.75, 0.25], [0.5, 0.25]], dtype=np.float32)
    arrays = RefinedRanking(np.array([[0, 1], [0, 1]]), probs, np.zeros_like(probs))
    tensors = RefinedRanking(*(torch.tensor(each) for each in (arrays.indices, arrays.probs, arrays.evidence)))
    for refined in (arrays, tensors):
        assert calibration_error(Candidates(refined), [[0, 0], [1, 1]]).error == pytest.approx((0.25 + 0.5) / 2)


@pytest.mark.parametrize(
    ("result", "test", "options", "error", "message"),
    [
        (
            *certain([0.5, 1.5], [True, True]),
            {},
            ValueError,
            r"scores must be probabilities in \[0, 1\], got 0.5 to 1.5",
        ),
        (*certain([0.5, -0.5], [True, True]), {}, ValueError, "scores must be probabilities"),
        (*certain([0.5, np.nan], [True, True]), {}, ValueError, "scores must be finite"),
        (*certain([0.5], [True]), {"bins": 0}, ValueError, "bins must be between 1"),
        (*certain([0.5], [True]), {"bins": 2.0}, TypeError, "bins must be an integer"),
        (certain([0.5], [True])[0], [], {}, ValueError, "test is empty"),
        (SimpleNamespace(pairs=TEST), TEST, {}, TypeError, "result must be .* with a .forward"),
    ],
)
def test_what_has_no_calibration_is_an_error(result, test, options, error, message):
    with pytest.raises(error, match=message):
        calibration_error(result, test, **options)
