"""Graphs of other libraries, and of files, become `KG`s and pairs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import stea_fast as sf
from stea_fast._util.name_table import NameTable

TRIPLES = {("a", "knows", "b"), ("b", "likes", "c")}


def named(kg: sf.KG) -> set[tuple[str, str, str]]:
    return {(kg.entity_label(h), kg.relation_label(r), kg.entity_label(t)) for h, r, t in kg.triples.tolist()}


@pytest.mark.parametrize("columns", [("head", "relation", "tail"), ("x", "y", "z")])
def test_from_pandas(columns):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(sorted(TRIPLES), columns=columns)
    assert named(sf.KG.from_pandas(frame)) == TRIPLES
    swapped = sf.KG.from_pandas(frame, columns=columns[::-1])
    assert named(swapped) == {(t, r, h) for h, r, t in TRIPLES}
    with pytest.raises(ValueError, match="no column 'w'"):
        sf.KG.from_pandas(frame, columns=("w", *columns[1:]))
    with pytest.raises(ValueError, match="missing values"):
        sf.KG.from_pandas(frame.where(frame != "a"))


def test_from_networkx_keeps_lonely_nodes():
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = networkx.MultiDiGraph()
    graph.add_edge("a", "b", key="knows")
    graph.add_edge("b", "c", relation="likes")
    graph.add_node("lonely")
    kg = sf.KG.from_networkx(graph)
    assert named(kg) == TRIPLES
    assert kg.degree_stats().isolated == 1
    plain = networkx.DiGraph([("a", "b")])
    assert named(sf.KG.from_networkx(plain, relation="edge")) == {("a", "edge", "b")}


def test_from_rdflib():
    rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed")
    graph = rdflib.Graph()
    graph.parse(data='<http://a> <http://p> <http://b>, "x"@en . _:n <http://p> <http://a> .', format="turtle")
    kg = sf.KG.from_rdflib(graph)
    assert kg.num_triples == 2
    assert ("http://a", "http://p", "http://b") in named(kg)
    assert ("http://a", "http://p", '"x"@en') in named(sf.KG.from_rdflib(graph, literals="keep"))


def test_from_pykeen_keeps_ids_and_labels():
    pytest.importorskip("torch", reason="torch is not installed")
    triples = pytest.importorskip("pykeen.triples", reason="PyKEEN is not installed")
    factory = triples.TriplesFactory.from_labeled_triples(np.array(sorted(TRIPLES)))
    kg = sf.KG.from_pykeen(factory)
    assert named(kg) == TRIPLES
    assert list(kg.entity_names or ()) == [factory.entity_id_to_label[i] for i in range(3)]


def test_from_pyg_keeps_ids():
    edges, kinds = np.array([[0, 1], [1, 2]]), np.array([1, 0])
    kg = sf.KG.from_pyg(SimpleNamespace(edge_index=edges, edge_type=kinds, num_nodes=5))
    assert kg.triples.tolist() == [[0, 1, 1], [1, 0, 2]]
    assert kg.num_entities == 5
    assert sf.KG.from_pyg(SimpleNamespace(edge_index=edges, num_nodes=3)).num_relations == 1


# --- pairs ---


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tknows\tb\nb\tlikes\tc\n")
    (tmp_path / "b.tsv").write_text("A\tkennt\tB\nB\tmag\tC\n")
    (tmp_path / "seeds.tsv").write_text("a\tA\nb\tB\n")
    return tmp_path


def test_two_files_and_seeds_become_a_pair_without_test_links(files):
    pair = sf.read_pair(files / "a.tsv", files / "b.tsv", files / "seeds.tsv")
    assert named(pair.kg1) == TRIPLES
    links = {(pair.kg1.entity_label(e), pair.kg2.entity_label(e2)) for e, e2 in pair.train.tolist()}
    assert links == {("a", "A"), ("b", "B")}
    assert len(pair.test) == 0


def test_files_in_the_same_order_are_numbered_differently(tmp_path):
    lines = [f"e{i}\tr\te{i + 1}\n" for i in range(50)]
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text("".join(lines))
    (tmp_path / "seeds.tsv").write_text("e0\te0\n")
    pair = sf.read_pair(tmp_path / "a.tsv", tmp_path / "b.tsv", tmp_path / "seeds.tsv")
    assert list(pair.kg1.entity_names or ()) != list(pair.kg2.entity_names or ())


def test_seeds_naming_unknown_entities_are_left_out_or_with_strict_an_error(files):
    (files / "seeds.tsv").write_text("source\ttarget\na\tA\nx\tB\nb\tA\n")
    kg1, kg2 = sf.read_graph(files / "a.tsv"), sf.read_graph(files / "b.tsv")
    assert sf.read_links(files / "seeds.tsv", kg1, kg2).tolist() == [[0, 0]]
    with pytest.raises(ValueError, match=r"seeds\.tsv:3: x is no entity of the first graph"):
        sf.read_links(files / "seeds.tsv", kg1, kg2, strict=True)


def test_a_pair_is_made_of_graphs_in_memory():
    kg = sf.KG([[0, 0, 1], [1, 0, 2]])
    pair = sf.make_pair(kg, kg, [[0, 0]], name="mine")
    assert (pair.name, len(pair.train), len(pair.test)) == ("mine", 1, 0)
    with pytest.raises(ValueError, match="seeds"):
        sf.make_pair(kg, kg, [[0, 7]])
    with pytest.raises(TypeError, match="kg2 must be a KG"):
        sf.make_pair(kg, None, [[0, 0]])


def test_names_can_be_taken_in_another_order():
    table = NameTable.pack(["a", "", "金大中", "é", "end"])
    assert list(table.take(np.array([2, 1, 4, 2]))) == ["金大中", "", "end", "金大中"]
    assert len(table.take(np.zeros(0, dtype=np.int64))) == 0
