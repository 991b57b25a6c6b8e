"""The knowledge graph: closure, functionality, immutability, files, and what it refuses."""

from __future__ import annotations

import copy
import json
import os
import pickle

import numpy as np
import pytest

from stea_fast.data.graph import KG

# Relation 0 leads from 0 and 1 to 2 and from 0 to 3; relation 1 from 3 to itself. Entity 4 has no triples.
TRIPLES = [[0, 0, 2], [1, 0, 2], [0, 0, 3], [3, 1, 3]]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.fixture
def kg() -> KG:
    return KG(TRIPLES, 5, 2)


@pytest.fixture
def named() -> KG:
    return KG(TRIPLES, 5, 2, entity_names=["Köln", "", "C", "D 🙂", "E"], relation_names=["in", "is"])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_integer_dtype_gives_the_same_graph(kg, dtype):
    assert KG(np.array(TRIPLES, dtype=dtype), 5, 2) == kg


def test_ids_near_the_end_of_a_narrow_dtype_do_not_wrap():
    kg = KG(np.array([[250, 200, 255]], dtype=np.uint8))
    assert (kg.num_entities, kg.num_relations) == (256, 201)
    assert kg.edges_of(255).tolist() == [[250, 401]]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_torch_tensors_give_the_same_graph(kg, dtype):
    torch = pytest.importorskip("torch")
    assert KG(torch.tensor(TRIPLES, dtype=getattr(torch, dtype)), 5, 2) == kg


def test_arrays_in_any_memory_layout_give_the_same_graph(kg):
    wide = np.zeros((8, 6), dtype=np.int64)
    wide[::2, ::2] = TRIPLES
    assert KG(wide[::2, ::2], 5, 2) == kg
    assert KG(np.asfortranarray(TRIPLES), 5, 2) == kg


def test_sizes_not_given_follow_from_the_largest_ids():
    kg = KG(TRIPLES)
    assert (kg.num_entities, kg.num_relations, kg.num_triples) == (4, 2, 4)


def test_duplicate_triples_count_once(kg):
    twice = KG(TRIPLES + TRIPLES[::-1], 5, 2)
    assert twice == kg
    assert twice.num_triples == 4
    np.testing.assert_array_equal(twice.functionality, kg.functionality)


def test_the_closure_has_every_triple_at_its_head_and_inverted_at_its_tail(kg):
    # (neighbor, relation); the inverse of relation r has the id r + 2.
    assert kg.edges_of(0).tolist() == [[2, 0], [3, 0]]
    assert kg.edges_of(1).tolist() == [[2, 0]]
    assert kg.edges_of(2).tolist() == [[0, 2], [1, 2]]
    assert kg.edges_of(3).tolist() == [[0, 2], [3, 1], [3, 3]]
    assert kg.neighbors.tolist() == [2, 3, 2, 0, 1, 0, 3, 3]
    assert kg.relations.tolist() == [0, 0, 0, 2, 2, 2, 1, 3]


def test_entities_without_triples_are_kept(kg):
    assert kg.num_entities == 5
    assert kg.edges_of(4).shape == (0, 2)
    assert kg.degrees.tolist() == [2, 1, 2, 3, 0]


def test_a_graph_without_triples_is_a_graph():
    kg = KG([], num_entities=3, num_relations=2)
    assert (kg.num_entities, kg.num_triples) == (3, 0)
    assert kg.indptr.tolist() == [0, 0, 0, 0]
    assert kg.functionality.tolist() == [0, 0, 0, 0]
    assert kg.triples.shape == (0, 3)


def test_functionality_is_distinct_ends_over_distinct_pairs(kg):
    # Relation 0: heads {0, 1}, tails {2, 3}, three pairs. Relation 1: one of each.
    np.testing.assert_allclose(kg.functionality, [2 / 3, 1, 2 / 3, 1])
    skewed = KG([[0, 0, 1], [0, 0, 2], [0, 0, 3], [4, 0, 3]])
    np.testing.assert_allclose(skewed.functionality, [2 / 4, 3 / 4])
    np.testing.assert_allclose(skewed.inverse_functionality, [3 / 4, 2 / 4])


def test_edges_are_ordered_by_neighbor_and_relation_within_an_entity():
    kg = KG(np.random.default_rng(0).integers([9, 4, 9], size=(200, 3)))
    for entity in range(9):
        edges = kg.edges_of(entity).tolist()
        assert edges == sorted(edges) and len(edges) > 1


def test_triples_come_back_distinct_and_in_order(kg):
    assert kg.triples.tolist() == [[0, 0, 2], [0, 0, 3], [1, 0, 2], [3, 1, 3]]
    assert KG(kg.triples, 5, 2) == kg


