"""One contract, every backend, every CPU tier: all of them equal the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stea_fast import KG, Beliefs, RelationAlignment, _backends, _core, topk
from stea_fast._backends import native, reference
from stea_fast._backends.witnesses import WITNESSES
from stea_fast.refinement.beliefs import soft

FAST = ("native", "numba")
TIERS = ("baseline", "avx2")


@st.composite
def graphs(draw):
    """Small graphs with self loops, parallel edges (many of them where entities are few), empty rows and hubs."""
    n = draw(st.integers(1, draw(st.sampled_from([3, 12]))))
    r = draw(st.integers(1, 4))
    count = draw(st.integers(0, 30))
    ids = st.integers(0, n - 1)
    heads = draw(st.lists(st.just(0) if draw(st.booleans()) else ids, min_size=count, max_size=count))
    triples = [(h, draw(st.integers(0, r - 1)), draw(ids)) for h in heads]
    return KG(triples, n, r)


@st.composite
def problems(draw):
    """Two graphs, candidates (with -1), beliefs and relation alignment."""
    kg1, kg2 = draw(graphs()), draw(graphs())
    k = draw(st.integers(1, kg2.num_entities))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    order = np.stack([rng.permutation(kg2.num_entities)[:k] for _ in range(kg1.num_entities)])
    candidates = np.where(rng.random(order.shape) < 0.2, -1, order).astype(np.int32)
    exponent = draw(st.sampled_from([0, 1, 8, 40]))  # 0: certainty, 40: weights far below float32's resolution of 1
    believed = np.where(rng.random(order.shape) < 0.3, -1, order).astype(np.int32)
    beliefs = soft(believed, rng.random(order.shape, dtype=np.float32) ** exponent)
    shape = (2 * kg1.num_relations, 2 * kg2.num_relations)
    values = st.sampled_from([0.0, 1e-6, 0.1, 0.5, 0.999, 1.0])
    relations = RelationAlignment(
        draw(arrays(np.float32, shape, elements=values.map(np.float32))),
        draw(arrays(np.float32, shape[::-1], elements=values.map(np.float32))),
        draw(st.sampled_from([0.0, 0.1])),
    )
    return kg1, kg2, candidates, beliefs, relations


def run(module, problem, n_threads=2, forward=True, witnesses="statement"):
    """Evidence, blanket and counts of one backend; `forward=False` poses the same problem from graph 2's side."""
    kg1, kg2, candidates, beliefs, relations = problem
    strengths = module.strengths(relations, kg1, kg2) if forward else module.strengths(relations.swapped(), kg2, kg1)
    common = {"forward": forward, "rows": (0, kg1.num_entities), "n_threads": n_threads, "witnesses": witnesses}
    evidence = module.evidence(kg1, kg2, candidates, beliefs, strengths, **common)
    lengths = np.diff(beliefs.indptr)
    own = np.full((kg1.num_entities, max(lengths.max(), 1)), -1, dtype=np.int32)
    place = np.arange(own.shape[1]) < lengths[:, None]
    own[place] = beliefs.targets
    of_beliefs = module.evidence(kg1, kg2, own, beliefs, strengths, **common)[place]
    blanket = module.blanket(kg1, kg2, candidates, beliefs, of_beliefs, strengths, **common)
    counts = module.relation_counts(kg1, kg2, beliefs, rows=(0, kg1.num_entities), n_threads=n_threads)
    again, number = module.evidence_and_witnesses(kg1, kg2, candidates, beliefs, strengths, **common)
    assert np.array_equal(again, evidence) and again.dtype == np.float32
    return evidence, blanket, counts, number


def assert_close(found, expected):
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-5)
    unit = 2.0 ** -expected[2].scale_bits
    counted, wanted = (
        dict(zip(c.keys.tolist(), (c.num * unit).tolist(), strict=True)) for c in (found[2], expected[2])
    )
    for key in counted.keys() | wanted.keys():
        assert counted.get(key, 0.0) == pytest.approx(wanted.get(key, 0.0), abs=1e-12, rel=1e-9)
    np.testing.assert_allclose(found[2].den * unit, expected[2].den * unit, rtol=1e-9, atol=1e-12)
    assert np.array_equal(found[3], expected[3]) and found[3].dtype == np.int32


@pytest.mark.parametrize("backend", FAST)
@given(problem=problems(), forward=st.booleans(), witnesses=st.sampled_from(WITNESSES))
def test_every_backend_equals_the_reference(backend, problem, forward, witnesses):
    module = _backends.resolve(backend)
    options = {"forward": forward, "witnesses": witnesses}
    assert_close(run(module, problem, **options), run(reference, problem, **options))


