"""SSSOM files: the community's own tools read them and find nothing to complain about; every name comes back."""

from __future__ import annotations

import unicodedata

import pytest

from stea_fast.formats.links import read_link_rows, write_link_rows
from stea_fast.formats.result_rows import LinkRow
from stea_fast.formats.triples import Problems

BUILT_IN = [
    "http://www.w3.org/2002/07/owl#Thing",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#Concept",
    "https://w3id.org/semapv/vocab/Matching",
    "https://w3id.org/sssom/Mapping",
    "https://w3id.org/sssom/NoTermFound",
    "urn:stea-fast:own",
]
AWKWARD = [
    "Berlin", "", "tab\there", "two\nlines", "a\x1b[31m", "http://x.org/\x7f/d", "http://x.org/\x85/e", "_:b0",
    "http://x.org/\u2028/f", "http://\ufeffy.org/z", "http://x.org/a\x01b", "http://x.org/", "http://x.org/金大中",
    "http://x.org/100%", "http://x.org/%E9%87%91", "http://x.org/a[b]", "http://x.org/q?a=b:c", "mailto:a@b.org",
    "urn:stea-fast:nx", "urn:stea-fast:b1.x", "urn:isbn:123", "NA", "🙂", "http://x🙂.org/a", "'quoted'",
    '"literal"@en',
]  # fmt: skip
NAMES = BUILT_IN + AWKWARD
NOTE = "a\x85b: 'c' \"d\" \x9b \u2028 🙂 \ufffe # e"


@pytest.fixture
def path(tmp_path):
    rows = [LinkRow(name, other, 0.5, 1, "both", "link") for name, other in zip(NAMES, NAMES[::-1], strict=True)]
    rows.append(LinkRow("http://x.org/alone", None, None, None, None, "no_counterpart"))
    write_link_rows(rows, tmp_path / "links.sssom.tsv", name=NOTE, comment=NOTE)
    return tmp_path / "links.sssom.tsv"


def test_every_name_is_read_back(path):
    links = read_link_rows(path, Problems(strict=True))
    assert [(link.source, link.target) for link in links] == list(zip(NAMES, NAMES[::-1], strict=True))


def test_there_is_no_control_character_in_the_file(path):
    text = path.read_text(encoding="utf-8").replace("\t", "").replace("\n", "")
    assert [letter for letter in text if unicodedata.category(letter) == "Cc"] == []


def test_no_two_prefixes_stand_for_one_namespace_and_every_curie_has_one(path):
    curies = pytest.importorskip("curies")
    yaml = pytest.importorskip("yaml")
    lines = path.read_text(encoding="utf-8").split("\n")
    metadata = yaml.safe_load("\n".join(line[1:] for line in lines if line.startswith("#")))
    assert metadata["comment"] == NOTE
    converter = curies.Converter.from_prefix_map(metadata["curie_map"])  # refuses namespaces that stand twice
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")][1:]
    assert len(rows) == len(NAMES) + 1
    expanded = [converter.expand(row[0]) for row in rows]
    assert None not in expanded and all(name in expanded for name in BUILT_IN[:6])


@pytest.mark.slow
def test_the_tools_of_the_standard_take_every_row_and_complain_of_nothing(path):
    pytest.importorskip("sssom", reason="the tools of the standard are in stea-fast[sssom]")
    from sssom.parsers import parse_sssom_table
    from sssom.validators import validate

    mappings = parse_sssom_table(path)
    assert len(mappings.df) == len(NAMES) + 1
    for report in validate(mappings, fail_on_error=False).values():
        assert report.results == []
    assert mappings.metadata["comment"] == NOTE
    expanded = {mappings.converter.expand(curie) for curie in mappings.df["subject_id"]}
    assert set(BUILT_IN[:6]) <= expanded and "http://x.org/%E9%87%91%E5%A4%A7%E4%B8%AD" in expanded


def test_plain_names_need_no_columns_of_our_own(tmp_path):
    write_link_rows([LinkRow("http://a/x", "b", 0.5, 1, "both", "link")], tmp_path / "links.sssom.tsv")
    text = (tmp_path / "links.sssom.tsv").read_text()
    assert "ext_" not in text and "extension_definitions" not in text


def test_a_file_of_somebody_else_is_read_with_its_own_prefixes(tmp_path):
    path = tmp_path / "theirs.sssom.tsv"
    path.write_text(
        "#mapping_set_id: https://x.org/set\n#curie_map:\n#  A: http://a.org/\n#  B: 'http://b.org/'\n"
        "subject_id\tpredicate_id\tobject_id\tmapping_justification\nA:1\tskos:exactMatch\tB:2\tsemapv:Manual\n"
    )
    (link,) = read_link_rows(path, Problems(strict=True))
    assert (link.source, link.target) == ("http://a.org/1", "http://b.org/2")


def test_half_a_character_in_a_prefix_is_a_problem_with_its_line(tmp_path):
    path = tmp_path / "links.sssom.tsv"
    path.write_text('#curie_map:\n#  n: "http://x\\ud800/"\nsubject_id\tobject_id\nn:a\tn:b\nc\td\n', encoding="utf-8")
    problems = Problems(strict=False)
    assert [(link.source, link.target) for link in read_link_rows(path, problems)] == [("c", "d")]
    assert problems.first == [f"{path}:4: a name holds half a character, '\\ud800'"]