def test_ids_too_many_for_one_integer_per_triple_make_the_same_edges(kg):
    n = r = 2**21  # n * n * 2r = 2^64
    shift = [n - 5, r - 2, n - 5]
    large = KG(np.add(TRIPLES + TRIPLES, shift), n, r)
    assert (large.num_triples, large.num_entities) == (4, n)
    np.testing.assert_array_equal(large.triples, kg.triples + shift)
    assert large.edges_of(n - 2).tolist() == [[n - 5, 2 * r - 2], [n - 2, r - 1], [n - 2, 2 * r - 1]]
    np.testing.assert_array_equal(large.functionality[[r - 2, r - 1, -2, -1]], kg.functionality)


def test_offsets_are_64_and_ids_32_bits_wide(kg):
    assert (kg.indptr.dtype, kg.edges.dtype, kg.functionality.dtype) == (np.int64, np.int32, np.float32)


def test_degree_statistics_count_both_ends_of_a_triple(kg):
    stats = kg.degree_stats()
    assert (stats.mean, stats.median, stats.maximum, stats.isolated) == (8 / 5, 2.0, 3, 1)


def test_attributes_and_arrays_cannot_be_changed(kg):
    with pytest.raises(AttributeError, match="immutable"):
        kg.num_entities = 7
    with pytest.raises(AttributeError, match="immutable"):
        del kg.edges
    with pytest.raises(AttributeError, match="immutable"):
        kg.something_new = 1
    for array in (kg.indptr, kg.edges, kg.functionality, kg.neighbors, kg.relations):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_changing_the_callers_array_does_not_change_the_graph(kg):
    array = np.array(TRIPLES, dtype=np.int64)
    built = KG(array, 5, 2)
    array[:] = 0
    assert built == kg


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda kg: pickle.loads(pickle.dumps(kg))])
def test_a_copy_is_equal_and_as_immutable(named, duplicate):
    other = duplicate(named)
    assert other == named
    assert not other.edges.flags.writeable


def test_graphs_that_differ_are_not_equal(kg, named):
    assert kg != KG(TRIPLES[:3], 5, 2)
    assert kg != KG(TRIPLES, 6, 2)
    assert kg != KG(TRIPLES, 5, 3)
    assert kg != named


def test_labels_are_names_where_known_and_ids_where_not(kg, named):
    assert (kg.entity_label(3), kg.relation_label(1), kg.relation_label(3)) == ("3", "1", "1⁻")
    assert (named.entity_label(3), named.relation_label(0), named.relation_label(2)) == ("D 🙂", "in", "in⁻")
    assert list(named.entity_names) == ["Köln", "", "C", "D 🙂", "E"]
    assert (named.entity_names[-1], named.entity_names[1:3]) == ("E", ["", "C"])


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("graph", ["kg", "named"])
def test_a_saved_graph_comes_back_the_same(request, tmp_path, graph, mmap):
    original = request.getfixturevalue(graph)
    original.save(tmp_path / "new" / "graph")
    loaded = KG.load(tmp_path / "new" / "graph", mmap=mmap)
    assert loaded == original
    np.testing.assert_array_equal(loaded.functionality, original.functionality)
    assert not loaded.edges.flags.writeable
    assert isinstance(loaded.edges, np.memmap) == mmap
    assert isinstance(loaded.indptr, np.memmap) == mmap


@pytest.mark.parametrize("mmap", [False, True])
def test_a_graph_without_triples_can_be_saved(tmp_path, mmap):
    KG([], 3, 2).save(tmp_path / "empty")
    assert KG.load(tmp_path / "empty", mmap=mmap) == KG([], 3, 2)


def test_a_saved_folder_holds_plain_arrays_and_json_only(named, tmp_path):
    named.save(tmp_path / "graph")
    for file in (tmp_path / "graph").iterdir():
        if file.suffix == ".npy":
            assert np.load(file, allow_pickle=False).dtype.kind in "iuf"
        else:
            assert json.loads(file.read_text())["num_entities"] == 5
    assert os.listdir(tmp_path) == ["graph"]


def test_others_may_read_a_saved_folder_as_the_umask_says(kg, tmp_path):
    (tmp_path / "ordinary").mkdir()
    kg.save(tmp_path / "graph")
    assert (tmp_path / "graph").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_saving_again_replaces_the_graph_and_all_its_files(kg, named, tmp_path):
    named.save(tmp_path / "graph")
    KG.load(tmp_path / "graph", mmap=True).save(tmp_path / "graph")
    assert KG.load(tmp_path / "graph") == named
    kg.save(tmp_path / "graph")
    assert KG.load(tmp_path / "graph") == kg
    assert os.listdir(tmp_path) == ["graph"]


