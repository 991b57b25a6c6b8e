"""Values from files beside the triples: tables of entities, attribute statements, dataset folders, other libraries."""

from __future__ import annotations

import datetime
import logging

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.data.dataset_folders import load_pair
from stea_fast.formats.value_pool import LONGEST_VALUE

XSD = "http://www.w3.org/2001/XMLSchema#"
DBP15K = {
    "triples_1": "0\t7\t1\n1\t5\t2\n", "triples_2": "10\t9\t11\n11\t9\t12\n", "ref_ent_ids": "0\t10\n1\t11\n2\t12\n",
    "attr_triples_1": (
        "0\tname\tBerlin\n0\tname\tBerlin\n2\tsize\t\"5\"^^<http://x/int>\n1\tnote\ta\tb \x85\r\n1\tnote\t \n"
    ),
}  # fmt: skip
OPENEA = {
    "rel_triples_1": "b\tlikes\ta\na\tknows\tc\n", "rel_triples_2": "B\tmag\tA\nA\tkennt\tC\n",
    "ent_links": "a\tA\nb\tB\nc\tC\n", "attr_triples_2": '\ufeffC\tname\t"Köln"@de\n\nB\tname\t"half\n',
}  # fmt: skip


@pytest.fixture
def kg():
    return sf.KG([[0, 0, 1], [1, 0, 2]], entity_names=["a", "b", "c"])


def stated(kg):
    if kg.attributes is None:
        return set()
    return {(kg.entity_label(e), name, *value) for e in range(kg.num_entities) for name, value in kg.attributes.of(e)}


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def folder_of(tmp_path, files, **changes):
    for name, content in {**files, **changes}.items():
        write(tmp_path / name, content)
    return tmp_path


# --- tables ---


@pytest.mark.parametrize(("name", "text"), [
    ("v.csv", 'id,name,note\na,"Berlin, Mitte",\nb,,"""Köln""@de"\n'),
    ("v.tsv", 'id\tname\tnote\na\tBerlin, Mitte\t\nb\t\t"Köln"@de\n'),
    ("v.csv", 'name,note,ID\n"Berlin, Mitte",,a\n,"""Köln""@de",b\n'),
    ("v.tsv", 'entity\tattribute\tvalue\na\tname\tBerlin, Mitte\nb\tnote\t"Köln"@de\n'),
    ("v.csv", 'value,property,subject\n"Berlin, Mitte",name,a\n"""Köln""@de",note,b\n'),
    ("v.tsv", 'a\tname\tBerlin, Mitte\nb\tnote\t"Köln"@de\n'),
    ("v.csv", 'a,name,"Berlin, Mitte"\nb,note,"""Köln""@de"\n'),
])  # fmt: skip
def test_a_table_of_entities_or_of_statements_gives_values(tmp_path, kg, name, text):
    valued = sf.add_values(kg, write(tmp_path / name, text), strict=True)
    assert stated(valued) == {("a", "name", "Berlin, Mitte", "", ""), ("b", "note", "Köln", "", "de")}
    assert valued.with_attributes(None) == kg


def test_values_are_added_to_those_that_are_there(tmp_path, kg):
    first = sf.add_values(kg, write(tmp_path / "v.csv", "id,name\na,x\nb,y\n"))
    both = sf.add_values(first, write(tmp_path / "w.csv", "id,size,name\na,5,x\nb,,z\n"))
    assert {row[:3] for row in stated(both)} == {
        ("a", "name", "x"), ("b", "name", "y"), ("b", "name", "z"), ("a", "size", "5"),
    }  # fmt: skip
    assert len(both.attributes.values) == 4


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_typed_columns_keep_their_type(tmp_path, kg, suffix):
    arrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")

    table = arrow.table({
        "id": ["a", "b"], "n": [5, None], "x": [0.5, float("nan")], "ok": [True, None],
        "day": [datetime.date(1990, 10, 3), None], "list": [[1], [2]],
    })  # fmt: skip
    path = tmp_path / f"v.{suffix}"
    (arrow.parquet.write_table if suffix == "parquet" else arrow.feather.write_feather)(table, path)
    assert stated(sf.add_values(kg, path, strict=True)) == {
        ("a", "n", "5", f"{XSD}integer", ""), ("a", "x", "0.5", f"{XSD}double", ""),
        ("a", "ok", "true", f"{XSD}boolean", ""), ("a", "day", "1990-10-03", f"{XSD}date", ""),
    }  # fmt: skip


