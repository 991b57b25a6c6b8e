"""Witnesses: the statements about one pair of neighbours count once, and are counted once, in every backend."""

from __future__ import annotations

import numpy as np
import pytest
from test_parity import FAST

from stea_fast import KG, RelationAlignment, _backends
from stea_fast.refinement.beliefs import from_pairs

EVERY = ["reference", *FAST]
PROBABILITIES = np.array([[0.9, 0.2], [0.5, 0.8]], dtype=np.float32)  # P(r ⊆ r') and P(r' ⊆ r), equally


def between(count, relations):
    """Entity 0 with `count` neighbours, each over every one of the relations."""
    return KG([(0, r, 1 + i) for i in range(count) for r in relations], count + 1, len(relations))


def evidence_of(backend, kg1, kg2, probabilities, weights, witnesses):
    """L and number of witnesses of the pair (0, 0), whose neighbours of the same number are matched."""
    module = _backends.resolve(backend)
    matched = np.arange(1, kg1.num_entities)
    beliefs = from_pairs(matched, matched, np.asarray(weights), kg1.num_entities)
    sub12 = np.zeros((2 * kg1.num_relations, 2 * kg2.num_relations), dtype=np.float32)
    sub12[: kg1.num_relations, : kg2.num_relations] = probabilities
    strengths = module.strengths(RelationAlignment(sub12, sub12.T), kg1, kg2)
    candidates = np.full((kg1.num_entities, 2), -1, dtype=np.int32)
    candidates[0, 0] = 0
    found, number = module.evidence_and_witnesses(
        kg1, kg2, candidates, beliefs, strengths, forward=True, rows=(0, kg1.num_entities), witnesses=witnesses
    )
    assert (found[:, 1] == 0).all() and (number[:, 1] == 0).all()
    return float(found[0, 0]), int(number[0, 0])


def shares_of(kg1, kg2, probabilities, weight):
    """What every two statements say together: [R, R']."""
    fun1, fun2 = (kg.inverse_functionality[: kg.num_relations].astype(float) for kg in (kg1, kg2))
    factors = (1 - probabilities * fun1[:, None] * weight) * (1 - probabilities * fun2[None, :] * weight)
    return -np.log(factors)


@pytest.mark.parametrize("backend", EVERY)
def test_of_the_statements_about_one_neighbour_the_strongest_counts(backend):
    kg1, kg2 = between(3, range(2)), between(3, range(2))
    weights = [0.9, 0.5, 0.3]
    shares = [shares_of(kg1, kg2, PROBABILITIES, weight) for weight in weights]
    largest = evidence_of(backend, kg1, kg2, PROBABILITIES, weights, "neighbour")
    assert largest == (pytest.approx(sum(share.max() for share in shares), rel=1e-5), 3)
    everything = evidence_of(backend, kg1, kg2, PROBABILITIES, weights, "statement")
    assert everything == (pytest.approx(sum(share.sum() for share in shares), rel=1e-5), 3)


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize(("relations", "relations2"), [(1, 7), (3, 4), (4, 3), (5, 2), (9, 13)])
def test_runs_of_any_length_are_one_witness(backend, relations, relations2):
    """Runs within a block of four nodes, of exactly one block, and over several blocks."""
    rng = np.random.default_rng(relations)
    kg1, kg2 = between(6, range(relations)), between(6, range(relations2))
    probabilities = rng.random((relations, relations2), dtype=np.float32)
    weights = rng.random(6)
    expected = sum(shares_of(kg1, kg2, probabilities, weight).max() for weight in weights)
    found, number = evidence_of(backend, kg1, kg2, probabilities, weights, "neighbour")
    assert (found, number) == (pytest.approx(expected, rel=1e-5), 6)


@pytest.mark.parametrize("backend", EVERY)
def test_a_pair_about_which_nothing_agrees_is_no_witness(backend):
    kg1, kg2 = KG([(0, 0, 1), (0, 1, 2)], 3, 2), KG([(0, 0, 1), (0, 0, 2)], 3, 2)
    only_the_first = np.array([[0.5, 0.0], [0.0, 0.0]], dtype=np.float32)
    assert evidence_of(backend, kg1, kg2, only_the_first, [1.0, 1.0], "neighbour")[1] == 1
    assert evidence_of(backend, kg1, kg2, only_the_first, [1.0, 1.0], "statement")[1] == 1


@pytest.mark.parametrize("backend", EVERY)
def test_another_word_is_refused(backend):
    kg = between(1, range(1))
    with pytest.raises(ValueError, match="'neighbour', 'statement'; got 'both'"):
        evidence_of(backend, kg, kg, np.ones((1, 1), np.float32), [1.0], "both")
