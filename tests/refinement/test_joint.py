"""The joint refinement: both sides of a pair at once, and pairs that neighbours propose."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp

import stea_fast as sf
from stea_fast.encoders import demo
from stea_fast.refinement.joint import JointRefinement
from stea_fast.refinement.prior import prior_of
from stea_fast.refinement.problem import Execution, problem_of
from stea_fast.refinement.workplace import on_host
from stea_fast.types import Ranking

CHAIN = [[0, 0, 1], [1, 1, 2], [2, 0, 3], [3, 1, 4]]


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=300, seed=3, seed_fraction=0.1)


def candidates(forward, backward):
    return sf.Candidates(*(Ranking(np.array(i, np.int32), np.array(s, np.float32)) for i, s in (forward, backward)))


def test_a_counterpart_that_no_list_holds_is_proposed_by_its_neighbours():
    """Two equal chains. The encoder offers only nonsense for entity 2, on both sides; 1 and 3 are known."""
    kg1, kg2 = sf.KG(CHAIN), sf.KG(CHAIN)
    lists = [[0], [1], [0], [3], [4]], [[0.5], [0.9], [0.1], [0.9], [0.9]]
    given = candidates(lists, lists)
    seeds = [[1, 1], [3, 3]]
    out = sf.refine(given, kg1, kg2, seeds=seeds, method=sf.Joint(beta=5.0))
    assert out.forward.indices[2, 0] == 2
    assert [2, 2] in out.pairs.tolist()
    without = sf.refine(given, kg1, kg2, seeds=seeds, method=sf.Joint(beta=5.0, proposals=0))
    assert without.forward.indices[2, 0] != 2


def every_pair_listed():
    """Scores of all pairs of two graphs of four, and the candidates that list them all."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((4, 4)).astype(np.float32)
    order = np.argsort(-scores, axis=1)
    back = np.argsort(-scores.T, axis=1)
    forward, backward = np.take_along_axis(scores, order, 1), np.take_along_axis(scores.T, back, 1)
    return scores, candidates((order, forward), (back, backward))


def with_partition(given, partition):
    """The candidates, with partition sums at β = 2."""
    return sf.TopK(given.forward, given.backward, log_partition=partition, beta=2.0)


def table(ranking):
    found = np.zeros((4, 4))
    np.put_along_axis(found, ranking.indices, ranking.probs, axis=1)
    return found


def test_probabilities_are_those_of_the_definition():
    """No evidence, every pair in the set, no balancing: √(row softmax · column softmax) of β·s."""
    scores, given = every_pair_listed()
    kg = sf.KG([[0, 0, 1], [2, 0, 3]])
    method = sf.Joint(beta=2.0, evidence_weight=0.0, balance=0)
    out = sf.refine(given, kg, kg, method=method)
    logits = 2.0 * scores.astype(np.float64)
    expected = np.exp(logits - 0.5 * (logsumexp(logits, axis=1)[:, None] + logsumexp(logits, axis=0)))
    np.testing.assert_allclose(table(out.forward), expected, rtol=1e-5)
    partition = tuple(np.log(3.0) + logsumexp(logits, axis=axis) for axis in (1, 0))  # two thirds lie elsewhere
    less = sf.refine(with_partition(given, partition), kg, kg, method=method)
    np.testing.assert_allclose(less.forward.probs, out.forward.probs / 3, rtol=1e-5)


def test_balanced_probabilities_solve_the_matching_with_somewhere_else():
    """Each entity's pairs and its tail add up to one: a·p·b of the unbalanced p, with tails a·t and b·t'."""
    scores, given = every_pair_listed()
    kg = sf.KG([[0, 0, 1], [2, 0, 3]])
    logits = 2.0 * scores.astype(np.float64)
    partition = tuple(np.log(1.5) + logsumexp(logits, axis=axis) for axis in (1, 0))  # a third lies elsewhere
    given = with_partition(given, partition)
    methods = (sf.Joint(evidence_weight=0.0, balance=times) for times in (0, 500))
    before, after = (table(sf.refine(given, kg, kg, method=method).forward) for method in methods)
    a, b = (1.0 - after.sum(1)) / (1 / 3), (1.0 - after.sum(0)) / (1 / 3)
    np.testing.assert_allclose(after, a[:, None] * before * b, rtol=1e-4)
    assert not np.allclose(before, after, rtol=0.05)