def test_a_file_of_labels_in_rdf_gives_values(tmp_path):
    pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")
    kg = sf.KG([[0, 0, 1]], entity_names=["http://a/1", "http://a/2"])
    path = write(tmp_path / "labels.nt", '<http://a/2> <http://l> "x"@en .\n<http://a/3> <http://l> "y" .\n')
    assert stated(sf.add_values(kg, path)) == {("http://a/2", "http://l", "x", "", "en")}
    with pytest.raises(ValueError, match="http://a/3 is no entity of the graph"):
        sf.add_values(kg, path, strict=True)
    with pytest.raises(ValueError, match="holds no values: none of its 1 triples has a literal"):
        sf.add_values(kg, write(tmp_path / "b.nt", "<http://a/1> <http://p> <http://a/2> .\n"))


@pytest.mark.parametrize(("text", "message"), [
    ("id,name\na,x\nb\n", r"v\.csv:3: expected 2 columns, got 1"),
    ("id,name\na,x\nb,y,z\n", r"v\.csv:3: expected 2 columns, got 3"),
    ("id,name\na,x\nnobody,y\n", r"v\.csv:3: nobody is no entity of the graph"),
    ("a,name,x\nb,name\n", r"v\.csv:2: expected entity, attribute and value"),
    (b"id,name\na,\xff\nb,y\n", r"v\.csv:2: not UTF-8"),
    ('id,name\na,"x\nb,y\n', r"v\.csv:2: a quote opens a field"),
])  # fmt: skip
def test_a_row_that_cannot_be_used_is_left_out_or_an_error_with_its_line(tmp_path, kg, text, message):
    path = write(tmp_path / "v.csv", text)
    assert len(sf.add_values(kg, path).attributes) == 1
    with pytest.raises(ValueError, match=message):
        sf.add_values(kg, path, strict=True)


@pytest.mark.parametrize(("text", "message"), [
    ("", "holds no value of an entity of the graph"),
    ("id,name\nx,y\n", r"the first problem is .*v\.csv:2: x is no entity"),
    ("id\na\n", "expected a header"),
    ("id,,name\na,x,y\n", "expected a header"),
    ("id,name\na, \n", "holds no value of an entity of the graph"),
])  # fmt: skip
def test_a_file_without_values_of_the_graph_is_an_error(tmp_path, kg, text, message):
    with pytest.raises(ValueError, match=message):
        sf.add_values(kg, write(tmp_path / "v.csv", text))


def test_a_value_that_is_too_long_is_left_out(tmp_path, kg):
    path = write(tmp_path / "v.csv", f"id,name\na,{'x' * (LONGEST_VALUE + 1)}\nb,y\n")
    assert stated(sf.add_values(kg, path, strict=True)) == {("b", "name", "y", "", "")}


# --- dataset folders ---


@pytest.mark.parametrize("permutation_seed", [None, 0, 1, 2])
def test_values_of_a_folder_follow_the_permutation_of_ids(tmp_path, permutation_seed):
    pair = load_pair(folder_of(tmp_path, DBP15K), permutation_seed=permutation_seed)
    found = {(pair.ids1[e], name, *value) for e in range(3) for name, value in pair.kg1.attributes.of(e)}
    assert found == {
        (0, "name", "Berlin", "", ""),
        (2, "size", "5", "http://x/int", ""),
        (1, "note", "a\tb \x85", "", ""),
    }
    assert pair.kg2.attributes is None
    assert load_pair(tmp_path, permutation_seed=permutation_seed, values=False).kg1 == pair.kg1.with_attributes(None)


