"""Names and values as files have them, given to `align` without a seed: links, a stated fallback, or an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stea_fast.cli.main import main

pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")

SIZE = 40
LABEL, OTHER = "http://www.w3.org/2000/01/rdf-schema#label", "http://x.org/about"
SCHEMA = "http://www.w3.org/2001/XMLSchema#"
WORDS = ["".join(np.random.default_rng(e).choice(list("abcdefghijklm"), 9)) for e in range(SIZE)]


def literals(template):
    """A literal for every entity, with {e} and {word} replaced."""
    return [template.format(e=e, day=30 + e % 3, year=1900 + e, word=WORDS[e]) for e in range(SIZE)]


def align(folder, values1, values2=None, *, about=LABEL, options=()):
    """Align two files in which nothing but these literals is said."""
    for name, values in (("a", values1), ("b", values2 or values1)):
        lines = (f"<http://{name}.org/e{e}> <{about}> {value} .\n" for e, value in enumerate(values) if value)
        (folder / f"{name}.nt").write_text("".join(lines), encoding="utf-8")
    files = [str(folder / name) for name in ("a.nt", "b.nt")]
    out = folder / "links.tsv"
    return main(["align", *files, "--out", str(out), "--calibration", "none", "--no-structure", *options])


def right_links(folder: Path) -> int:
    """How many of the links are right; none may be wrong."""
    rows = [line.split("\t") for line in (folder / "links.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    links = [[name.rpartition("/")[2] for name in row[:2]] for row in rows if row[5] == "link"]
    assert all(one == two for one, two in links)
    return len(links)


@pytest.mark.parametrize(("values1", "values2", "about"), [
    (literals('"e\u0301 {word}"'), literals('"é {word}"'), LABEL),  # combining characters
    (literals('"\u202eשלום {word}\u202c"'), literals('"שלום {word}"'), LABEL),  # right to left, with and without marks
    (literals('"{word}\x00x"'), literals('"{word}\\u0000x"'), LABEL),
    (literals('"{word} ' + "word " * 50_000 + '"')[:3] + literals('"{word}"')[3:], None, LABEL),
    (literals('"{year}"'), literals(f'"{{year}}.0"^^<{SCHEMA}double>'), OTHER),  # numbers as text
    (literals(f'"{{year}}-02-{{day}}"^^<{SCHEMA}date>'), None, OTHER),  # no such dates
    (literals('"{word}"')[:20] + literals(f'"{{year}}"^^<{SCHEMA}integer>')[20:], None, OTHER),  # mixed types
])  # fmt: skip
def test_odd_values_find_each_other(tmp_path, values1, values2, about):
    assert align(tmp_path, values1, values2, about=about) == 0
    assert right_links(tmp_path) == SIZE


@pytest.mark.parametrize(("odd", "message"), [
    ('""', "2 values left out: blank"),
    ('"' + "x" * 2**20 + '"', "2 values left out: blank, of an unknown type, or of more than 262,144 bytes"),
    ('"Köln"@k_ö', "malformed lines"),
    ('"Köln"@-', "malformed lines"),
    (None, "names of the first graph"),
])  # fmt: skip
def test_what_is_no_value_is_left_out_and_said(tmp_path, capsys, odd, message):
    assert align(tmp_path, [*literals('"{word}"')[:-2], odd, odd]) == 0
    assert message in capsys.readouterr().err
    assert right_links(tmp_path) == SIZE - 2


def test_an_invalid_language_is_an_error_where_strictness_is_asked_for(tmp_path, capsys):
    assert align(tmp_path, ['"Köln"@-', *literals('"{word}"')[1:]], options=["--strict"]) == 1
    assert "a.nt:1" in capsys.readouterr().err


@pytest.mark.parametrize("about", [LABEL, OTHER])
def test_what_all_have_is_nothing_to_start_from(tmp_path, capsys, about):
    assert align(tmp_path, ['"the same"'] * SIZE, about=about) == 7
    assert "nothing to start from" in capsys.readouterr().err
    assert not (tmp_path / "links.tsv").exists()


def test_a_file_of_names_and_a_table_may_hold_anything(tmp_path, capsys):
    names = [f"http://a.org/e{e}\t{WORDS[e]}" for e in range(SIZE)]
    odd = ["http://a.org/e0\t", "nonsense", "http://a.org/e1\t" + "x" * 2**20]
    (tmp_path / "names.tsv").write_text("\n".join([*names, *odd, ""]), encoding="utf-8")
    rows = [f"http://b.org/e{e},{word},\x00" for e, word in enumerate(WORDS)]
    ragged = ["http://b.org/e0", "http://b.org/e1,too,many,cells"]
    (tmp_path / "table.csv").write_text("\n".join(["id,title,note", *rows, *ragged, ""]), encoding="utf-8")
    options = ["--names1", str(tmp_path / "names.tsv"), "--values2", str(tmp_path / "table.csv")]
    assert align(tmp_path, ['"something else"'] * SIZE, about=OTHER, options=options) == 0
    said = capsys.readouterr().err
    assert "1 lines of" in said and "nonsense" in said  # in the file of names
    assert "2 rows of" in said and "expected 3 columns, got 1" in said and "of more than 262,144 bytes" in said
    assert right_links(tmp_path) == SIZE
