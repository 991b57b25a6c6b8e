"""The synthetic pair: what it promises about size, noise, links and determinism."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from stea_fast.data import synthetic
from stea_fast.data.graph import KG
from stea_fast.data.pair import Pair
from stea_fast.data.sealed import reveal
from stea_fast.data.synthetic import synthetic_pair


def fingerprint(pair: Pair) -> str:
    digest = hashlib.sha256()
    for array in (pair.kg1.triples, pair.kg2.triples, pair.links, pair.train, pair.test):
        digest.update(np.ascontiguousarray(reveal(array), dtype="<i8").tobytes())
    return digest.hexdigest()


def counterparts(pair: Pair) -> np.ndarray:
    """int64 [n]: the true target of every source entity, or -1."""
    target = np.full(pair.kg1.num_entities, -1)
    links = reveal(pair.links)
    target[links[:, 0]] = links[:, 1]
    return target


def kept_edges(pair: Pair) -> float:
    """The share of edges between linked source entities that join their counterparts as well."""
    target, n = counterparts(pair), pair.kg2.num_entities
    ends = target[pair.kg1.triples[:, [0, 2]]]
    ends = ends[(ends >= 0).all(axis=1)]
    other = pair.kg2.triples.astype(np.int64)
    return float(np.isin(ends[:, 0] * n + ends[:, 1], other[:, 0] * n + other[:, 2]).mean())


def adjacency(kg: KG) -> csr_array:
    """[n, n]: a common neighbour says the less, the more neighbours it has."""
    weights = 1.0 / kg.degrees[kg.neighbors]
    return csr_array((weights, kg.neighbors, kg.indptr), shape=(kg.num_entities, kg.num_entities))


def test_the_same_arguments_give_the_same_pair():
    assert fingerprint(synthetic_pair(500, 3)) == fingerprint(synthetic_pair(500, 3))
    assert fingerprint(synthetic_pair(500, 3)) != fingerprint(synthetic_pair(500, 4))


@pytest.mark.parametrize("profile", ["dense", "dbp1m"])
def test_how_much_is_made_at_a_time_changes_nothing(monkeypatch, profile):
    whole = synthetic_pair(500, seed=1, profile=profile)
    monkeypatch.setattr(synthetic, "FACTS_AT_ONCE", 7)
    monkeypatch.setattr("stea_fast.data.adjacency.AT_ONCE", 11)
    assert fingerprint(synthetic_pair(500, seed=1, profile=profile)) == fingerprint(whole)


def test_making_a_pair_takes_little_beside_the_pair(tmp_path):
    """Of a hundred thousand entities; what a process without a pair holds is measured beside it."""
    code = (
        "import sys, tracemalloc; from stea_fast.data.synthetic import synthetic_pair; synthetic_pair(100)\n"
        "tracemalloc.start(); pair = synthetic_pair(100_000, profile='dense')\n"
        "print(*tracemalloc.get_traced_memory())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    left, most = map(int, done.stdout.split())
    assert most < 3.2 * left


def test_the_default_pair_is_the_same_on_every_machine():
    assert fingerprint(synthetic_pair()) == "4d2795d12a02e1bc05e3c4579fa89604d2fed7c82fe5108c82cee5c744a00809"


@pytest.mark.parametrize("num_entities", [10, 11, 137, 200_000])
def test_both_graphs_have_exactly_the_entities_asked_for(num_entities):
    pair = synthetic_pair(num_entities)
    assert pair.kg1.num_entities == pair.kg2.num_entities == num_entities
    assert pair.name == f"synthetic-{num_entities}"
    assert pair.kg1.entity_names is None and pair.ids1 is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("options", [{}, {"num_relations": 1}, {"mean_degree": 1}, {"overlap": 0}, {"edge_noise": 1}])
def test_the_smallest_pairs_are_sound(seed, options):
    pair = synthetic_pair(10, seed, **options)
    assert len(pair.train) >= 1
    links = reveal(pair.links)
    assert len(np.unique(links[:, 0])) == len(np.unique(links[:, 1])) == len(links)


def test_a_pair_like_dbp1m_is_sparse_and_half_of_its_edges_are_in_both_graphs():
    pair = synthetic_pair(20_000, profile="dbp1m")
    assert 4.5 < pair.kg1.degrees.mean() < 5.5
    assert 0.4 < kept_edges(pair) < 0.6
    assert len(pair.links) == 15_000
    degrees = np.sort(pair.kg1.degrees)
    assert degrees[len(degrees) // 4] <= 2 and degrees[-1] > 50 * degrees.mean()


def test_a_number_that_is_given_goes_before_the_profile():
    assert len(synthetic_pair(1000, profile="dbp1m", overlap=0.5).links) == 500


@pytest.mark.parametrize(("overlap", "links"), [(1.0, 1000), (0.8, 800), (0.25, 250), (0.0, 1)])
def test_the_rest_of_each_graph_has_no_counterpart(overlap, links):
    pair = synthetic_pair(1000, overlap=overlap)
    found = reveal(pair.links)
    assert found.shape == (links, 2)
    for side in (0, 1):
        assert len(np.unique(found[:, side])) == links


def test_the_split_is_disjoint_complete_and_of_the_size_asked_for():
    pair = synthetic_pair(1000, seed_fraction=0.3)
    parts = [set(map(tuple, reveal(part).tolist())) for part in (pair.links, pair.train, pair.test)]
    assert len(pair.train) == 240
    assert parts[1] | parts[2] == parts[0]
    assert not parts[1] & parts[2]
    assert pair.valid.shape == (0, 2)
    assert {reveal(part).dtype for part in (pair.links, pair.train, pair.test, pair.valid)} == {np.dtype(np.int64)}


def test_no_seeds_can_be_asked_for():
    pair = synthetic_pair(100, seed_fraction=0.0)
    assert pair.train.shape == (0, 2) and len(pair.test) == len(pair.links) == 80


def test_seeds_are_no_more_popular_than_other_entities():
    pair = synthetic_pair(20_000, overlap=1.0)
    seeds, others = (np.median(pair.kg1.degrees[reveal(part)[:, 0]]) for part in (pair.train, pair.test))
    assert abs(seeds - others) <= 1


def test_ids_say_nothing_about_the_alignment():
    pair = synthetic_pair(20_000)
    sources, targets = reveal(pair.links).T
    assert abs(np.corrcoef(sources, targets)[0, 1]) < 0.03
    assert abs(np.corrcoef(sources, pair.kg1.degrees[sources])[0, 1]) < 0.03


@pytest.mark.parametrize("mean_degree", [1.0, 3.0, 6.0, 15.0])
def test_the_number_of_triples_follows_the_mean_degree(mean_degree):
    pair = synthetic_pair(5000, mean_degree=mean_degree)
    for kg in (pair.kg1, pair.kg2):
        assert kg.num_triples / 5000 == pytest.approx(mean_degree, rel=0.05)


def test_a_few_hubs_have_most_of_the_neighbours():
    stats = synthetic_pair(20_000).kg1.degree_stats()
    assert stats.maximum > 30 * stats.mean
    assert stats.median < stats.mean


def test_nearly_every_entity_has_a_triple():
    pair = synthetic_pair(20_000)
    assert pair.kg1.degree_stats().isolated < 20
    assert pair.kg2.degree_stats().isolated < 20


def test_no_entity_is_its_own_neighbour():
    pair = synthetic_pair(10, mean_degree=20)
    assert (pair.kg1.triples[:, 0] != pair.kg1.triples[:, 2]).all()


def test_relations_range_from_nearly_one_to_one_to_one_to_many():
    kg = synthetic_pair(20_000).kg1
    assert (np.minimum(kg.functionality, kg.inverse_functionality) > 0.7).any()
    assert kg.functionality.min() < 0.3
    assert (kg.functionality[: kg.num_relations] < 0.6).any()
    assert (kg.inverse_functionality[: kg.num_relations] < 0.6).any()


def test_without_noise_the_linked_parts_are_the_same_graph():
    assert kept_edges(synthetic_pair(2000, edge_noise=0.0)) == 1.0


@pytest.mark.parametrize("edge_noise", [0.1, 0.3])
def test_noise_drops_and_adds_its_share_of_the_edges(edge_noise):
    kept = kept_edges(synthetic_pair(5000, edge_noise=edge_noise, overlap=1.0))
    assert kept == pytest.approx((1 - edge_noise) ** 2, abs=0.02)


def test_relations_of_the_second_graph_are_split_merged_or_the_same():
    pair = synthetic_pair(5000, edge_noise=0.0, overlap=1.0, num_relations=40)
    target, n = counterparts(pair), pair.kg2.num_entities
    where = {(h * n + t): r for h, r, t in pair.kg2.triples.tolist()}
    votes = np.zeros((40, pair.kg2.num_relations))
    for h, r, t in pair.kg1.triples.tolist():
        votes[r, where[int(target[h]) * n + int(target[t])]] += 1
    contains = votes > 0.05 * votes.sum(axis=1, keepdims=True)  # the odd pair of entities has two relations
    assert pair.kg2.num_relations == 40 + 10 - 5
    assert np.bincount(contains.sum(axis=1)).tolist() == [0, 30, 10]  # ten are split
    assert np.bincount(contains.sum(axis=0)).tolist() == [0, 40, 5]  # five are two merged ones


def test_neighbours_alone_find_most_links_from_a_tenth_of_them():
    pair = synthetic_pair(1000)
    known = pair.train
    left, right = adjacency(pair.kg1), adjacency(pair.kg2)
    for _ in range(8):
        belief = csr_array((np.ones(len(known)), known.T), shape=(1000, 1000))
        scores = (left @ belief @ right.T).toarray()
        scores[pair.train[:, 0]], scores[:, pair.train[:, 1]] = 0, 0
        scores[pair.train[:, 0], pair.train[:, 1]] = np.inf
        best, back = scores.argmax(axis=1), scores.argmax(axis=0)
        mutual = np.flatnonzero((back[best] == np.arange(1000)) & (scores.max(axis=1) > 0))
        known = np.stack([mutual, best[mutual]], axis=1)
    sources, targets = reveal(pair.test).T
    assert (best[sources] == targets).mean() > 0.8


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_entities": 9}, ValueError, "num_entities must be between 10"),
        ({"num_entities": 20.0}, TypeError, "num_entities must be an integer"),
        ({"seed": -1}, ValueError, "seed must be between 0"),
        ({"num_relations": 0}, ValueError, "num_relations must be between 1"),
        ({"mean_degree": 0.5}, ValueError, "mean_degree must be a finite number between 1.0"),
        ({"overlap": 1.1}, ValueError, "overlap must be a finite number between 0.0 and 1.0"),
        ({"edge_noise": -0.1}, ValueError, "edge_noise must be a finite number"),
        ({"seed_fraction": -0.1}, ValueError, "seed_fraction must be a finite number between 0.0 and 1.0"),
    ],
)
def test_a_wrong_argument_is_named(options, error, message):
    with pytest.raises(error, match=message):
        synthetic_pair(**options)


def test_names_are_spelt_alike_up_to_noise_and_leave_the_graphs_as_they_are():
    named, plain = synthetic_pair(3000, 5, name_noise=0.1), synthetic_pair(3000, 5)
    assert fingerprint(named) == fingerprint(plain) and plain.names1 is None
    links = reveal(named.links)
    same = [named.names1.of(source) == named.names2.of(target) for source, target in links.tolist()]
    assert 0.05 < np.mean(same) < 0.35
    shifted = np.roll(links[:, 1], 1)
    assert np.mean([named.names1.of(s) == named.names2.of(t) for s, t in zip(links[:, 0], shifted, strict=True)]) < 0.01


def test_names_without_noise_are_equal_and_the_same_seed_gives_the_same_names():
    pair, again = (synthetic_pair(500, 1, name_noise=0.0) for _ in range(2))
    links = reveal(pair.links)
    assert all(pair.names1.of(source) == pair.names2.of(target) for source, target in links.tolist())
    assert pair.names1.text == again.names1.text and pair.names2.text == again.names2.text
    assert pair.names1.text != synthetic_pair(500, 2, name_noise=0.0).names1.text


@pytest.mark.parametrize("noise", [-0.1, 1.5])
def test_noise_of_names_is_a_share(noise):
    with pytest.raises(ValueError, match="name_noise"):
        synthetic_pair(100, name_noise=noise)
