"""Proposals: what matched neighbours suggest. One contract for every backend, tier and number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_parity import FAST, TIERS, problems, star

from stea_fast import KG, RelationAlignment, _backends, _core
from stea_fast._backends import native, reference
from stea_fast._backends.witnesses import WITNESSES
from stea_fast.refinement.beliefs import from_pairs, soft


def propose(module, problem, masks, *, k=3, budget=1000, forward=True, n_threads=2, rows=None, witnesses="statement"):
    kg1, kg2, _, beliefs, relations = problem
    strengths = module.strengths(relations, kg1, kg2) if forward else module.strengths(relations.swapped(), kg2, kg1)
    return module.proposals(
        kg1, kg2, beliefs, strengths, *masks, k=k, budget=budget, forward=forward, rows=rows or (0, kg1.num_entities),
        n_threads=n_threads, witnesses=witnesses,
    )  # fmt: skip


def random_masks(problem, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.random(kg.num_entities) < 0.8 for kg in problem[:2])


@pytest.mark.parametrize("backend", FAST)
@given(
    problem=problems(),
    forward=st.booleans(),
    k=st.integers(1, 6),
    budget=st.sampled_from([0, 3, 20, 1000]),
    witnesses=st.sampled_from(WITNESSES),
)
def test_every_backend_proposes_what_the_reference_does(backend, problem, forward, k, budget, witnesses):
    masks = random_masks(problem, k)
    options = {"k": k, "budget": budget, "forward": forward, "witnesses": witnesses}
    found = propose(_backends.resolve(backend), problem, masks, **options)
    expected = propose(reference, problem, masks, **options)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=1e-30)
    differs = found[0] != expected[0]
    # Only what is equal to rounding may stand in another order, or just outside the list.
    assert not differs[found[1] == 0].any()
    for row in np.flatnonzero(differs.any(axis=1)):
        values = expected[1][row]
        close = np.isclose(values[:, None], values[None, :], rtol=1e-5).sum(axis=1) > 1
        assert (close | (np.isclose(values, values[-1], rtol=1e-5)))[differs[row]].all()


@pytest.mark.parametrize("backend", FAST)
@given(problem=problems(), seed=st.integers(0, 1000), bounds=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_every_backend_finds_the_same_changes_around_entities(backend, problem, seed, bounds):
    kg, rng = problem[0], np.random.default_rng(seed)
    begin, end = sorted(int(bound * kg.num_entities) for bound in bounds)
    of_relations = rng.random((2, 2 * kg.num_relations), dtype=np.float32)
    of_entities = rng.random((2, kg.num_entities), dtype=np.float32)
    given = kg, *of_relations, *of_entities
    found = _backends.resolve(backend).changes_around(*given, rows=(begin, end), n_threads=2)
    expected = reference.changes_around(*given, rows=(begin, end))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("tier", TIERS)
@given(problem=problems(), witnesses=st.sampled_from(WITNESSES))
def test_every_tier_and_thread_count_proposes_the_same_bits(tier, problem, witnesses):
    if tier not in _core.tiers():
        pytest.skip(f"this CPU or build has no {tier} tier")
    masks = random_masks(problem, 0)
    expected = propose(native, problem, masks, n_threads=1, witnesses=witnesses)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEA_TIER", tier)
        for n_threads in (1, 2, 5):
            found = propose(native, problem, masks, n_threads=n_threads, witnesses=witnesses)
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("backend", ["reference", *FAST])
def test_the_way_over_a_matched_neighbour_is_found(backend):
    kg1, kg2 = KG([[0, 0, 1], [2, 0, 1]]), KG([[3, 0, 2], [1, 1, 2]])
    beliefs = from_pairs(np.array([1]), np.array([2]), np.array([1.0]), kg1.num_entities)
    sub12 = np.zeros((2, 4))
    sub12[[0, 1], [0, 2]] = 0.9  # relation 0 is relation 0, and their inverses are each other's
    problem = kg1, kg2, None, beliefs, RelationAlignment(sub12, sub12.T)
    everything = np.ones(3, dtype=bool), np.ones(4, dtype=bool)
    indices, evidence = propose(_backends.resolve(backend), problem, everything)
    assert indices.tolist() == [[3, -1, -1], [-1, -1, -1], [3, -1, -1]]  # 1 is reached by another relation
    assert evidence[0, 0] > 0 and (evidence[:, 1:] == 0).all()
    closed = everything[0], np.array([True, True, True, False])
    assert (propose(_backends.resolve(backend), problem, closed)[0] == -1).all()


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("witnesses", WITNESSES)
def test_hubs_stay_within_the_budget_and_equal_the_reference(backend, witnesses):
    kg1, kg2 = star(120), star(150)
    rng = np.random.default_rng(0)
    candidates = np.stack([rng.permutation(kg2.num_entities)[:2] for _ in range(kg1.num_entities)]).astype(np.int32)
    beliefs = soft(candidates, rng.random(candidates.shape, dtype=np.float32))
    relations = RelationAlignment(rng.random((6, 6), dtype=np.float32), rng.random((6, 6), dtype=np.float32))
    problem = kg1, kg2, None, beliefs, relations
    masks = np.ones(kg1.num_entities, dtype=bool), np.ones(kg2.num_entities, dtype=bool)
    for budget in (10, 160, 5000):
        found = propose(_backends.resolve(backend), problem, masks, k=5, budget=budget, witnesses=witnesses)
        expected = propose(reference, problem, masks, k=5, budget=budget, witnesses=witnesses)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
    whole = propose(_backends.resolve(backend), problem, masks, witnesses=witnesses)
    part = propose(_backends.resolve(backend), problem, masks, rows=(7, 30), witnesses=witnesses)
    assert all(np.array_equal(a, b[7:30]) for a, b in zip(part, whole, strict=True))


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_hubs_that_cannot_change_the_best_are_not_walked_and_nothing_is_lost(seed, k):
    """Entities with a few own neighbours and many hubs: the best are settled before all of the hubs are followed."""
    rng = np.random.default_rng(seed)
    n, hubs = 400, 12
    own = np.stack([np.arange(n), np.zeros(n, int), n + hubs + rng.integers(150, size=n)], axis=1)
    shared = np.stack([np.repeat(np.arange(n), 4), np.full(4 * n, 1), n + rng.integers(hubs, size=4 * n)], axis=1)
    kg = KG(np.concatenate([own, shared]), n + hubs + 150, 2)
    known = np.arange(n, kg.num_entities)
    beliefs = from_pairs(known, known, 0.5 + 0.5 * rng.random(len(known)), kg.num_entities)
    strong = np.zeros((4, 4), dtype=np.float32)
    strong[np.arange(4), np.arange(4)] = [0.9, 0.4, 0.9, 0.4]
    problem = kg, kg, None, beliefs, RelationAlignment(strong, strong)
    masks = np.ones(kg.num_entities, dtype=bool), np.ones(kg.num_entities, dtype=bool)
    options = {"k": k, "budget": 20_000, "rows": (0, 60), "witnesses": "neighbour"}
    found, expected = (propose(module, problem, masks, **options) for module in (native, _backends.resolve("numba")))
    assert np.array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)


@pytest.mark.parametrize("backend", ["reference", *FAST])
@pytest.mark.parametrize("witnesses", WITNESSES)
def test_eight_facts_over_a_fifth_of_the_budget_are_enough(backend, witnesses):
    """Entity 0 has ten neighbours; what the i-th leads to is target i, and hub edges that lead nowhere make it long."""
    width = 10
    leaves = width + 1 + np.arange(width * 10).reshape(width, 10)
    triples = [[0, 0, n + 1] for n in range(width)] + [[int(x), 1, n + 1] for n in range(width) for x in leaves[n]]
    kg = KG(triples)
    known = np.arange(1, width + 1)
    beliefs = from_pairs(known, known, np.full(width, 0.5), kg.num_entities)
    alike = np.eye(4, dtype=np.float32)
    alike[0, 1] = alike[2, 3] = 0.5  # what leads to a neighbour by relation 0 speaks for what does so by relation 1
    problem = kg, kg, None, beliefs, RelationAlignment(alike, alike.T)
    masks = np.ones(kg.num_entities, dtype=bool), np.arange(kg.num_entities) > width
    options = {"k": 200, "rows": (0, 1), "witnesses": witnesses}
    for budget, facts in ((11 * width - 1, 8), (11 * width, 8), (11 * 8 * 5, 8), (11 * 9 * 5, 9), (11 * 5, 5)):
        (found,), _ = propose(_backends.resolve(backend), problem, masks, budget=budget, **options)
        assert np.array_equal(np.unique(found[found >= 0]), np.sort(leaves[:facts].ravel()))
