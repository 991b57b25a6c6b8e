"""Proposals from sweep to sweep: who is walked again, and what the others keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stea_fast import KG, RelationAlignment, _backends, synthetic_pair
from stea_fast.refinement.beliefs import from_pairs
from stea_fast.refinement.proposing import Proposer
from stea_fast.refinement.surroundings import Surroundings, relation_changes

OPTIONS = {"k": 3, "n_threads": 1, "witnesses": "neighbour"}


class Spy:
    """A backend that remembers which rows it was asked to walk."""

    def __init__(self) -> None:
        self.kernels = _backends.resolve("auto")
        self.walked: list[np.ndarray] = []
        self.changes_around = self.kernels.changes_around

    def proposals(self, source, target, beliefs, strengths, open_rows, open_targets, *, rows, **options: Any):
        self.walked.append(open_rows[slice(*rows)].copy())
        return self.kernels.proposals(source, target, beliefs, strengths, open_rows, open_targets, rows=rows, **options)


def chain(size: int) -> KG:
    """0 - 1 - 2 - … by one relation."""
    return KG(np.stack([np.arange(size - 1), np.zeros(size - 1, int), np.arange(1, size)], axis=1), size, 1)


def proposer_of(kg: KG, rows: tuple[int, int] | None = None) -> Proposer:
    everybody = np.ones(kg.num_entities, dtype=bool)
    return Proposer(Surroundings((kg, kg)), 0, rows or (0, kg.num_entities), (everybody, everybody))


def aligned(strength: float) -> RelationAlignment:
    matrix = np.diag([strength, strength]).astype(np.float32)
    return RelationAlignment(matrix, matrix)


def step(proposer: Proposer, spy: Spy, counterparts: dict[int, tuple[int, float]], alignment: RelationAlignment):
    kg = proposer.source
    rows = np.array(sorted(counterparts))
    targets, weights = (np.array([counterparts[row][part] for row in rows]) for part in (0, 1))
    matched = from_pairs(rows, targets.astype(np.int32), weights.astype(np.float32), kg.num_entities)
    strengths = spy.kernels.strengths(alignment, kg, proposer.target)
    return proposer.propose(spy, matched, alignment, strengths, **OPTIONS)


def test_only_neighbours_of_what_changed_are_walked_again():
    kg, spy, alignment = chain(12), Spy(), aligned(0.5)
    proposer = proposer_of(kg)
    first = step(proposer, spy, {3: (3, 0.6), 9: (9, 0.6)}, alignment)
    again = step(proposer, spy, {3: (3, 0.6), 9: (8, 0.6)}, alignment)
    assert spy.walked[0].all()
    assert np.flatnonzero(spy.walked[1]).tolist() == [8, 10]
    assert np.array_equal(again[:8], first[:8]) and not np.array_equal(again[8], first[8])
    fresh = step(proposer_of(kg), Spy(), {3: (3, 0.6), 9: (8, 0.6)}, alignment)
    assert np.array_equal(again, fresh)


def test_small_changes_add_up():
    spy, alignment, proposer = Spy(), aligned(0.5), proposer_of(chain(5))
    for weight in (0.50, 0.54, 0.58, 0.62, 0.66, 0.70, 0.74, 0.78):
        step(proposer, spy, {2: (2, weight)}, alignment)
    walks = [bool(walked[1]) for walked in spy.walked]
    assert walks[:2] == [True, False] and any(walks[2:])


def test_relations_that_change_make_their_neighbourhood_stale():
    spy, proposer = Spy(), proposer_of(chain(5))
    for alignment in (aligned(0.1), aligned(0.9)):
        step(proposer, spy, {2: (2, 0.8)}, alignment)
    assert np.flatnonzero(spy.walked[1]).tolist() == [1, 3]


def test_settled_entities_are_not_walked_whatever_happens_around_them():
    spy, alignment, proposer = Spy(), aligned(0.5), proposer_of(chain(6))
    step(proposer, spy, {2: (2, 0.95), 3: (3, 0.2)}, alignment)
    step(proposer, spy, {2: (2, 0.95), 3: (4, 0.9)}, alignment)
    assert np.flatnonzero(spy.walked[1]).tolist() == [4]  # 2 is the other neighbour of 3
    step(proposer, spy, {2: (1, 0.95), 3: (5, 0.9)}, alignment)  # now 2 is another target: it is settled no longer
    assert spy.walked[2][2]


@pytest.mark.parametrize("side", [0, 1])
def test_a_range_of_rows_gets_what_all_rows_get(side):
    pair = synthetic_pair(300, seed=3)
    graphs = pair.kg1, pair.kg2
    everybody = tuple(np.ones(kg.num_entities, dtype=bool) for kg in graphs)
    alignment = RelationAlignment(
        *(np.full((2 * a.num_relations, 2 * b.num_relations), 0.3, np.float32) for a, b in (graphs, graphs[::-1]))
    )
    spy, around, size = Spy(), Surroundings(graphs), graphs[side].num_entities
    parts = [Proposer(around, side, rows, everybody) for rows in ((0, size), (0, 100), (100, size))]
    rng = np.random.default_rng(0)
    strengths = spy.kernels.strengths(alignment, *graphs)
    for _ in range(3):
        held = rng.permutation(size)[:150], rng.permutation(graphs[1 - side].num_entities)[:150]
        matched = from_pairs(*held, 0.5 + 0.5 * rng.random(150), size)
        whole, *pieces = (part.propose(spy, matched, alignment, strengths, **OPTIONS) for part in parts)
        assert np.array_equal(whole, np.concatenate(pieces))


def test_the_change_of_a_relation_is_the_largest_of_both_directions():
    before = RelationAlignment(np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([[0.5, 0.0], [0.0, 0.5]]))
    now = RelationAlignment(np.array([[0.6, 0.2], [0.0, 0.5]]), np.array([[0.5, 0.0], [0.3, 0.5]]))
    first, second = relation_changes(before, now)
    np.testing.assert_allclose(first, [0.3, 0.0], atol=1e-6)
    np.testing.assert_allclose(second, [0.1, 0.3], atol=1e-6)
