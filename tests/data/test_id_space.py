"""Graphs that number their entities in one id space: they are split, recognised, and never mistaken for others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast.data.id_space import FEWEST, are_in_one_space
from stea_fast.encoders import demo

PAIR = sf.synthetic_pair(60, seed=0, seed_fraction=0.3)
N = PAIR.kg1.num_entities


def joint_triples(interleaved: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The triples of both graphs and the seeds in common ids: one graph after the other, or odd and even ids."""
    place = (lambda ids, side: 2 * ids + side) if interleaved else (lambda ids, side: ids + side * N)
    triples = []
    for side, kg in enumerate((PAIR.kg1, PAIR.kg2)):
        head, relation, tail = kg.triples.T.astype(np.int64)
        triples.append(np.stack([place(head, side), relation + side * kg.num_relations, place(tail, side)], axis=1))
    seeds = np.stack([place(PAIR.train[:, side], side) for side in (0, 1)], axis=1)
    return triples[0], triples[1], seeds


INTERLEAVED = pytest.mark.parametrize("interleaved", [False, True])
IN_ONE_SPACE = pytest.mark.parametrize("message", [r"one id space.*sf\.split_id_space\(triples1, triples2, seeds\)"])


# --- splitting ---


@INTERLEAVED
def test_split_graphs_count_from_0_and_keep_the_common_ids_for_the_user(interleaved, tmp_path):
    triples1, triples2, seeds = joint_triples(interleaved)
    pair = sf.split_id_space(triples1, triples2, seeds, name="mine")
    assert (pair.kg1.num_triples, pair.kg2.num_triples) == (PAIR.kg1.num_triples, PAIR.kg2.num_triples)
    assert pair.kg2.num_relations == len(np.unique(triples2[:, 1]))
    for kg, ids, triples in ((pair.kg1, pair.ids1, triples1), (pair.kg2, pair.ids2, triples2)):
        assert kg.num_entities == len(ids) <= N
        heads, _, tails = kg.triples.T
        back = {tuple(row) for row in np.stack([ids[heads], ids[tails]], axis=1).tolist()}
        assert back == {(h, t) for h, _, t in triples.tolist()}
    links = np.stack([pair.ids1[pair.train[:, 0]], pair.ids2[pair.train[:, 1]]], axis=1)
    assert links.tolist() == seeds.tolist()
    alignment = sf.align(pair, rounds=0, calibration="none")
    assert {int(row.source) for row in alignment.links.rows()} == set(pair.ids1.tolist())


def test_split_graphs_are_judged_by_test_links_and_do_not_keep_the_order_of_the_ids():
    triples1, triples2, seeds = joint_triples(interleaved=False)
    pair = sf.split_id_space(triples1, triples2, seeds[5:], test=seeds[:5])
    assert len(pair.test) == 5
    assert np.any(np.diff(pair.ids1) < 0) and np.any(np.diff(pair.ids2) < 0)
    ordered = sf.split_id_space(triples1, triples2, seeds, permutation_seed=None)
    assert np.all(np.diff(ordered.ids1) > 0)


def test_rows_of_one_matrix_of_embeddings_are_found_by_the_common_ids():
    triples1, triples2, seeds = joint_triples(interleaved=True)
    embeddings = np.empty((2 * N, 8))
    embeddings[0::2], embeddings[1::2] = np.random.default_rng(0).standard_normal((2, N, 8))
    pair = sf.split_id_space(triples1, triples2, seeds)
    out = sf.Refiner(pair.kg1, pair.kg2, pair.train)(embeddings[pair.ids1], embeddings[pair.ids2])
    assert out.shape[1] == 2


def test_graphs_that_share_ids_are_not_in_one_space():
    with pytest.raises(ValueError, match=r"1 ids, such as 2, are of both graphs.*sf\.make_pair"):
        sf.split_id_space([[0, 0, 1], [1, 0, 2]], [[2, 0, 3]], [[0, 3]])
    with pytest.raises(ValueError, match="2 ids, such as 0, are of both graphs"):
        sf.split_id_space([[0, 0, 1]], [[2, 0, 3]], [[2, 0]])  # the columns of the links are exchanged
    with pytest.raises(ValueError, match="seeds links source entity 0 2 times"):
        sf.split_id_space([[0, 0, 1]], [[2, 0, 3]], [[0, 2], [0, 3]])
    with pytest.raises(ValueError, match=r"triples2 must have shape \(n, 3\)"):
        sf.split_id_space([[0, 0, 1]], [[2, 3]], [[0, 2]])


# --- recognising ---


@INTERLEAVED
@IN_ONE_SPACE
def test_a_pair_of_graphs_in_one_space_is_refused_with_the_way_out(interleaved, message):
    triples1, triples2, seeds = joint_triples(interleaved)
    kg1, kg2 = sf.KG(triples1), sf.KG(triples2)
    for call in (sf.make_pair, sf.Refiner):
        with pytest.raises(ValueError, match=message):
            call(kg1, kg2, seeds)
    with pytest.raises(ValueError, match=message):
        sf.SelfTraining(replace(PAIR, kg1=kg1, kg2=kg2, train=seeds))