def test_a_folder_or_file_that_is_no_saved_graph_is_never_replaced(kg, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("one")
    (tmp_path / "notes").write_text("two")
    for name in ("thesis", "notes"):
        with pytest.raises(ValueError, match=f"{name} is not a saved KG"):
            kg.save(tmp_path / name)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "one"
    assert (tmp_path / "notes").read_text() == "two"
    assert sorted(os.listdir(tmp_path)) == ["notes", "thesis"]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("kg.json", None, "not a saved KG"),
        ("kg.json", b"{", "not a saved KG"),
        ("kg.json", b"[]", "not a saved KG"),
        ("kg.json", b'{"format": "other", "version": 2}', "expected 'stea-fast KG' version 1 or 2"),
        ("kg.json", b'{"format": "stea-fast KG", "version": 4}', "expected 'stea-fast KG' version 1 or 2 or 3"),
        ("kg.json", b'{"format": "stea-fast KG", "version": 2}', "how many entities"),
        ("edges.npy", None, r"edges\.npy"),
        ("edges.npy", b"", r"edges\.npy"),
        ("edges.npy", np.zeros((7, 2), np.int32), "damaged"),
        ("edges.npy", np.zeros((8, 2), np.int64), "damaged"),
        ("indptr.npy", np.array([0, 2, 3, 5, 8]), "damaged"),
        ("indptr.npy", np.array([0, 9, 3, 5, 8, 8]), "damaged"),
        ("functionality.npy", np.zeros(3, np.float32), "damaged"),
    ],
)
def test_a_damaged_folder_is_an_error_that_names_it(kg, tmp_path, file, content, message, mmap):
    kg.save(tmp_path / "graph")
    if content is None:
        (tmp_path / "graph" / file).unlink()
    elif isinstance(content, bytes):
        (tmp_path / "graph" / file).write_bytes(content)
    else:
        np.save(tmp_path / "graph" / file, content)
    with pytest.raises(ValueError, match=message) as caught:
        KG.load(tmp_path / "graph", mmap=mmap)
    assert str(tmp_path / "graph") in str(caught.value)


@pytest.mark.parametrize(
    ("triples", "options", "error", "message"),
    [
        ([[0, 0, -1]], {}, ValueError, r"triples\[:, \[0, 2\]\] holds -1"),
        ([[0, -2, 1]], {}, ValueError, r"triples\[:, 1\] holds -2"),
        ([[0, 0, 5]], {"num_entities": 5}, ValueError, r"triples\[:, \[0, 2\]\] holds 5.*only 5 entities"),
        ([[0, 3, 1]], {"num_relations": 3}, ValueError, r"triples\[:, 1\] holds 3.*only 3 relations"),
        ([[0, 2**30, 1]], {}, ValueError, r"triples\[:, 1\] holds 1073741824"),
        ([[0, 0, 2**31]], {}, ValueError, r"triples\[:, \[0, 2\]\] holds 2147483648"),
        (np.array([[0, 0, 2**63]], np.uint64), {}, ValueError, "triples holds 9223372036854775808"),
        ([[0.0, 0.0, 1.0]], {}, TypeError, "triples must hold integers, got dtype float64"),
        ([[True, False, True]], {}, TypeError, "triples must hold integers, got dtype bool"),
        ([["a", "b", "c"]], {}, TypeError, "triples must hold integers"),
        (None, {}, TypeError, "triples .*NoneType"),
        ([[0, 1]], {}, ValueError, r"triples must have shape \(n, 3\), got \(1, 2\)"),
        ([0, 0, 1], {}, ValueError, r"triples must have shape \(n, 3\), got \(3,\)"),
        ([[0, 0, 1], [0, 1]], {}, ValueError, "triples must be a rectangular array"),
        ([], {}, ValueError, "triples is empty: give num_entities"),
        ([], {"num_entities": 3}, ValueError, "triples is empty: give num_relations"),
        ([[0, 0, 1]], {"num_entities": 0}, ValueError, "num_entities must be between 1"),
        ([[0, 0, 1]], {"num_entities": True}, TypeError, "num_entities must be an integer, got bool"),
        ([[0, 0, 1]], {"num_entities": "2"}, TypeError, "num_entities must be an integer, got str"),
        ([[0, 0, 1]], {"num_relations": 1.0}, TypeError, "num_relations must be an integer, got float"),
        ([[0, 0, 1]], {"entity_names": ["a"]}, ValueError, "entity_names .* 2 ids, got 1"),
        ([[0, 0, 1]], {"relation_names": []}, ValueError, "relation_names .* 1 ids, got 0"),
        ([[0, 0, 1]], {"entity_names": "ab"}, TypeError, "entity_names .* got str"),
        ([[0, 0, 1]], {"entity_names": ["a", None]}, TypeError, "entity_names .* strings, got NoneType"),
        ([[0, 0, 1]], {"relation_names": 1}, TypeError, "relation_names .* got int"),
    ],
)
def test_bad_input_is_an_error_that_names_the_argument(triples, options, error, message):
    with pytest.raises(error, match=message):
        KG(triples, **options)
