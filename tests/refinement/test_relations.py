"""Relation alignment: counts by hand, smoothing, inverses, row blocks, and given alignments."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, csr_matrix

import stea_fast as sf
from stea_fast import _backends
from stea_fast._backends import native
from stea_fast._backends.counts import RelationCounts, containment, merge
from stea_fast.data.sealed import reveal
from stea_fast.encoders.demo import candidates
from stea_fast.evaluation.oracle import oracle_relations
from stea_fast.refinement import beliefs
from stea_fast.types import Beliefs, RelationAlignment

# Graph 1 has one relation r (inverse: 1); graph 2 has A = 0 and B = 1 (inverses: 2 and 3).
KG1 = sf.KG([[0, 0, 1], [2, 0, 3], [2, 0, 4]], 5, 1)
KG2 = sf.KG([[0, 0, 1], [2, 0, 3], [2, 0, 4], [1, 0, 4], [3, 1, 2]], 5, 2)


def believe(*triples: tuple[int, int, float], rows: int = 5) -> Beliefs:
    sources, targets, weights = map(np.array, zip(*triples, strict=True))
    return beliefs.from_pairs(sources, targets, weights, rows)


BELIEFS1 = believe((0, 0, 1.0), (1, 1, 0.5), (2, 2, 0.8), (3, 3, 0.5), (3, 4, 0.25))
BELIEFS2 = believe((0, 0, 0.9), (1, 1, 0.5), (2, 2, 1.0), (3, 3, 0.5), (4, 4, 1.0))


@pytest.fixture(params=["native", "numba", "reference"])
def backend(request) -> str:
    if not _backends.status(request.param).usable:
        pytest.skip(_backends.status(request.param).detail)
    return request.param


def certain(kg1: sf.KG, kg2: sf.KG) -> tuple[Beliefs, Beliefs]:
    """Every entity is the one with the same id."""
    ids = np.arange(min(kg1.num_entities, kg2.num_entities))
    weights = np.ones(len(ids))
    return (
        beliefs.from_pairs(ids, ids, weights, kg1.num_entities),
        beliefs.from_pairs(ids, ids, weights, kg2.num_entities),
    )


def soft_beliefs(pair: sf.Pair) -> tuple[Beliefs, Beliefs]:
    found = candidates(pair, 4)
    shares = np.array([0.5, 0.25, 0.125, 0.0625])
    forward, backward = (
        beliefs.soft(side.indices, np.broadcast_to(shares, side.indices.shape))
        for side in (found.forward, found.backward)
    )
    return forward, backward


def test_containment_is_the_share_of_statements_that_the_other_relation_makes_too(backend):
    # r(0, 1) is A(0, 1) with 1·0.5. r(2, 3) is A(2, 3) with 0.8·0.5 or A(2, 4) with 0.8·0.25, in all
    # 1 - 0.6·0.8 = 0.52, and B⁻(2, 3) with 0.4. Nothing is known of the tail of r(2, 4).
    found = sf.align_relations(KG1, KG2, BELIEFS1, BELIEFS2, smoothing=0.0, backend=backend)
    expected = np.zeros((2, 4))
    expected[0, 0] = expected[1, 2] = 1.02 / 1.02
    expected[0, 3] = expected[1, 1] = 0.4 / 1.02
    np.testing.assert_allclose(found.sub12.toarray(), expected, rtol=1e-6)


def test_containment_the_other_way_counts_the_statements_of_the_second_graph(backend):
    # A: 0.9·0.5 and 1·0.5 and 1·1 are made by r; A(1, 4), 0.5·1, is not. B(3, 2), 0.5·1, is r⁻.
    found = sf.align_relations(KG1, KG2, BELIEFS1, BELIEFS2, smoothing=0.0, backend=backend)
    expected = np.zeros((4, 2))
    expected[0, 0] = expected[2, 1] = 1.95 / 2.45
    expected[1, 1] = expected[3, 0] = 0.5 / 0.5
    np.testing.assert_allclose(found.sub21.toarray(), expected, rtol=1e-6)


def test_smoothing_pulls_towards_the_prior_and_stores_nothing_unseen(backend):
    found = sf.align_relations(KG1, KG2, BELIEFS1, BELIEFS2, smoothing=2.0, prior=0.25, backend=backend)
    assert found.sub12[0, 0] == pytest.approx((1.02 + 0.5) / 3.02, rel=1e-6)
    assert found.sub12[0, 3] == pytest.approx((0.4 + 0.5) / 3.02, rel=1e-6)
    assert found.sub21[1, 1] == pytest.approx((0.5 + 0.5) / 2.5, rel=1e-6)
    assert (found.sub12.nnz, found.sub21.nnz) == (4, 4)


def test_a_parallel_statement_and_a_self_loop_count_for_each_relation(backend):
    kg1 = sf.KG([[0, 0, 0], [0, 0, 1]])
    kg2 = sf.KG([[0, 0, 0], [0, 1, 1], [0, 0, 1]])
    found = sf.align_relations(kg1, kg2, *certain(kg1, kg2), smoothing=0.0, backend=backend)
    # The loop is its own inverse: r, and A, hold of (0, 0) in both directions.
    np.testing.assert_allclose(found.sub12.toarray()[0], [1, 0.5, 0.5, 0], rtol=1e-6)
    np.testing.assert_allclose(found.sub21.toarray()[:2], [[1, 0.5], [1, 0]], rtol=1e-6)


def test_a_sub_relation_is_found_inside_its_super_relation(backend):
    ends = np.arange(40)
    parent = np.stack([ends, np.zeros(40, int), (ends + 7) % 40], axis=1)
    mother_or_father = np.stack([ends, ends % 4 != 0, (ends + 7) % 40], axis=1)
    kg1, kg2 = sf.KG(parent), sf.KG(mother_or_father)
    found = sf.align_relations(kg1, kg2, *certain(kg1, kg2), backend=backend)
    assert found.sub21[0, 0] > 0.9 and found.sub21[1, 0] > 0.9
    assert found.sub12[0, 0] == pytest.approx((10 + 0.1) / 41, rel=1e-5)
    assert found.sub12[0, 1] == pytest.approx((30 + 0.1) / 41, rel=1e-5)


def test_oracle_relations_are_the_plain_shares_over_the_true_links():
    pair = sf.synthetic_pair(200, seed=3)
    counterpart = dict(reveal(pair.links).tolist())
    linked = [(h, r, t) for h, r, t in pair.kg1.triples.tolist() if h in counterpart and t in counterpart]
    made, total = Counter(), Counter(r for _, r, _ in linked)
    targets = {tuple(triple) for triple in pair.kg2.triples.tolist()}
    for (h, r, t), other in product(linked, range(pair.kg2.num_relations)):
        made[r, other] += (counterpart[h], other, counterpart[t]) in targets
    shares = [made[r, other] / total[r] for r, other in made]
    assert min(shares) == 0.0 and max(shares) > 0.5
    found = oracle_relations(pair).sub12.toarray()
    np.testing.assert_allclose([found[key] for key in made], shares, rtol=1e-6)


def test_the_half_of_the_inverses_repeats_the_first_half(backend):
    pair = sf.synthetic_pair(60, 1, num_relations=6)
    found = sf.align_relations(pair.kg1, pair.kg2, *soft_beliefs(pair), backend=backend)
    for matrix in (found.sub12.toarray(), found.sub21.toarray()):
        rows, columns = matrix.shape
        inverted = np.roll(np.roll(matrix, rows // 2, axis=0), columns // 2, axis=1)
        np.testing.assert_array_equal(matrix, inverted)
        assert np.count_nonzero(matrix) > 20


def test_without_beliefs_nothing_is_known_of_any_relation(backend):
    nothing = Beliefs(np.zeros(6, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    found = sf.align_relations(KG1, KG2, nothing, nothing, backend=backend)
    assert (found.sub12.nnz, found.sub21.nnz) == (0, 0)
    assert (found.sub12.shape, found.sub21.shape) == ((2, 4), (4, 2))


@pytest.mark.parametrize("cuts", [[0, 1, 1, 8, 61, 90], [0, 90], [*range(0, 90, 13), 90]])
def test_counts_of_row_blocks_add_up_to_the_whole_exactly(backend, cuts):
    pair = sf.synthetic_pair(90, 2, num_relations=6)
    kernels = _backends.resolve(backend)
    forward, backward = soft_beliefs(pair)
    for source, target, belief in ((pair.kg1, pair.kg2, forward), (pair.kg2, pair.kg1, backward)):
        whole = kernels.relation_counts(source, target, belief, rows=(0, 90))
        count = partial(kernels.relation_counts, source, target, belief, n_threads=2)
        merged = merge(count(rows=block) for block in pairwise(cuts))
        np.testing.assert_array_equal(merged.keys, whole.keys)
        np.testing.assert_array_equal(merged.num, whole.num)
        np.testing.assert_array_equal(merged.den, whole.den)
        assert merged.scale_bits == whole.scale_bits and len(whole.keys) > 20


def test_of_too_many_pairs_of_relations_those_that_count_most_are_kept(backend, monkeypatch):
    pair = sf.synthetic_pair(90, 2, num_relations=6)
    count = partial(_backends.resolve(backend).relation_counts, pair.kg1, pair.kg2, soft_beliefs(pair)[0], rows=(0, 90))
    whole = count()
    monkeypatch.setattr("stea_fast._backends.counts.MOST_PAIRS", 10)
    few = count()
    assert len(few.keys) == 10 and (np.diff(few.keys) > 0).all()
    assert sorted(few.num) == sorted(whole.num)[-10:]


def test_dense_and_sparse_matrices_make_the_same_alignment():
    dense = np.array([[0.5, 0.0, 0.0, 0.1], [0.0, 0.1, 0.5, 0.0]])
    for convert in (np.asarray, np.ndarray.tolist, csr_array, csr_matrix, coo_array):
        found = RelationAlignment(convert(dense), convert(dense.T))
        np.testing.assert_allclose(found.sub12.toarray(), dense, rtol=1e-6)
        np.testing.assert_allclose(found.sub21.toarray(), dense.T, rtol=1e-6)
        assert found.sub12.dtype == np.float32 and found.sub12.nnz == 4


def test_a_given_matrix_is_copied_and_stays_as_it_was():
    given = csr_array((np.array([0.5, 0.2, 0.0]), np.array([2, 0, 1]), np.array([0, 3, 3])), shape=(2, 3))
    before = [array.copy() for array in (given.data, given.indices, given.indptr)]
    found = RelationAlignment(given, np.zeros((3, 2)))
    for array, old in zip((given.data, given.indices, given.indptr), before, strict=True):
        np.testing.assert_array_equal(array, old)
    np.testing.assert_allclose(found.sub12.toarray(), [[0.2, 0, 0.5], [0, 0, 0]], rtol=1e-6)


def test_the_alignment_seen_from_the_other_graph_exchanges_the_matrices():
    found = RelationAlignment([[0.5, 0.25]], [[0.125], [1.0]], default=0.3)
    other = found.swapped()
    assert other.sub12.toarray().tolist() == [[0.125], [1.0]]
    assert other.sub21.toarray().tolist() == [[0.5, 0.25]]
    assert other.default == 0.3


def test_a_uniform_alignment_equals_a_full_matrix_of_that_probability(backend):
    pair = sf.synthetic_pair(40, 3, num_relations=4)
    shape = (2 * pair.kg1.num_relations, 2 * pair.kg2.num_relations)
    full = RelationAlignment(np.full(shape, 0.1), np.full(shape[::-1], 0.1))
    uniform = RelationAlignment.uniform(pair.kg1, pair.kg2, 0.1)
    assert (uniform.sub12.nnz, uniform.default) == (0, 0.1)
    one, other = (
        sf.refine(candidates(pair, 5), pair.kg1, pair.kg2, seeds=pair.train, relations=given, backend=backend)
        for given in (full, uniform)
    )
    np.testing.assert_allclose(one.forward.evidence, other.forward.evidence, rtol=1e-6)
    np.testing.assert_allclose(one.backward.evidence, other.backward.evidence, rtol=1e-6)
    assert one.forward.evidence.max() > 0.1


@pytest.mark.parametrize(
    ("sub12", "sub21", "default", "error", "message"),
    [
        ([[0.5, 0.5]], [[0.5, 0.5]], 0.0, ValueError, r"sub21 .* \(2, 1\); got \(1, 2\)"),
        ([0.5], [[0.5]], 0.0, ValueError, "sub12 must be a matrix"),
        ([[1.5]], [[0.5]], 0.0, ValueError, r"sub12 must hold probabilities in \[0, 1\]"),
        ([[0.5]], [[-0.5]], 0.0, ValueError, r"sub21 must hold probabilities in \[0, 1\]"),
        ([[np.nan]], [[0.5]], 0.0, ValueError, "sub12 must hold probabilities"),
        ([[1j]], [[0.5]], 0.0, TypeError, "sub12 must hold numbers, got dtype complex"),
        ([["a"]], [[0.5]], 0.0, TypeError, "sub12 must hold numbers"),
        ([[0.5]], [[0.5]], 1.5, ValueError, "default must be"),
        ([[0.5]], [[0.5]], "0", TypeError, "default must be a number"),
    ],
)
def test_an_unusable_given_alignment_is_an_error(sub12, sub21, default, error, message):
    with pytest.raises(error, match=message):
        RelationAlignment(sub12, sub21, default)


WRAPPING = np.array([0, 2**63 - 1, -(2**63), 1])  # every difference is positive in 64 bits


@pytest.mark.parametrize("kind", [csr_array, csc_array, bsr_array])
@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("indices", np.array([0, 3, 1]), r"sub12\.indices holds 3, but there are only 3"),
        ("indices", np.array([0, -1, 1]), r"sub12\.indices holds -1"),
        ("indptr", np.array([0, 2, 1, 3]), r"sub12\.indptr must be 4 increasing offsets"),
        ("indptr", np.array([0, 1, 2, 9]), r"sub12\.indptr must be 4 increasing offsets"),
        ("indptr", np.array([1, 1, 2, 3]), r"sub12\.indptr must be 4 increasing offsets"),
        ("indptr", WRAPPING, r"sub12\.indptr must be 4 increasing offsets"),
    ],
)
def test_a_sparse_matrix_that_leads_outside_itself_is_an_error(kind, part, values, message):
    matrix = kind(np.eye(3, dtype=np.float32) / 2)
    setattr(matrix, part, values)
    with pytest.raises(ValueError, match=message):
        RelationAlignment(matrix, np.zeros((3, 3)))


def test_places_outside_a_matrix_of_places_are_an_error():
    matrix = coo_array(np.eye(3, dtype=np.float32) / 2)
    matrix.coords = (np.array([0, 1, 2]), np.array([0, 1, 3]))
    with pytest.raises(ValueError, match=r"sub12\.col holds 3, but there are only 3"):
        RelationAlignment(matrix, np.zeros((3, 3)))


def changed(**parts: object) -> Beliefs:
    arrays = {"indptr": BELIEFS1.indptr, "targets": BELIEFS1.targets, "weights": BELIEFS1.weights}
    return Beliefs(**{**arrays, **parts})


@pytest.mark.parametrize(
    ("belief", "options", "error", "message"),
    [
        (changed(targets=np.array([0, 1, 2, 3, 5], np.int32)), {}, ValueError, r"beliefs1\.targets holds 5"),
        (changed(targets=np.array([0, 1, -1, 3, 4], np.int32)), {}, ValueError, "beliefs1.targets holds -1"),
        (changed(targets=np.array([0, 1, 2], np.int32)), {}, ValueError, "beliefs1 must have 5 targets"),
        (changed(targets=np.arange(5)), {}, TypeError, r"beliefs1\.targets .* int32, got int64"),
        (changed(indptr=np.array([0, 1, 2, 3, 5])), {}, ValueError, r"beliefs1\.indptr must be 6"),
        (changed(indptr=np.array([0, 9, 2, 3, 5, 5])), {}, ValueError, r"beliefs1\.indptr .* increasing"),
        (
            changed(indptr=np.array([0, 2**63 - 1, -(2**63), -1, 2, 5])),
            {},
            ValueError,
            r"beliefs1\.indptr .* increasing",
        ),
        (changed(weights=np.full(5, 1.5, np.float32)), {}, ValueError, r"beliefs1\.weights"),
        (changed(weights=np.full(5, np.nan, np.float32)), {}, ValueError, r"beliefs1\.weights"),
        (None, {}, TypeError, r"beliefs1\.indptr"),
        (BELIEFS1, {"smoothing": -1.0}, ValueError, "smoothing must be"),
        (BELIEFS1, {"prior": 1.5}, ValueError, "prior must be"),
        (BELIEFS1, {"backend": "fast"}, ValueError, "backend must be"),
    ],
)
def test_unusable_beliefs_and_options_are_an_error(belief, options, error, message):
    with pytest.raises(error, match=message):
        sf.align_relations(KG1, KG2, belief, BELIEFS2, **options)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_native_probabilities_are_those_of_numpy(seed, smoothing):
    """To the bit, with empty rows, rows without inverses, and none at all."""
    rng = np.random.default_rng(seed)
    r1, r2 = 5, 4
    keys = np.sort(rng.permutation(r1 * 2 * r2)[: 5 * seed]).astype(np.int64)
    counts = RelationCounts(keys, rng.integers(1, 99, len(keys)), rng.integers(0, 150, r1), 5)
    found = native.containment(counts, r2, smoothing, 0.1)
    wanted = containment(counts, r2, smoothing, 0.1)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, part), getattr(wanted, part))
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