@pytest.mark.parametrize("tier", TIERS)
@given(problem=problems(), witnesses=st.sampled_from(WITNESSES))
def test_every_tier_and_thread_count_gives_the_same_bits(tier, problem, witnesses):
    if tier not in _core.tiers():
        pytest.skip(f"this CPU or build has no {tier} tier")
    expected = run(native, problem, n_threads=1, witnesses=witnesses)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEA_TIER", tier)
        for n_threads in (1, 2, 5):
            found = run(native, problem, n_threads, witnesses=witnesses)
            assert all(np.array_equal(found[i], expected[i]) for i in (0, 1, 3))
            assert all(np.array_equal(getattr(found[2], x), getattr(expected[2], x)) for x in ("keys", "num", "den"))


def star(degree):
    """A hub with leaves on two relations, and a chain so that the leaves differ."""
    leaves = np.arange(1, degree + 1)
    spokes = np.stack([np.zeros(degree, dtype=int), leaves % 2, leaves], axis=1)
    chain = np.stack([leaves[:-1], np.full(degree - 1, 2), leaves[1:]], axis=1)
    return KG(np.concatenate([spokes, chain]))


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("witnesses", WITNESSES)
def test_hubs_among_rows_and_candidates_equal_the_reference(backend, witnesses):
    """The searching path for hub candidates, the blocks of the counting kernel and long products."""
    kg1, kg2 = star(700), star(800)
    rng = np.random.default_rng(0)
    n1, n2 = kg1.num_entities, kg2.num_entities
    candidates = np.stack([np.r_[0, 1 + rng.permutation(n2 - 1)[:4]] for _ in range(n1)]).astype(np.int32)
    beliefs = soft(candidates, rng.random(candidates.shape, dtype=np.float32))
    relations = RelationAlignment(rng.random((6, 6), dtype=np.float32), rng.random((6, 6), dtype=np.float32))
    module = _backends.resolve(backend)
    common = {"forward": True, "rows": (0, 40), "witnesses": witnesses, "n_threads": 2}
    expected, number = reference.evidence_and_witnesses(
        kg1, kg2, candidates[:40], beliefs, reference.strengths(relations, kg1, kg2), **common
    )
    found, counted = module.evidence_and_witnesses(
        kg1, kg2, candidates[:40], beliefs, module.strengths(relations, kg1, kg2), **common
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.array_equal(counted, number) and number[0, 0] > 1000
    assert expected[0, 0] > 300  # the hub pair: hundreds of facts, far beyond where a plain product is 1
    counted = module.relation_counts(kg1, kg2, beliefs, rows=(0, n1), n_threads=2)
    wanted = reference.relation_counts(kg1, kg2, beliefs, rows=(0, n1))
    assert np.array_equal(counted.keys, wanted.keys)
    np.testing.assert_allclose(counted.num, wanted.num, rtol=1e-9)


def assert_all_equal_the_reference(problem):
    """Every backend, and every tier with the same bits."""
    for witnesses in WITNESSES:
        for backend in FAST:
            assert_close(
                run(_backends.resolve(backend), problem, witnesses=witnesses),
                run(reference, problem, witnesses=witnesses),
            )
        expected = run(native, problem, witnesses=witnesses)
        with pytest.MonkeyPatch.context() as patch:
            for tier in _core.tiers():
                patch.setenv("STEA_TIER", tier)
                found = run(native, problem, n_threads=1, witnesses=witnesses)
                assert np.array_equal(found[0], expected[0]) and np.array_equal(found[3], expected[3])
                assert np.array_equal(found[2].num, expected[2].num)


@pytest.mark.parametrize("triples", [1, 3, 4, 5, 8, 9, 12, 13, 16, 17, 33])
def test_rows_around_the_numbers_of_lanes(triples):
    """With parallel edges, a repeated neighbour and a self loop, at every width of the counting kernel's lanes."""
    rng = np.random.default_rng(triples)
    edges = [(0, i % 3, 1 + (i // 2) % 9) for i in range(triples - 1)] + [(0, 0, 0)]
    kg1, kg2 = KG([*edges, (5, 1, 0), (9, 2, 3)]), KG([*edges[::-1], (1, 1, 2), (9, 2, 4)])
    candidates = np.stack([rng.permutation(kg2.num_entities)[:6] for _ in range(kg1.num_entities)]).astype(np.int32)
    beliefs = soft(candidates, rng.random(candidates.shape, dtype=np.float32))
    shape = (2 * kg1.num_relations, 2 * kg2.num_relations)
    relations = RelationAlignment(rng.random(shape, dtype=np.float32), rng.random(shape[::-1], dtype=np.float32))
    assert_all_equal_the_reference((kg1, kg2, candidates, beliefs, relations))


@pytest.mark.parametrize("facts", [7, 8, 9, 31, 32, 33, 300])
def test_long_products_of_the_smallest_factors(facts):
    """Every factor is clamped; what a double can hold is exceeded again and again."""
    kg = KG([(0, i % 2, 1 + i) for i in range(facts)])
    n = kg.num_entities
    candidates = np.stack([np.arange(n), np.full(n, -1)], axis=1).astype(np.int32)
    beliefs = soft(candidates, np.ones(candidates.shape, dtype=np.float32))
    relations = RelationAlignment(np.ones((4, 4), dtype=np.float32), np.ones((4, 4), dtype=np.float32))
    problem = (kg, kg, candidates, beliefs, relations)
    assert_all_equal_the_reference(problem)
    assert run(native, problem)[0][0, 0] == pytest.approx(-2 * facts * np.log(1e-4), rel=1e-5)


@pytest.mark.parametrize("backend", FAST)
def test_blocks_of_rows_give_the_rows_of_the_whole(backend):
    kg1, kg2 = star(60), star(50)
    rng = np.random.default_rng(1)
    candidates = np.stack([rng.permutation(kg2.num_entities)[:5] for _ in range(kg1.num_entities)]).astype(np.int32)
    beliefs = soft(candidates, rng.random(candidates.shape, dtype=np.float32))
    relations = RelationAlignment.uniform(kg1, kg2, 0.3)
    module = _backends.resolve(backend)
    strengths = module.strengths(relations, kg1, kg2)

    def part(begin, end):
        return module.evidence(
            kg1, kg2, candidates[begin:end], beliefs, strengths, forward=True, rows=(begin, end), n_threads=2
        )

    whole = part(0, kg1.num_entities)
    pieces = np.concatenate([part(0, 1), part(1, 33), part(33, 33), part(33, kg1.num_entities)])
    assert np.array_equal(whole, pieces)


@pytest.mark.parametrize("backend", FAST)
def test_more_relations_than_the_dense_corner_holds(backend):
    """Rare relations are looked up in the sorted rows, with the same result."""
    rng = np.random.default_rng(2)
    n, r = 60, 700
    kg1, kg2 = (KG(np.stack([rng.integers(n, size=900), rng.integers(r, size=900), rng.integers(n, size=900)], 1), n, r)
                for _ in range(2))  # fmt: skip
    candidates = np.stack([rng.permutation(n)[:6] for _ in range(n)]).astype(np.int32)
    beliefs = soft(candidates, rng.random(candidates.shape, dtype=np.float32))
    dense = rng.random((2 * r, 2 * r), dtype=np.float32) * (rng.random((2 * r, 2 * r)) < 0.5)
    problem = kg1, kg2, candidates, beliefs, RelationAlignment(dense, dense.T, 0.05)
    module = _backends.resolve(backend)
    for forward in (True, False):
        found, expected = run(module, problem, forward=forward), run(reference, problem, forward=forward)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)


def test_tiny_evidence_keeps_its_relative_precision():
    kg = KG([[0, 0, 1]])
    beliefs = Beliefs(np.array([0, 0, 1]), np.array([1], np.int32), np.array([1e-12], np.float32))
    relations = RelationAlignment(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))
    candidates = np.array([[0], [-1]], np.int32)
    strengths = native.strengths(relations, kg, kg)
    found = native.evidence(kg, kg, candidates, beliefs, strengths, forward=True, rows=(0, 2))
    np.testing.assert_allclose(found[:, 0], [2e-12, 0.0], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("witnesses", WITNESSES)
def test_a_real_pair_equals_the_reference(backend, witnesses, dbp15k):
    from stea_fast.encoders import demo
    from stea_fast.refinement.relations import align_relations
    from stea_fast.refinement.temperature import softmax

    kg1, kg2 = dbp15k.kg1, dbp15k.kg2
    emb1, emb2 = demo.encode(dbp15k, dim=32)
    rows = (1000, 1400)
    ranking = topk(emb1, emb2[:4000], 10, csls=0).forward  # candidates of the right kind at a tenth of the cost
    beliefs = soft(ranking.indices, softmax(ranking.scores, 10.0))
    from stea_fast.refinement.beliefs import transpose

    relations = align_relations(kg1, kg2, beliefs, transpose(beliefs, kg2.num_entities), backend=backend)
    part = ranking.indices[rows[0] : rows[1]]
    module = _backends.resolve(backend)
    common = {"forward": True, "witnesses": witnesses, "n_threads": 2}
    expected, number = reference.evidence_and_witnesses(
        kg1, kg2, part, beliefs, reference.strengths(relations, kg1, kg2), rows=rows, **common
    )
    strengths = module.strengths(relations, kg1, kg2)
    found, counted = module.evidence_and_witnesses(kg1, kg2, part, beliefs, strengths, rows=rows, **common)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-30)
    assert np.array_equal(counted, number)
    assert (expected > 0).mean() > 0.3 and (number > 1).mean() > 0.1
