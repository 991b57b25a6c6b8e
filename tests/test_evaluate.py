"""Evaluation: ranks by hand, pessimistic ties, pools, directions, and quality of pairs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.demo import candidates
from stea_fast.types import Candidates, Ranking


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
    out = sf.refine(candidates(pair, 5), pair.kg1, pair.kg2, seeds=pair.train)
    order = np.random.default_rng(0).permutation(len(pair.test))
    one, other = sf.evaluate(out, pair.test, pool), sf.evaluate(out, pair.test[order], pool)
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
        ((FORWARD.indices, FORWARD.scores), TEST, {}, TypeError, "result must be .* got tuple"),
        (Candidates(ranking([[0, 1]], [[np.nan, 0.5]])), [[0, 0]], {}, ValueError, "scores must be finite"),
        (Candidates(ranking([[0, 1]], [[0.5]])), [[0, 0]], {}, ValueError, "indices and scores"),
        (Candidates(ranking([[0.5]], [[0.5]])), [[0, 0]], {}, TypeError, "indices must hold integers"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error(result, test, options, error, message):
    with pytest.raises(error, match=message):
        sf.evaluate(result, test, **options)