def test_an_entity_gives_way_to_a_better_rival():
    """Both sources like target 0 best; the first one more. Balanced, the second is sent to target 1."""
    scores = [[0.9, 0.5], [0.85, 0.6]]
    given = candidates(([[0, 1], [0, 1]], scores), ([[0, 1], [1, 0]], [[0.9, 0.85], [0.6, 0.5]]))
    kg = sf.KG([[0, 0, 1]])
    balanced = sf.Joint(beta=8.0, evidence_weight=0.0)
    unbalanced = replace(balanced, balance=0)
    assert sf.refine(given, kg, kg, method=unbalanced).forward.indices[:, 0].tolist() == [0, 0]
    assert sf.refine(given, kg, kg, method=balanced).forward.indices[:, 0].tolist() == [0, 1]


def test_what_is_left_over_has_little_support():
    """Both sources like target 0, and both targets source 0: source 1 and target 1 have only each other left."""
    given = candidates(([[0, 1], [0, 1]], [[0.9, 0.5], [0.5, 0.3]]), ([[0, 1], [0, 1]], [[0.9, 0.5], [0.5, 0.3]]))
    kg = sf.KG([[0, 0, 1]])
    ranking = sf.refine(given, kg, kg, method=sf.Joint(beta=10.0, evidence_weight=0.0)).forward
    assert ranking.indices[:, 0].tolist() == [0, 1]
    assert ranking.probs[1, 0] > 0.5 > 2 * ranking.support[1, 0]
    assert sf.refine(given, kg, kg, method="product").forward.support is None


def test_seeds_stay_certain_and_their_entities_are_taken(pair):
    out = sf.refine(demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train, method="joint")
    sources, targets = pair.train.T
    assert (out.forward.indices[sources, 0] == targets).all() and (out.forward.probs[sources, 0] == 1).all()
    assert (out.forward.indices[sources, 1:] == -1).all()
    others = np.setdiff1d(np.arange(pair.kg1.num_entities), sources)
    assert not np.isin(out.forward.indices[others], targets).any()
    assert not np.isin(out.pairs[:, 0], sources).any()


def test_few_seeds_find_more_than_the_encoder_and_than_one_direction_at_a_time(pair):
    given = demo.candidates(pair)
    joint, product = (
        sf.refine(given, pair.kg1, pair.kg2, seeds=pair.train, method=method) for method in ("joint", "product")
    )
    encoder, alone, together = (sf.evaluate(x, pair.test).hit1 for x in (given, product, joint))
    assert together > alone > encoder


@pytest.mark.parametrize("backend", ["native", "numba"])
def test_every_backend_refines_as_the_reference_does(pair, backend):
    if not sf.backends()[backend].usable:
        pytest.skip(sf.backends()[backend].detail)
    given = demo.candidates(pair, k=4)
    options = {"seeds": pair.train, "method": sf.Joint(sweeps=2, proposals=3)}
    found, expected = (sf.refine(given, pair.kg1, pair.kg2, backend=name, **options) for name in (backend, "reference"))
    np.testing.assert_allclose(found.forward.probs, expected.forward.probs, rtol=1e-3, atol=1e-5)
    assert (found.forward.indices == expected.forward.indices).mean() > 0.99


def test_scores_of_proposals_come_from_the_search():
    rng = np.random.default_rng(1)
    emb1, emb2 = rng.standard_normal((2, 40, 8))
    cand = sf.topk(emb1, emb2, 5, csls=3)
    rows = np.repeat(np.arange(40), 5)
    np.testing.assert_allclose(cand.score(rows, cand.forward.indices.ravel()), cand.forward.scores.ravel(), atol=1e-6)
    far_apart = sf.topk(emb1.astype(np.float32) * 1e-20, emb2 * 1e20, 5, csls=0)
    found = far_apart.score(rows, far_apart.forward.indices.ravel())
    np.testing.assert_allclose(found, far_apart.forward.scores.ravel(), atol=1e-5)


