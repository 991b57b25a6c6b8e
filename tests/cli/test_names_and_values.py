"""Names and values on the command line: read, reported, kept by `convert`."""

from __future__ import annotations

import json

import pytest

import stea_fast as sf
from stea_fast.cli.main import main

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
QUICK = ("--rounds", "0", "--calibration", "none")

pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """a.nt with labels, b.nt with keys only, seeds.tsv."""
    monkeypatch.chdir(tmp_path)
    for side in "ab":
        lines = [f"<http://{side}/Q{i}> <http://{side}/r> <http://{side}/Q{(3 * i + 1) % 30}> ." for i in range(30)]
        if side == "a":
            lines += [f'<http://a/Q{i}> <{LABEL}> "name of {i}"@en .' for i in range(20)]
        (tmp_path / f"{side}.nt").write_text("\n".join(lines) + "\n")
    (tmp_path / "seeds.tsv").write_text("".join(f"http://a/Q{i}\thttp://b/Q{i}\n" for i in range(9)))
    (tmp_path / "names.tsv").write_text("".join(f"http://b/Q{i}\tname of {i}\n" for i in range(25)) + "x\ty\n")
    (tmp_path / "values.csv").write_text("id,name,size\n" + "".join(f"http://b/Q{i},{i} called,\n" for i in range(7)))
    return tmp_path


def align(*words):
    return main(["align", "a.nt", "b.nt", "--seeds", "seeds.tsv", "--out", "links.tsv", *QUICK, *words])


def test_align_says_where_names_come_from(folder, capsys):
    assert align("--names2", "names.tsv") == 0
    said = capsys.readouterr().err
    assert f"names of the first graph: {LABEL} (20 entities)" in said
    assert "names of the second graph: names.tsv (25 entities)" in said
    assert "1 lines of names.tsv left out" in said and "names.tsv:26: x is no entity of the graph" in said


def test_align_takes_a_table_of_values(folder, capsys):
    assert align("--values2", "values.csv") == 0
    said = capsys.readouterr().err
    assert "b.nt: KG(30 entities, 1 relations, 30 triples, 7 values)" in said
    assert "names of the second graph: name (7 entities)" in said


def test_keys_are_not_taken_for_names(folder, capsys):
    assert align() == 0
    assert "names of the second graph: nothing: no entity has a name" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "code", "message"), [
    (("--names1", "absent.tsv"), 1, "absent.tsv"),
    (("--values1", "values.csv"), 1, "values.csv holds no value of an entity of the graph"),
    (("--names2", "names.tsv", "--strict"), 1, "names.tsv:26: x is no entity of the graph"),
    (("--names2", "links.tsv"), 2, "would overwrite what is read"),
])  # fmt: skip
def test_files_that_cannot_be_used_are_named(folder, capsys, words, code, message):
    assert align(*words) == code
    assert message in capsys.readouterr().err


def test_a_folder_has_its_names_by_its_own_ids_and_its_values_in_itself(folder, capsys):
    data = folder / "data"
    data.mkdir()
    for side, first in ((1, 0), (2, 100)):
        lines = [f"{first + i}\t0\t{first + (3 * i + 1) % 30}\n" for i in range(30)]
        (data / f"triples_{side}").write_text("".join(lines))
        (data / f"names_{side}").write_text("".join(f"{first + i}\tname {i}\n" for i in range(30)))
    (data / "ref_ent_ids").write_text("".join(f"{i}\t{100 + i}\n" for i in range(30)))
    (data / "attr_triples_1").write_text("0\tlabel\tzero\n")
    words = ["align", "data", "--out", "links.tsv", *QUICK]
    assert main([*words, "--names2", "names_2"]) == 0
    said = capsys.readouterr().err
    assert "first graph: label (1 entities)" in said and "second graph: names_2 (30 entities)" in said
    assert main([*words, "--values1", "values.csv"]) == 2
    assert "a folder has attr_triples_1" in capsys.readouterr().err
    assert main(["convert", "data", "a.ttl", "--graph", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"] == 1
    assert [value.text for _, value in sf.read_graph("a.ttl").attributes.of(0)] == ["zero"]


@pytest.mark.parametrize("literals", [[], ["--literals", "values"]])
def test_convert_keeps_values_through_tables(folder, literals):
    assert main(["convert", "a.nt", "a.tsv", *literals]) == main(["convert", "a.tsv", "back.ttl", *literals]) == 0
    stated = [
        {(kg.entity_label(e), *row) for e in range(kg.num_entities) for row in kg.attributes.of(e)}
        for kg in map(sf.read_graph, ("a.nt", "a.tsv", "back.ttl"))
    ]
    assert stated[0] == stated[1] == stated[2] and len(stated[0]) == 20


def test_info_counts_values_and_says_where_names_are(folder, capsys):
    assert main(["info", "a.nt", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["values"], facts["attributes"], facts["names"]) == (20, 1, f"{LABEL} (20 entities)")
    assert main(["info", "a.nt", "--json", "--literals", "drop"]) == 0
    assert json.loads(capsys.readouterr().out)["dropped literals"] == 20


def test_values_that_cannot_be_used_are_counted(folder, capsys):
    (folder / "c.nt").write_text(f'<http://a> <{LABEL}> " " .\n<http://a> <{LABEL}> "x" .\n')
    assert main(["info", "c.nt"]) == 0
    assert "1 values left out: blank" in capsys.readouterr().err
