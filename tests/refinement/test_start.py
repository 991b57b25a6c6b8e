"""From few seeds: relations that meet at seeds are taken to be alike, so that something spreads."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.refinement import start
from stea_fast.refinement.start import affinity_at_seeds, with_affinity

NONE = np.full((6, 3), -1, dtype=np.int32)


def test_relations_that_meet_at_a_seed_have_something_in_common():
    kg = sf.KG([[0, 0, 1], [0, 0, 2], [0, 1, 3]])
    found = affinity_at_seeds(kg, kg, np.array([[0, 0]])).toarray()
    assert found[0, 0] == pytest.approx(2 * 2 / (3 * 3))  # two edges of two meet
    assert found[0, 1] == found[1, 0] == pytest.approx(1 / (3 * 2))
    assert found[1, 1] == pytest.approx(1 / (2 * 2))
    np.testing.assert_array_equal(found[2:, 2:], found[:2, :2])  # and so have their inverses
    assert (found[2:, :2] == 0).all() and (found[:2, 2:] == 0).all()
    assert affinity_at_seeds(kg, kg, np.zeros((0, 2), dtype=np.int64)).nnz == 0


def test_an_entity_with_thousands_of_relations_costs_no_memory_by_their_square():
    hub = sf.KG([[0, relation, relation + 1] for relation in range(2000)])
    tracemalloc.start()
    found = affinity_at_seeds(hub, hub, np.array([[0, 0], [1, 1]]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert found.toarray()[0, 0] > 0  # what the other seed says is kept


def test_the_seeds_with_fewest_relations_come_first_where_pairs_of_relations_are_too_many(monkeypatch):
    kg = sf.KG([[0, 0, 1], [2, 1, 3], [2, 2, 4], [2, 3, 5]])
    seeds = np.array([[2, 2], [0, 0]])
    whole = affinity_at_seeds(kg, kg, seeds)
    monkeypatch.setattr(start, "_BLOCK", 1)
    assert (affinity_at_seeds(kg, kg, seeds) != whole).nnz == 0  # in blocks or at once
    monkeypatch.setattr(start, "MOST_PAIRS", 2)
    assert affinity_at_seeds(kg, kg, seeds).nnz == 2  # relation 0 with itself, and its inverse


def test_what_has_been_seen_needs_no_prior_and_the_more_could_have_been_seen_the_less_is_left():
    kg = sf.KG([[0, 0, 1], [0, 1, 2]])
    affinity = affinity_at_seeds(kg, kg, np.array([[0, 0]]))
    seen = np.zeros((4, 4), dtype=np.float32)
    seen[0, 0] = 0.9
    relations = with_affinity(sf.RelationAlignment(seen, seen.T), affinity, np.array([3.0, 0.0]), np.zeros(2))
    found = relations.sub12.toarray()
    assert found[0, 0] == np.float32(0.9)
    assert found[0, 1] == pytest.approx(affinity.toarray()[0, 1] / 4)
    assert found[1, 0] == pytest.approx(affinity.toarray()[1, 0])


def test_two_seeds_that_no_statement_connects_are_enough_to_spread_from():
    kg = sf.KG([[0, 0, 2], [0, 1, 3], [1, 0, 4], [1, 2, 5]])
    candidates = sf.Candidates(sf.Ranking(NONE, NONE * 0.0), sf.Ranking(NONE, NONE * 0.0))
    method = sf.Joint(beta=1.0, evidence_weight=16, sweeps=10, lone_witness=1.0)
    seeds = [[0, 0], [1, 1]]
    alive = sf.refine(candidates, kg, kg, seeds=seeds, method=method)
    assert {tuple(pair) for pair in alive.pairs.tolist()} == {(n, n) for n in range(2, 6)}
    dead = sf.refine(candidates, kg, kg, seeds=seeds, method=replace(method, start_sweeps=0))
    assert len(dead.pairs) == 0


def test_given_relations_are_left_as_they_are():
    pair = sf.synthetic_pair(100, seed=0)
    relations = sf.RelationAlignment.uniform(pair.kg1, pair.kg2)
    out = sf.refine(sf.demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train, relations=relations)
    assert out.relations is relations


def test_a_damped_pair_keeps_a_share_of_what_it_had():
    pair = sf.synthetic_pair(200, seed=0)
    candidates = sf.demo.candidates(pair)
    probs = {}
    for damping in (0.0, 0.5):
        method = sf.Joint(sweeps=1, damping=damping, proposals=0)
        out = sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train, method=method)
        probs[damping] = {
            (e, int(e2)): float(p)
            for e, (row, values) in enumerate(zip(out.forward.indices, out.forward.probs, strict=True))
            for e2, p in zip(row, values, strict=True)
            if e2 >= 0
        }
    both = probs[0.0].keys() & probs[0.5].keys()
    # Half of the new probability is there in any case, and the rest lies between 0 and 1.
    assert all(0.5 * probs[0.0][key] - 1e-6 <= probs[0.5][key] <= 0.5 * probs[0.0][key] + 0.5 + 1e-6 for key in both)
    assert any(abs(probs[0.0][key] - probs[0.5][key]) > 0.01 for key in both)
