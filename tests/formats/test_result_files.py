"""Results as files: original ids, every source entity, every format."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.alignment.link_table import STATUSES
from stea_fast.formats.links import read_link_rows, write_link_rows
from stea_fast.formats.relations import write_relation_rows
from stea_fast.formats.result_rows import LINK_FORMATS, LinkRow, RelationRow
from stea_fast.formats.triples import Problems, read_triples

pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")
pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")

AWKWARD = ["http://x.org/r/金大中", "tab\there", "", "_:b0", 'quote "q", comma', "urn:stea-fast:nx", "http://x.org#a"]


@pytest.fixture(scope="module")
def alignment() -> sf.Alignment:
    pair = sf.synthetic_pair(200, seed=0)
    names = [f"http://example.org/{i}" for i in range(pair.kg1.num_entities)]
    names[: len(AWKWARD)] = AWKWARD
    kg1 = sf.KG(pair.kg1.triples, len(names), entity_names=names)
    return sf.align(replace(pair, kg1=kg1), rounds=1, calibration="none")


def rows(alignment: sf.Alignment) -> dict[str, LinkRow]:
    return {row.source: row for row in alignment.links.rows()}


def test_every_source_entity_has_a_row_with_its_status(alignment):
    found = rows(alignment)
    assert len(found) == alignment.pair.kg1.num_entities
    assert set(AWKWARD) <= set(found)
    counts = {status: alignment.links.count(status) for status in STATUSES}
    assert counts["seed"] == len(alignment.pair.train)
    assert sum(counts.values()) == len(found)
    assert min(counts.values()) > 0
    for row in found.values():
        assert (row.target is None) == (row.status == "no_counterpart") == (row.probability is None)
        if row.status == "link":
            assert row.probability is not None and row.probability >= 0.5
            assert row.agreement in ("both", "forward") and row.rank == 1


@pytest.mark.parametrize("kind", LINK_FORMATS)
@pytest.mark.parametrize("compression", ["", ".gz"])
def test_links_are_read_back_with_their_original_ids(alignment, tmp_path, kind, compression):
    path = tmp_path / f"links.{'sssom.tsv' if kind == 'sssom' else kind}{compression}"
    alignment.write_links(path)
    problems = Problems(strict=True)
    found = {link.source: (link.target, link.probability) for link in read_link_rows(path, problems)}
    expected = {name: row for name, row in rows(alignment).items() if row.status in ("seed", "link")}
    assert {name: target for name, (target, _) in found.items()} == {name: row.target for name, row in expected.items()}
    if kind != "nt":
        for name, (_, probability) in found.items():
            assert probability == pytest.approx(expected[name].probability, abs=1e-6)


def test_entities_without_counterpart_are_listed_as_such(alignment, tmp_path):
    alone = {row.source for row in rows(alignment).values() if row.status == "no_counterpart"}
    alignment.write_links(tmp_path / "links.jsonl")
    records = [json.loads(line) for line in (tmp_path / "links.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {r["source"] for r in records if r["status"] == "no_counterpart" and r["target"] is None} == alone
    alignment.write_links(tmp_path / "links.sssom.tsv")
    text = (tmp_path / "links.sssom.tsv").read_text(encoding="utf-8")
    assert text.count("\tsssom:NoTermFound\t") == len(alone)


def test_sssom_has_the_metadata_that_the_standard_asks_for(alignment, tmp_path):
    alignment.write_links(tmp_path / "links.sssom.tsv")
    lines = (tmp_path / "links.sssom.tsv").read_text(encoding="utf-8").splitlines()
    metadata = [line for line in lines if line.startswith("#")]
    for key in ("mapping_set_id", "license", "mapping_tool", "mapping_date", "curie_map"):
        assert any(line.startswith(f"#{key}:") for line in metadata)
    values = dict(line[1:].split(": ", 1) for line in metadata if ": " in line)
    assert json.loads(values["comment"]) == alignment.calibrator.note  # in quotes: it may hold a colon
    assert json.loads(values["  owl"]) == "http://www.w3.org/2002/07/owl#"
    prefixes = {line[3:].split(":")[0] for line in metadata if line.startswith("#  ")}
    header, *body = [line.split("\t") for line in lines if not line.startswith("#")]
    assert header[:4] == ["subject_id", "predicate_id", "object_id", "mapping_justification"]
    for fields in body:
        assert len(fields) == len(header)
        assert {field.split(":")[0] for field in fields[:4]} <= prefixes


@pytest.mark.parametrize("kind", [kind for kind in LINK_FORMATS if kind != "sssom"])
def test_the_relation_alignment_is_written_too(alignment, tmp_path, kind):
    path = tmp_path / f"relations.{kind}"
    alignment.write_relations(path)
    if kind == "nt":
        table = read_triples(path)
        assert list(table.relations) == ["http://www.w3.org/2000/01/rdf-schema#subPropertyOf"]
    elif kind == "tsv":
        header, first, *_ = (line.split("\t") for line in path.read_text().splitlines())
        assert header == ["source", "target", "inverse", "source_in_target", "target_in_source"]
        assert 0.5 < float(first[3]) <= 1.0 and first[2] in ("true", "false")
    assert path.stat().st_size > 0


def test_relations_have_no_sssom_and_unknown_suffixes_are_refused(alignment, tmp_path):
    with pytest.raises(ValueError, match="not written as SSSOM"):
        alignment.write_relations(tmp_path / "r.sssom.tsv")
    with pytest.raises(ValueError, match="names no known format of links"):
        alignment.write_links(tmp_path / "links.doc")
    assert list(tmp_path.iterdir()) == []


def test_one_to_one_links_no_target_twice_and_min_prob_is_a_floor(alignment):
    pair = alignment.pair
    loose = sf.align(pair, rounds=1, calibration="none", min_prob=0.0)
    strict = sf.align(pair, rounds=1, calibration="none", min_prob=0.0, one_to_one=True)
    assert len(np.unique(loose.pairs[:, 1])) < len(loose.pairs)
    assert len(np.unique(strict.pairs[:, 1])) == len(strict.pairs)
    high = sf.align(pair, rounds=1, calibration="none", min_prob=0.9)
    kept = high.links.status == 1
    assert (high.links.probs[kept] >= 0.9).all()
    assert 0 < kept.sum() < (alignment.links.status == 1).sum()


def test_a_pair_without_names_is_written_in_the_ids_of_its_files(tmp_path):
    n = 40
    triples = "".join(f"{100 + i}\t{r}\t{100 + (i * (r + 2) + 1) % n}\n" for i in range(n) for r in range(3))
    for name in ("triples_1", "triples_2"):
        (tmp_path / name).write_text(triples)
    (tmp_path / "ref_ent_ids").write_text("".join(f"{100 + i}\t{100 + i}\n" for i in range(n)))
    alignment = sf.align(sf.load_pair(tmp_path, 0.3), rounds=1, calibration="none")
    alignment.write_links(tmp_path / "links.tsv")
    links = read_link_rows(tmp_path / "links.tsv", Problems())
    assert {link.source for link in links} <= {str(100 + i) for i in range(n)}
    assert sum(link.source == link.target for link in links) > n // 2


def test_a_result_that_cannot_be_written_leaves_the_old_file(alignment, tmp_path, monkeypatch):
    path = Path(tmp_path / "links.tsv")
    path.write_text("old")
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        alignment.write_links(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_rows_of_any_origin_are_written_without_an_alignment(tmp_path):
    links = [LinkRow("a", "x", 0.75, 1, "both", "link"), LinkRow("b", None, None, None, None, "no_counterpart")]
    for kind in LINK_FORMATS:
        write_link_rows(links, tmp_path / "links", format=kind, name="mine", comment="by hand: two rows")
        link, *others = read_link_rows(tmp_path / "links", Problems(strict=True), format=kind)
        assert (link.source, link.target, others) == ("a", "x", [])
    relations = [RelationRow("r", "s", False, 0.9, 0.2), RelationRow("r", "t", True, 0.8, 0.8)]
    write_relation_rows(relations, tmp_path / "relations.nt")
    table = read_triples(tmp_path / "relations.nt")
    assert (list(table.entities), len(table.triples)) == (["r", "s"], 1)  # r ⊆ s only: 0.2 is not likely, t is inverse


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_typed_files_say_on_what_the_probabilities_rest(alignment, tmp_path, kind):
    from pyarrow import feather, parquet

    path = tmp_path / f"links.{kind}"
    alignment.write_links(path)
    table = (parquet.read_table if kind == "parquet" else feather.read_table)(path)
    assert table.schema.metadata[b"comment"].decode() == alignment.calibrator.note
    assert set(table.column("calibration").to_pylist()) == {"given", "prior only", None}


def test_rows_of_text_files_say_on_what_their_probability_rests(alignment, tmp_path):
    expected = {"seed": "given", "link": "prior only", "uncertain": "prior only", "no_counterpart": None}
    for kind in ("tsv", "csv", "jsonl"):
        alignment.write_links(tmp_path / f"links.{kind}")
    for kind, mark in (("tsv", "\t"), ("csv", ",")):
        with (tmp_path / f"links.{kind}").open(encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file, delimiter=mark))
        assert {(row["status"], row["calibration"] or None) for row in found} == set(expected.items())
    records = map(json.loads, (tmp_path / "links.jsonl").read_text(encoding="utf-8").splitlines())
    assert {(record["status"], record["calibration"]) for record in records} == set(expected.items())


def test_statements_stand_behind_a_line_that_says_how_their_links_were_chosen(alignment, tmp_path):
    alignment.write_links(tmp_path / "links.nt")
    first, second, *_ = (tmp_path / "links.nt").read_text(encoding="utf-8").splitlines()
    assert first == f"# {alignment.calibrator.note}" and second.startswith("<")
    write_link_rows([LinkRow("a", "x", 1.0, 1, "both", "link")], tmp_path / "l.nt", comment="two\n<http://lines> .")
    assert len(read_link_rows(tmp_path / "l.nt", Problems(strict=True))) == 1


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "parquet", "arrow", "nt", "sssom"])
def test_uncertain_sources_are_never_read_as_links(tmp_path, kind):
    rows = [LinkRow("a", "x", 0.9, 1, "both", "link"), LinkRow("b", "y", 0.3, 1, "forward", "uncertain")]
    path = tmp_path / f"links.{'sssom.tsv' if kind == 'sssom' else kind}"
    write_link_rows(rows, path, name="n", comment="c")
    assert [link.source for link in read_link_rows(path, Problems())] == ["a"]
