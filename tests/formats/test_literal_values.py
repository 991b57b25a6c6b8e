"""Literals as values: from every format and back, blank and endless ones left out, names in quotes left alone."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast.data.files import graph_of
from stea_fast.formats.literal_values import names_as_values, parse_literal, spell_literal, values_as_names
from stea_fast.formats.triple_table import Problems, TableBuilder
from stea_fast.formats.triples import FORMATS, read_triples, write_triples
from stea_fast.formats.value_pool import LONGEST_VALUE, Value

ox = pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")
pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")

XSD = "http://www.w3.org/2001/XMLSchema#"
VALUES = st.one_of(
    st.builds(Value, st.text(), st.sampled_from(["", f"{XSD}date", "http://ex.org/t#ü"]), st.just("")),
    st.builds(Value, st.text(), st.just(""), st.sampled_from(["de", "de-at", "x-klingon"])),
)
NT = """<http://a/1> <http://a/name> "Berlin"@de .
<http://a/1> <http://a/near> <http://a/2> .
<http://a/2> <http://a/name> "Gift"@en .
<http://a/2> <http://a/name> "Gift"@de .
<http://a/2> <http://a/name> "Gift"@DE .
<http://a/3> <http://a/size> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://a/3> <http://a/note> "  " .
"""
STATED = {
    ("http://a/1", "http://a/name", Value("Berlin", "", "de")),
    ("http://a/2", "http://a/name", Value("Gift", "", "en")),
    ("http://a/2", "http://a/name", Value("Gift", "", "de")),
    ("http://a/3", "http://a/size", Value("5", f"{XSD}integer")),
}


def stated(kg):
    return {(kg.entity_label(e), *row) for e in range(kg.num_entities) for row in kg.attributes.of(e)}


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- how values are spelt ---


@given(VALUES)
@settings(max_examples=300)
def test_a_value_is_spelt_as_the_rdf_library_spells_it_and_read_back(value):
    datatype = ox.NamedNode(value.datatype) if value.datatype else None
    literal = ox.Literal(value.text, language=value.language or None, datatype=datatype)
    assert spell_literal(value) == str(literal)
    assert parse_literal(str(literal).encode()) == (value.text.encode(), value.datatype, value.language)


@pytest.mark.parametrize(
    "name",
    [b"Berlin", b'"', b'"a', b'a"', b'"a"b', b'"a"@', b'"a"@1', b'"a"^^x', b'"a\nb"', b'"\\x"', b'"\\uD800"',
     b'"\\UFFFFFFFF"', b'"a"@de "b"', b'"a"^^<b c>'],
)  # fmt: skip
def test_what_is_no_literal_stays_a_name(name):
    assert parse_literal(name) is None


# --- reading ---


def test_literals_of_rdf_become_values_of_their_entities(tmp_path):
    kg = sf.read_graph(write(tmp_path / "a.nt", NT))
    assert stated(kg) == STATED
    assert (kg.num_entities, kg.num_triples, list(kg.relation_names)) == (3, 1, ["http://a/near"])
    assert sorted(kg.attributes.attribute_names) == ["http://a/name", "http://a/size"]


def test_values_change_neither_triples_nor_the_order_of_entities(tmp_path):
    plain = "".join(f"<http://a/{i}> <http://a/r{i % 3}> <http://a/{i * 7 % 20}> .\n" for i in range(20))
    valued = "".join(f'{line}\n<http://a/{i}> <http://v/{i}> "{i}" .\n' for i, line in enumerate(plain.splitlines()))
    for seed in (None, 0):
        without = sf.read_graph(write(tmp_path / "a.nt", plain), permutation_seed=seed)
        assert sf.read_graph(write(tmp_path / "b.nt", valued), permutation_seed=seed).with_attributes(None) == without


def test_values_follow_the_permutation_of_ids(tmp_path):
    path = write(tmp_path / "a.nt", NT)
    graphs = [sf.read_graph(path, permutation_seed=seed) for seed in range(5)]
    assert all(stated(kg) == STATED for kg in graphs)
    assert len({tuple(kg.entity_names) for kg in graphs}) > 1


def test_blank_values_are_counted(tmp_path):
    table = read_triples(write(tmp_path / "a.nt", NT), strict=True)
    assert (table.problems.unusable_values, table.problems.dropped_literals) == (1, 0)


def test_a_file_of_nothing_but_values_is_a_graph_without_triples(tmp_path):
    kg = sf.read_graph(write(tmp_path / "a.ttl", '<http://a> <http://p> "x", "y" .'))
    assert (kg.num_entities, kg.num_triples, len(kg.attributes)) == (1, 0, 2)
    with pytest.raises(ValueError, match="holds only values that are blank or have more than 262,144 bytes"):
        sf.read_graph(write(tmp_path / "a.ttl", '<http://a> <http://p> " " .'))


LONG = "long label " * (1 << 21)


@pytest.mark.parametrize("size", [1 << 20, 20 << 20])
@pytest.mark.parametrize(("name", "text"), [
    ("a.nt", '<http://a> <http://q> "{}" .\n<http://a> <http://q> "short" .\n'),
    ("a.ttl", '<http://a> <http://q> """{}"""@en , "short" .'),
    ("a.rdf", '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://"><rdf:Description '
              'rdf:about="http://a"><e:q>{}</e:q><e:q>short</e:q></rdf:Description></rdf:RDF>'),
])  # fmt: skip
def test_a_label_of_megabytes_is_left_out_and_counted(tmp_path, name, text, size):
    table = read_triples(write(tmp_path / name, text.format(LONG[:size])), strict=True)
    assert list(table.attributes.values) == ["short"]
    assert table.problems.unusable_values == 1


def test_many_long_labels_do_not_fill_the_memory(tmp_path):
    path = tmp_path / "a.nt"
    with path.open("w") as stream:
        for i in range(40):
            stream.write(f'<http://a> <http://q> "{i} {LONG[: 1 << 20]}" .\n')
        stream.write('<http://a> <http://q> "short" .\n')
    tracemalloc.start()
    assert list(read_triples(path).attributes.values) == ["short"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e7


def test_an_invalid_language_tag_is_a_malformed_line(tmp_path):
    path = write(tmp_path / "a.nt", '<http://a> <http://q> "x"@no_tag .\n<http://a> <http://q> "y"@en .\n')
    table = read_triples(path)
    assert list(table.attributes.values) == ["y"]
    assert table.problems.first[0].startswith(f"{path}:1: ")


def test_values_hold_nul_bytes_and_characters_of_every_direction(tmp_path):
    texts = ["a\0b", "שלום", "e\u0301", "\u202eabc"]
    lines = [f"<http://a> <http://q> {spell_literal(Value(text))} .\n" for text in texts]
    assert list(read_triples(write(tmp_path / "a.nt", "".join(lines))).attributes.values) == texts


def test_too_many_datatypes_are_an_error_that_names_the_file(tmp_path):
    path = write(tmp_path / "a.nt", "".join(f'<http://a> <http://q> "x"^^<http://{i}> .\n' for i in range(33_000)))
    with pytest.raises(ValueError, match=r"a\.nt: values have more than 32,767 datatypes"):
        read_triples(path)


# --- tables ---


@pytest.mark.parametrize("fmt", FORMATS)
def test_values_come_back_from_every_format(tmp_path, fmt):
    first = read_triples(write(tmp_path / "a.nt", NT))
    write_triples(first, tmp_path / f"b.{fmt}")
    again = read_triples(tmp_path / f"b.{fmt}", strict=True)
    assert stated(graph_of(again)) == STATED
    assert len(again.triples) == len(first.triples) == 1


def test_a_table_that_has_all_its_names_in_quotes_has_no_values(tmp_path):
    path = write(tmp_path / "a.tsv", '"Berlin"\tin\t"Germany"\n"Germany"\tin\t"Europe"\n')
    kg = sf.read_graph(path)
    assert kg.attributes is None and kg.num_triples == 2
    assert sf.read_graph(path, literals="keep") == kg


def test_in_a_table_only_tails_that_are_whole_literals_are_values(tmp_path):
    kg = sf.read_graph(write(tmp_path / "a.tsv", 'a\tp\t"x"@de\na\tp\t"x\na\tp\tx"y"\n'))
    assert stated(kg) == {("a", "p", Value("x", "", "de"))}
    assert kg.num_triples == 2


# --- as names and back ---

NAMES = st.sampled_from(["a", "b", '"c"', "_:d"])
ROWS = st.lists(st.tuples(NAMES, st.sampled_from("pq"), st.one_of(NAMES, VALUES.map(spell_literal))), max_size=12)


@given(ROWS)
def test_what_becomes_values_can_become_names_again(rows):
    builder = TableBuilder(Problems())
    for row in rows:
        builder.add(*(name.encode() for name in row))
    table = names_as_values(builder.build(), certain=True)
    back = values_as_names(table)
    found = [(back.entities[h], back.relations[r], back.entities[t]) for h, r, t in back.triples.tolist()]
    heads = {head for head, _, _ in rows}
    blank = [row for row in rows if row[2] not in heads and is_blank(row[2])]
    assert sorted(found) == sorted(row for row in rows if row not in blank)
    assert table.problems.unusable_values == len(blank)
    if table.attributes is not None:
        assert table.attributes.statements[:, 0].max() < len(table.entities)
        assert (np.bincount(table.triples[:, 1], minlength=len(table.relations)) > 0).all()


def is_blank(name):
    literal = parse_literal(name.encode())
    return literal is not None and (not literal[0] or literal[0].isspace())


def test_the_longest_value_is_kept_and_one_byte_more_is_not(tmp_path):
    for size in (LONGEST_VALUE, LONGEST_VALUE + 1):
        path = write(tmp_path / "a.tsv", f'a\tp\t"{"x" * size}"\na\tp\tb\n')
        assert (sf.read_graph(path).attributes is not None) is (size == LONGEST_VALUE)
