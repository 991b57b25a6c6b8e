"""Names keep what they are: numbers in typed files, blank nodes of two graphs, formulas, halves of characters."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stea_fast._util.name_table import NameTable
from stea_fast.formats.links import read_link_rows, write_link_rows
from stea_fast.formats.relations import write_relation_rows
from stea_fast.formats.result_rows import LinkRow, RelationRow
from stea_fast.formats.triples import Problems, TripleTable, read_triples, write_triples

pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")


def write_typed(path, sources, targets):
    if path.suffix == ".jsonl":
        rows = zip(sources, targets, strict=True)
        path.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in rows))
    else:
        from pyarrow import feather, parquet

        table = pyarrow.table({"source": sources, "target": targets})
        (parquet.write_table if path.suffix == ".parquet" else feather.write_feather)(table, path)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow"])
def test_an_id_of_zero_is_an_id(tmp_path, suffix):
    path = tmp_path / f"links{suffix}"
    write_typed(path, [0, 1, 2], [1, 0, None])
    links = read_link_rows(path, Problems(strict=True))
    assert [(link.source, link.target) for link in links] == [("0", "1"), ("1", "0")]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow"])
def test_a_missing_source_is_a_problem_and_no_entity_called_none(tmp_path, suffix):
    path = tmp_path / f"links{suffix}"
    write_typed(path, ["a", None], ["x", "y"])
    problems = Problems()
    assert [link.source for link in read_link_rows(path, problems)] == ["a"]
    assert problems.count == 1 and str(path) in problems.first[0] and "source is null" in problems.first[0]
    with pytest.raises(ValueError, match=r"links\.\w+.*2.*source is null"):
        read_link_rows(path, Problems(strict=True))


@pytest.mark.parametrize("line", [r'{"source": "a\ud800", "target": "x"}', r'{"source": "a", "target": "\udfffx"}'])
def test_half_a_character_is_refused_with_file_and_line(tmp_path, line):
    path = tmp_path / "links.jsonl"
    path.write_text('{"source": "b", "target": "y"}\n' + line + "\n")
    problems = Problems()
    assert [link.source for link in read_link_rows(path, problems)] == ["b"]
    assert problems.first[0].startswith(f"{path}:2: a name holds half a character")


@pytest.mark.parametrize(
    ("name", "row"), [("a.tsv", "b\tr\t%s\n"), ("a.csv", "b,r,%s\n"), ("a.nt", "<b:> <r:> <c:%s> .\n")]
)
def test_half_a_character_in_a_graph_is_refused_with_file_and_line(tmp_path, name, row):
    path = tmp_path / name
    good = (row % "whole").encode()
    path.write_bytes(good + (row % "half").encode().replace(b"half", b"\xed\xa0\x80") + good)
    table = read_triples(path)
    assert len(table.triples) == 2 and table.problems.count == 1
    assert table.problems.first[0].startswith(f"{path}:2: ")


@pytest.mark.parametrize("name", ["links.nt", "links.sssom.tsv"])
def test_blank_nodes_of_two_graphs_are_two_nodes_in_one_file(tmp_path, name):
    path = tmp_path / name
    write_link_rows([LinkRow("_:b0", "_:b0", 0.9, 1, "both", "link")], path)
    text = path.read_text()
    assert "_:b0" not in text
    assert "b1.b0" in text and "b2.b0" in text
    (link,) = read_link_rows(path, Problems(strict=True))
    assert (link.source, link.target) == ("_:b0", "_:b0")  # each in its own graph


def test_blank_nodes_of_relations_are_kept_apart_as_well(tmp_path):
    write_relation_rows([RelationRow("_:r", "_:r", False, 0.9, 0.9)], tmp_path / "relations.nt")
    lines = (tmp_path / "relations.nt").read_text().splitlines()
    assert len(lines) == 2
    assert all("b1.r>" in line and "b2.r>" in line for line in lines)


def test_a_blank_node_with_any_label_comes_back(tmp_path):
    names = ["_:", "_:a b", "_:ü", "_:_41", "urn:stea-fast:b2.x"]
    write_link_rows([LinkRow(name, name, 0.9, 1, "both", "link") for name in names], tmp_path / "links.nt")
    links = read_link_rows(tmp_path / "links.nt", Problems(strict=True))
    assert [(link.source, link.target) for link in links] == [(name, name) for name in names]


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", '"=1"', "a;=cmd|'/c calc'!A1", "＝1", " =1"]


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_formulas_are_spelt_out_on_request_and_read_back(tmp_path, kind):
    path = tmp_path / f"links.{kind}"
    rows = [LinkRow(name, "http://x.org/a-b=c", 0.9, 1, "both", "link") for name in FORMULAS]
    write_link_rows(rows, path, spreadsheet_safe=True)
    for line in path.read_text().splitlines()[1:]:
        assert line.startswith("urn:stea-fast:n") and "http://x.org/a-b=c" in line
    assert [link.source for link in read_link_rows(path, Problems(strict=True))] == FORMULAS
    write_link_rows(rows, path)
    assert "=1+1" in path.read_text()
    assert [link.source for link in read_link_rows(path, Problems(strict=True))] == FORMULAS


def test_formulas_of_a_converted_graph_and_of_relations_are_spelt_out_as_well(tmp_path):
    names = NameTable.pack(["=1+1", "plain"])
    table = TripleTable(np.array([[0, 0, 1]]), names, NameTable.pack(["-r"]))
    write_triples(table, tmp_path / "a.csv", spreadsheet_safe=True)
    assert "urn:stea-fast:n_3D1_2B1,urn:stea-fast:n-r,plain" in (tmp_path / "a.csv").read_text()
    assert list(read_triples(tmp_path / "a.csv").entities) == ["=1+1", "plain"]
    write_relation_rows([RelationRow("=r", "s", False, 0.9, 0.9)], tmp_path / "r.tsv", spreadsheet_safe=True)
    assert "\n=r" not in (tmp_path / "r.tsv").read_text()