@INTERLEAVED
@IN_ONE_SPACE
def test_candidates_that_are_the_entity_itself_are_refused(interleaved, message):
    triples1, triples2, seeds = joint_triples(interleaved)
    kg1, kg2 = sf.KG(triples1, 2 * N), sf.KG(triples2, 2 * N)
    embeddings = np.random.default_rng(0).standard_normal((2 * N, 8))
    everything = sf.topk(embeddings, embeddings, k=5)
    with pytest.raises(ValueError, match=f"an entity itself; .*{message.partition('.*')[2]}"):
        sf.refine(everything, kg1, kg2, seeds=seeds)
    with pytest.raises(ValueError, match=message):
        sf.refine(everything.forward, kg1, kg2)


def test_candidates_of_the_other_graph_are_welcome_whatever_their_ids():
    triples1, triples2, seeds = joint_triples(interleaved=False)
    forward = demo.candidates(PAIR).forward
    nothing = np.full((N, forward.indices.shape[1]), -1)
    indices = np.concatenate([forward.indices + N, nothing])
    scores = np.concatenate([forward.scores, 0.0 * forward.scores])
    out = sf.refine((indices, scores), sf.KG(triples1, 2 * N), sf.KG(triples2, 2 * N), seeds=seeds)
    plain = sf.refine(forward, PAIR.kg1, PAIR.kg2, seeds=PAIR.train)
    same = out.forward.indices[:N, 0] - N == plain.forward.indices[:, 0]
    assert same.mean() > 0.9


@IN_ONE_SPACE
def test_the_union_of_both_graphs_given_twice_is_refused(message):
    triples1, triples2, seeds = joint_triples(interleaved=False)
    union = sf.KG(np.concatenate([triples1, triples2]))
    message = "one and the same graph.*" + message.partition(".*")[2]
    for call in (sf.make_pair, sf.Refiner):
        with pytest.raises(ValueError, match=message):
            call(union, union, seeds)
    copy = sf.KG(union.triples)
    with pytest.raises(ValueError, match=message):
        sf.refine((np.zeros((2 * N, 1), dtype=int), np.ones((2 * N, 1))), union, copy, seeds=seeds)


def test_ids_that_are_counted_on_from_the_other_graph_get_a_hint():
    shifted = PAIR.train + np.array([0, N])
    with pytest.raises(ValueError, match=rf"seeds\[:, 1\] holds .*counted on from the {N} sources: subtract {N}, or"):
        sf.make_pair(PAIR.kg1, PAIR.kg2, shifted)
    forward = demo.candidates(PAIR).forward
    with pytest.raises(ValueError, match=r"forward\.indices holds .*sf\.split_id_space"):
        sf.refine((forward.indices + N, forward.scores), PAIR.kg1, PAIR.kg2)
    with pytest.raises(ValueError) as plain:
        sf.make_pair(PAIR.kg1, PAIR.kg2, [[0, 0], [1, PAIR.kg2.num_entities]])
    assert "subtract" not in str(plain.value)


def test_the_files_of_a_published_dataset_are_recognised_and_its_loaded_pair_is_not(data_folder, dbp15k):
    folder = data_folder / "dbp15k_zh_en"
    raw = [sf.KG(np.loadtxt(folder / f"triples_{number}", dtype=np.int64)) for number in (1, 2)]
    assert are_in_one_space(*raw)
    assert not are_in_one_space(dbp15k.kg1, dbp15k.kg2)


# --- never mistaken ---


def test_a_graph_and_itself_are_no_union():
    seeds = np.stack([np.arange(20)] * 2, axis=1)
    assert len(sf.make_pair(PAIR.kg1, PAIR.kg1, seeds).train) == 20
    identity = np.arange(N)[:, None]
    out = sf.refine((identity, np.ones((N, 1))), PAIR.kg1, PAIR.kg1, seeds=seeds)
    assert out.forward.indices[:, 0].tolist() == identity[:, 0].tolist()


def test_versions_of_a_graph_with_the_same_ids_are_welcome():
    triples = PAIR.kg1.triples
    old, new = sf.KG(triples[::2], N), sf.KG(triples[1::2], N)
    identity = np.arange(N)[:, None]
    assert len(sf.refine((identity, np.ones((N, 1))), old, new).forward.indices) == N


@pytest.mark.parametrize("alone", [N // 2, 2 * N])
def test_a_graph_whose_first_entities_have_no_triples_is_welcome(alone):
    """Sorted by degree, for example: how many they are has nothing to do with the other graph."""
    kg2 = sf.KG(PAIR.kg2.triples + np.array([alone, 0, alone], dtype=np.int32))
    assert len(sf.make_pair(PAIR.kg1, kg2, [[0, 0]]).train) == 1


def test_few_entities_prove_nothing():
    path = [[i, 0, i + 1] for i in range(FEWEST - 2)]
    kg1, kg2 = sf.KG(path), sf.KG([[h + FEWEST, r, t + FEWEST] for h, r, t in path])
    assert len(sf.make_pair(kg1, kg2, [[0, FEWEST]]).train) == 1


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40), st.floats(0.05, 1.0))
def test_graphs_that_each_count_from_0_are_never_taken_for_one_space(seed, n1, n2, share):
    """Whatever entities have no triples: each graph has its own, and they begin anywhere."""
    rng = np.random.default_rng(seed)
    graphs = []
    for n in (n1, n2):
        used = np.flatnonzero(rng.random(n) < share)
        if not len(used):
            used = np.array([0])
        ends = rng.choice(used, size=(3 * n, 2))
        graphs.append(sf.KG(np.insert(ends, 1, 0, axis=1), n))
    assert not are_in_one_space(*graphs)
