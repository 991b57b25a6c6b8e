"""Selection of pseudo mappings: the paper's strategies and its baselines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import stea_fast as sf
from stea_fast.refinement.selection import mutual_best, select
from stea_fast.types import Candidates, Ranking, RefinedRanking

NO_SEEDS = np.zeros((0, 2), dtype=np.int64)


def refined(rows: list[list[tuple[int, float]]]) -> RefinedRanking:
    indices = np.array([[target for target, _ in row] for row in rows], dtype=np.int32)
    probs = np.array([[prob for _, prob in row] for row in rows], dtype=np.float32)
    return RefinedRanking(indices, probs, np.zeros_like(probs))


def ranking(rows: list[list[tuple[int, float]]]) -> Ranking:
    found = refined(rows)
    return Ranking(found.indices, found.probs)


def as_dict(selection: tuple[np.ndarray, np.ndarray]) -> dict[tuple[int, int], float]:
    pairs, values = selection
    assert len(pairs) == len(values) and pairs.shape[1:] == (2,)
    values = [pytest.approx(float(value), abs=1e-6) for value in values]
    return dict(zip(map(tuple, pairs.tolist()), values, strict=True))


# 0 and 0 choose each other; 1 and 2 both choose target 1, which chooses 2; source 3 has no candidate.
FORWARD = refined([[(0, 0.9), (1, 0.1)], [(1, 0.6), (2, 0.4)], [(1, 0.5), (0, 0.2)], [(-1, 0.0), (-1, 0.0)]])
BACKWARD = refined([[(0, 0.4), (2, 0.3)], [(2, 0.8), (1, 0.2)], [(1, 0.7), (0, 0.1)]])


def test_mutual_takes_pairs_that_choose_each_other_with_the_mean_probability():
    found = as_dict(select("mutual", FORWARD, BACKWARD, None, NO_SEEDS))
    assert found == {(0, 0): np.sqrt(0.9 * 0.4), (2, 1): np.sqrt(0.5 * 0.8)}


def test_a_threshold_on_mutual_pairs_must_be_exceeded():
    assert as_dict(select("mutual", FORWARD, BACKWARD, 0.61, NO_SEEDS)) == {(2, 1): np.sqrt(0.4)}
    assert as_dict(select("mutual", FORWARD, BACKWARD, 0.7, NO_SEEDS)) == {}


def test_uni_takes_every_source_whose_best_candidate_is_above_the_threshold():
    assert as_dict(select("forward", FORWARD, None, 0.55, NO_SEEDS)) == {(0, 0): 0.9, (1, 1): 0.6}
    assert as_dict(select("forward", FORWARD, BACKWARD, 0.5, NO_SEEDS)) == {(0, 0): 0.9, (1, 1): 0.6}


def test_uni_backward_takes_every_target_whose_best_candidate_is_above_the_threshold():
    assert as_dict(select("backward", FORWARD, BACKWARD, 0.55, NO_SEEDS)) == {(2, 1): 0.8, (1, 2): 0.7}


def test_bi_takes_what_either_direction_takes_once_with_the_larger_probability():
    assert as_dict(select("either", FORWARD, BACKWARD, 0.35, NO_SEEDS)) == {
        (0, 0): 0.9,
        (1, 1): 0.6,
        (1, 2): 0.7,
        (2, 1): 0.8,
    }


def test_none_takes_nothing_in_the_shape_of_pairs():
    pairs, probs = select("none", FORWARD, None, None, NO_SEEDS)
    assert (pairs.shape, pairs.dtype, probs.shape, probs.dtype) == ((0, 2), np.int64, (0,), np.float32)


def test_pairs_come_in_increasing_order_of_the_source():
    pairs, _ = select("either", FORWARD, BACKWARD, 0.0, NO_SEEDS)
    assert pairs.tolist() == [[0, 0], [1, 1], [1, 2], [2, 1]]


@pytest.mark.parametrize("strategy", ["mutual", "forward", "backward", "either"])
def test_pairs_that_touch_a_seed_are_never_selected(strategy):
    found = as_dict(select(strategy, FORWARD, BACKWARD, 0.0, np.array([[0, 2]])))
    assert found and all(source != 0 and target != 2 for source, target in found)


@pytest.mark.parametrize("strategy", ["forward", "backward", "either"])
def test_threshold_strategies_need_a_threshold(strategy):
    with pytest.raises(ValueError, match=f"select='{strategy}' needs a threshold"):
        select(strategy, FORWARD, BACKWARD, None, NO_SEEDS)


@pytest.mark.parametrize("strategy", ["mutual", "backward", "either"])
def test_strategies_of_both_directions_need_both(strategy):
    with pytest.raises(ValueError, match=f"select='{strategy}' needs candidates in both directions"):
        select(strategy, FORWARD, None, 0.5, NO_SEEDS)


def test_ties_go_to_the_candidate_listed_first():
    pairs, _ = mutual_best(
        (np.array([[1, 0], [0, 1]]), np.array([[0.5, 0.5], [0.5, 0.5]])),
        (np.array([[1, 0], [0, 1]]), np.array([[0.5, 0.5], [0.5, 0.5]])),
    )
    assert pairs.tolist() == [[0, 1], [1, 0]]


SIMILAR = Candidates(
    ranking([[(0, 0.9), (1, -0.1)], [(1, 0.3), (0, 0.2)], [(1, 0.4), (2, 0.1)], [(2, -0.5), (-1, 9.0)]]),
    ranking([[(0, 0.9), (1, 0.2)], [(2, 0.4), (1, 0.3)], [(3, -0.5), (2, -0.6)]]),
)


def test_mutual_nearest_gives_the_similarity_even_where_it_is_negative():
    assert as_dict(sf.mutual_nearest(SIMILAR)) == {(0, 0): 0.9, (2, 1): 0.4, (3, 2): -0.5}
    assert as_dict(sf.mutual_nearest(SIMILAR, seeds=[[0, 2]])) == {(2, 1): 0.4}


def test_similarity_threshold_takes_the_nearest_target_above_it():
    assert as_dict(sf.similarity_threshold(SIMILAR, 0.3)) == {(0, 0): 0.9, (2, 1): 0.4}
    assert as_dict(sf.similarity_threshold(SIMILAR, -1.0, seeds=[[2, 0]])) == {(1, 1): 0.3, (3, 2): -0.5}


def test_one_to_one_prefers_the_largest_sum_to_the_largest_pair():
    # Greedy takes (0, 0) first and leaves 0.9 + 0.1; the best matching has 0.8 + 0.8.
    found = Candidates(ranking([[(0, 0.9), (1, 0.8)], [(0, 0.8), (1, 0.1)]]))
    assert as_dict(sf.one_to_one(found, 0.0)) == {(0, 1): 0.8, (1, 0): 0.8}


def test_one_to_one_leaves_a_source_alone_rather_than_give_it_a_taken_target():
    found = Candidates(ranking([[(0, 0.9), (-1, 0)], [(0, 0.8), (-1, 0)], [(1, 0.2), (0, 0.1)]]))
    assert as_dict(sf.one_to_one(found, 0.0)) == {(0, 0): 0.9, (2, 1): 0.2}


@pytest.mark.parametrize("seed", range(5))
def test_one_to_one_reaches_the_largest_possible_sum(seed):
    weights = np.random.default_rng(seed).random((12, 9)).astype(np.float32)
    order = np.argsort(-weights, axis=1)
    found = Candidates(Ranking(order.astype(np.int32), np.take_along_axis(weights, order, axis=1)))
    pairs, values = sf.one_to_one(found, 0.0)
    best = weights[linear_sum_assignment(weights, maximize=True)].sum()
    assert values.sum() == pytest.approx(best, rel=1e-6)
    np.testing.assert_array_equal(values, weights[pairs[:, 0], pairs[:, 1]])
    assert len(pairs) == len(set(pairs[:, 0])) == len(set(pairs[:, 1])) == 9


def test_one_to_one_matches_nothing_below_the_threshold_or_zero():
    found = Candidates(ranking([[(0, 0.4), (1, -0.1)], [(1, -0.2), (0, -0.3)]]))
    assert as_dict(sf.one_to_one(found, -1.0)) == {(0, 0): 0.4}
    pairs, values = sf.one_to_one(found, 0.5)
    assert (pairs.shape, values.shape) == ((0, 2), (0,))


def test_seeds_take_no_part_in_the_matching():
    found = Candidates(ranking([[(0, 0.9), (1, 0.8)], [(1, 0.7), (0, 0.6)], [(0, 0.5), (2, 0.3)]]))
    assert as_dict(sf.one_to_one(found, 0.0, seeds=[[1, 0]])) == {(0, 1): 0.8, (2, 2): 0.3}


def test_earlier_pairs_stay_where_nothing_contradicts_them():
    found = Candidates(ranking([[(0, 0.9), (1, 0.2)], [(2, 0.1), (0, 0.05)], [(0, 0.3), (2, 0.05)]]))
    assert as_dict(sf.one_to_one(found, 0.5, previous=[[1, 2], [2, 5]])) == {
        (0, 0): 0.9,
        (1, 2): 0.1,
        (2, 5): -np.inf,  # still kept, though no longer among the candidates
    }


def test_of_an_earlier_and_a_new_pair_the_one_more_similar_now_stays():
    found = Candidates(ranking([[(0, 0.9), (1, 0.95)], [(1, 0.8), (0, 0.1)]]))
    # The matching is (0, 0), (1, 1). By present similarity the earlier (0, 1) beats both.
    assert as_dict(sf.one_to_one(found, 0.0)) == {(0, 0): 0.9, (1, 1): 0.8}
    assert as_dict(sf.one_to_one(found, 0.0, previous=[[0, 1]])) == {(0, 1): 0.95}
    assert as_dict(sf.one_to_one(found, 0.0, previous=[[1, 0]])) == {(0, 0): 0.9, (1, 1): 0.8}


def test_an_earlier_pair_that_is_no_candidate_any_more_loses_every_conflict():
    found = Candidates(ranking([[(0, 0.01), (1, 0.005)], [(1, 0.02), (0, 0.01)]]))
    assert as_dict(sf.one_to_one(found, 0.0, previous=[[0, 7], [1, 9]])) == {(0, 0): 0.01, (1, 1): 0.02}


def test_an_earlier_pair_that_touches_a_seed_cannot_push_out_a_new_pair():
    found = Candidates(ranking([[(0, 0.9), (1, 0.5)], [(1, 0.4), (0, 0.2)]]))
    assert as_dict(sf.one_to_one(found, 0.0, previous=[[0, 0]], seeds=[[1, 0]])) == {(0, 1): 0.5}


def test_the_baselines_give_tensors_for_tensors():
    torch = pytest.importorskip("torch")
    tensors = Candidates(*(Ranking(*map(torch.tensor, side)) for side in (SIMILAR.forward, SIMILAR.backward)))
    baselines = [(sf.mutual_nearest, ()), (sf.similarity_threshold, (0.0,)), (sf.one_to_one, (0.0,))]
    for baseline, arguments in baselines:
        expected, found = baseline(SIMILAR, *arguments), baseline(tensors, *arguments)
        for array, tensor in zip(expected, found, strict=True):
            assert isinstance(tensor, torch.Tensor)
            np.testing.assert_array_equal(tensor.numpy(), array)
