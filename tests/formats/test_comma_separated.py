"""CSV as people have it: long fields, line ends in fields, and quotes where none should be."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stea_fast.formats import comma_separated
from stea_fast.formats.triple_table import Problems
from stea_fast.formats.triples import read_triples, write_triples


def read(text, path="t.csv"):
    problems = Problems()
    return list(comma_separated.rows(io.BytesIO(text.encode()), path, problems)), problems.first


def test_a_field_of_a_megabyte_is_read_back(tmp_path):
    long = "x" * (1 << 20)
    (tmp_path / "a.csv").write_text(f'head,relation,tail\n"{long}, and more",r,t\na,r,b\n')
    table = read_triples(tmp_path / "a.csv", strict=True)
    assert table.entities[0] == f"{long}, and more" and len(table.triples) == 2
    write_triples(table, tmp_path / "b.csv")
    assert list(read_triples(tmp_path / "b.csv", strict=True).entities) == list(table.entities)


@pytest.mark.parametrize("stray", ['"a,r,b', 'a,"r,b', 'a,r,"b', '"a"x,r,b', '"a,r,""b'])
def test_a_stray_quote_spoils_its_own_line_only(tmp_path, stray):
    rows = [f"a{i},r,b{i}" for i in range(5000)]
    rows[10] = stray
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    table = read_triples(tmp_path / "a.csv")
    assert len(table.triples) == 4999
    assert table.problems.count == 1 and f"{tmp_path}/a.csv:11: " in table.problems.first[0]


def test_two_stray_quotes_do_not_make_one_field_of_all_between_them():
    rows, problems = read('a,b,c\n"x,y,z\n1,2,3\n4,5,6"\n7,8,9\n')
    assert [number for number, _ in rows] == [1, 3, 4, 5]
    assert len(problems) == 1 and problems[0].startswith("t.csv:2: ")


def test_line_ends_within_quotes_belong_to_the_field():
    rows, problems = read('a,"b\r\nc",d\r\n\r\n"e ""f""",,"g\n\nh"\r\ni,j,k')
    assert rows == [(1, ["a", "b\r\nc", "d"]), (4, ['e "f"', "", "g\n\nh"]), (7, ["i", "j", "k"])]
    assert problems == []


def test_a_quote_that_is_never_closed_is_not_looked_for_through_a_whole_file():
    stream, problems = io.BytesIO(b'"a,b,c\n' + b"1,2,3\n" * 100_000), Problems()
    rows = comma_separated.rows(stream, "t.csv", problems)
    assert next(rows) == (2, ["1", "2", "3"]) and stream.tell() < 300_000
    assert len(list(rows)) == 99_999 and problems.first == ["t.csv:1: a quote opens a field that is not closed"]


@given(st.lists(st.lists(st.text(st.sampled_from("ab,\"\n\r 'é"), max_size=6), min_size=2, max_size=2), max_size=8))
def test_what_the_standard_library_writes_is_read_back(table):
    text = io.StringIO(newline="")
    csv.writer(text).writerows(table)
    rows, problems = read(text.getvalue())
    assert [row for _, row in rows] == table and problems == []