def test_tensors_in_tensors_out(pair):
    torch = pytest.importorskip("torch")
    emb1, emb2 = (torch.from_numpy(np.asarray(e, dtype=np.float32)) for e in demo.encode(pair))
    step = sf.Refiner(pair.kg1, pair.kg2, pair.train)
    pairs = step(emb1, emb2)
    assert isinstance(pairs, torch.Tensor) and pairs.shape[1] == 2 and len(pairs) > 0
    assert isinstance(step.refinement.forward.probs, torch.Tensor)


def test_graphs_on_a_device_do_not_change_the_method(pair):
    moved = copy.copy(pair.kg1)
    moved._set("device_graph", SimpleNamespace(indptr=SimpleNamespace(device="elsewhere")))
    for kg1 in (moved, pair.kg1):
        step = sf.Refiner(kg1, pair.kg2, pair.train)
        assert step.plan == sf.Schedule()
        assert step.plan.method(0, last=False) == sf.Joint(evidence_weight=16.0, sweeps=10)
    pairs, expected = (sf.Refiner(kg1, pair.kg2, pair.train)(*demo.encode(pair)) for kg1 in (moved, pair.kg1))
    np.testing.assert_array_equal(pairs, expected)


def test_rows_with_too_many_pairs_keep_the_best(pair, monkeypatch):
    monkeypatch.setattr("stea_fast.refinement.shard.MAX_PAIRS_PER_SOURCE", 3)
    given = demo.candidates(pair)
    problem = problem_of(given, pair.kg1, pair.kg2, pair.train, (), None, Execution())
    place = on_host(problem)
    prior = prior_of(place.rankings(problem, None), pair.kg2.num_entities, 5.0, (None, None), None)
    with JointRefinement(problem, sf.Joint(), prior, place) as joint:
        joint.run(2)
        assert max(np.diff(state.indptr).max() for state in joint.shards.map("state")) == 3
        first = joint.rankings(3)[0].indices[:, 0]
    assert (first >= 0).mean() > 0.9


@pytest.mark.parametrize("options", [{"evidence": "argmax"}, {"blanket": "full"}, {"normalisation": "minmax"}])
def test_options_of_other_methods_cannot_be_written_down(options):
    with pytest.raises(TypeError, match=rf"^Joint\(\) has no option '{next(iter(options))}'"):
        sf.Joint(**options)


@pytest.mark.parametrize("named", [True, False])
def test_one_direction_is_refined_jointly_with_what_it_says(pair, named):
    """Beyond the lists neighbours propose as ever; the other direction is not given back."""
    given = demo.candidates(pair).forward
    out = sf.refine(given if named else tuple(given), pair.kg1, pair.kg2, seeds=pair.train, method="joint")
    assert out.backward is None and len(out.betas) == 1 and len(out.pairs) == 0
    assert out.forward.indices.shape == given.indices.shape and out.forward.support is not None
    assert (out.forward.indices[pair.train[:, 0], 0] == pair.train[:, 1]).all()
    before, after = sf.evaluate(sf.Candidates(given), pair.test).hit1, sf.evaluate(out, pair.test).hit1
    assert after > before + 0.1
    chosen = sf.refine(given, pair.kg1, pair.kg2, seeds=pair.train, select="forward", threshold=0.9)
    assert len(chosen.pairs) > 10 and (chosen.pair_probs > 0.9).all()


def test_the_schedule_is_followed_and_checked(pair):
    schedule = sf.Schedule(evidence_weights=[8, 2], thresholds=[0.3], final_weight=5.0, final_threshold=0.1)
    weights = [schedule.method(number, last=number == 3).evidence_weight for number in range(4)]
    assert weights == [8, 2, 2, 5.0]
    assert schedule.threshold(7, last=False) == 0.3
    assert schedule.threshold(7, last=True) == 0.1
    with pytest.raises(ValueError, match="evidence_weights is empty"):
        sf.Schedule(evidence_weights=[])
    with pytest.raises(ValueError, match="thresholds"):
        sf.Schedule(thresholds=[-0.1])