def test_values_of_an_openea_folder_go_by_name(tmp_path):
    pair = load_pair(folder_of(tmp_path, OPENEA))
    assert stated(pair.kg2) == {("C", "name", "Köln", "", "de"), ("B", "name", '"half', "", "")}


@pytest.mark.parametrize("files", [DBP15K, OPENEA])
def test_values_of_entities_that_are_not_there_are_left_out_with_a_warning(tmp_path, caplog, files):
    line = "99\tname\tnobody\n0\tname\tBerlin\n" if files is DBP15K else "nobody\tname\tnobody\na\tname\tBerlin\n"
    with caplog.at_level(logging.WARNING, "stea_fast"):
        pair = load_pair(folder_of(tmp_path, files, attr_triples_1=line))
    assert pair.kg1.num_entities == 3 and len(pair.kg1.attributes) == 1
    assert "1 of 2 values are of entities that are neither in triples nor in links" in caplog.text


@pytest.mark.parametrize(("line", "message"), [
    ("0\tname\n", "expected an integer id, an attribute and a value"),
    ("x\tname\ty\n", "expected an integer id, an attribute and a value"),
    ("0\t\ty\n", "expected an integer id, an attribute and a value"),
    (b"0\tname\t\xff\n", "invalid start byte"),
])  # fmt: skip
def test_a_malformed_line_of_a_folder_is_an_error_with_its_place(tmp_path, line, message):
    line = line if isinstance(line, bytes) else line.encode()
    folder_of(tmp_path, DBP15K, attr_triples_1=b"0\tname\tx\n" + line)
    with pytest.raises(ValueError, match=rf"attr_triples_1:2: .*{message}"):
        load_pair(tmp_path)


def test_values_in_one_id_space_are_split_with_the_graphs():
    values = sf.Attributes.from_statements([(0, "name", "a"), (4, "name", "b"), (5, "name", "c")], 6)
    pair = sf.split_id_space([[0, 0, 1], [1, 0, 2]], [[3, 1, 4], [4, 1, 5]], [[0, 3]], attributes=values)
    for kg, ids, expected in ((pair.kg1, pair.ids1, {(0, "a")}), (pair.kg2, pair.ids2, {(4, "b"), (5, "c")})):
        assert {(int(ids[e]), value.text) for e in range(3) for _, value in kg.attributes.of(e)} == expected


# --- other libraries ---


def test_from_pandas_takes_a_table_of_entities():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    triples = pandas.DataFrame([("a", "knows", "b")], columns=["head", "relation", "tail"])
    entities = pandas.DataFrame({
        "name": ["Ann", None, "Carl"], "id": ["a", "b", "c"], "age": [5.0, np.nan, 7.5],
        "born": pandas.to_datetime(["1990-10-03", None, None]),
    })  # fmt: skip
    kg = sf.KG.from_pandas(triples, entities=entities)
    assert stated(kg) == {
        ("a", "name", "Ann", "", ""), ("c", "name", "Carl", "", ""), ("a", "age", "5.0", f"{XSD}double", ""),
        ("c", "age", "7.5", f"{XSD}double", ""), ("a", "born", "1990-10-03T00:00:00", f"{XSD}dateTime", ""),
    }  # fmt: skip
    assert kg.num_entities == 3
    with pytest.raises(ValueError, match="'id' of entities holds missing values"):
        sf.KG.from_pandas(triples, entities=entities.assign(id=["a", None, "c"]))


def test_from_rdflib_makes_values_of_literals():
    rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed")
    graph = rdflib.Graph()
    graph.parse(data='<http://a> <http://p> <http://b>, "x\\ny"@en, 5 . <http://c> <http://p> "z" .', format="turtle")
    kg = sf.KG.from_rdflib(graph)
    assert stated(kg) == {
        ("http://a", "http://p", "x\ny", "", "en"), ("http://a", "http://p", "5", f"{XSD}integer", ""),
        ("http://c", "http://p", "z", "", ""),
    }  # fmt: skip
    assert kg.num_triples == 1
    assert sf.KG.from_rdflib(graph, literals="drop").attributes is None
