"""Files that are damaged, or made to do harm: each is an error or a counted problem, in bounded time and memory."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from stea_fast.formats import literal_limits, rdf, streams
from stea_fast.formats.links import read_link_rows
from stea_fast.formats.triple_table import Problems
from stea_fast.formats.triples import read_triples

pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")
pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
zstandard = pytest.importorskip("zstandard", reason="zstd needs zstandard")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

COLUMNS = {"head": ["anna", "ben"], "relation": ["knows", "knows"], "tail": ["ben", "carl"]}
RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">{}</rdf:RDF>'
STATEMENTS = RDF.format(
    '<rdf:Description rdf:about="http://a"><e:p rdf:resource="http://b"/><e:q>{}</e:q></rdf:Description>'
)
MEBIBYTE = 1 << 20


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def names(path: Path, **options: object) -> set[tuple[str, str, str]]:
    table = read_triples(path, **options)
    return {(table.entities[h], table.relations[r], table.entities[t]) for h, r, t in table.triples.tolist()}


# --- Arrow and Parquet ---


def arrow_file(columns: dict[str, object] = COLUMNS) -> bytes:
    stream = io.BytesIO()
    feather.write_feather(pyarrow.table(columns), stream, compression="uncompressed")
    return stream.getvalue()


@pytest.mark.parametrize("offset", [2**31 - 1, -(2**31)])
def test_an_arrow_file_whose_offsets_lie_does_not_crash_the_reader(tmp_path, offset):
    """In a process of its own: without validation it is ended by a segmentation fault."""
    honest, crafted = (number.to_bytes(4, "little", signed=True) for number in (4, offset))
    content = arrow_file()
    place = content.index((0).to_bytes(4, "little") + honest + (7).to_bytes(4, "little")) + 4  # of "anna", "ben"
    path = write(tmp_path / "a.arrow", content[:place] + crafted + content[place + 4 :])
    code = f"import stea_fast as sf; sf.read_graph({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"ValueError: {path} is not a readable arrow file: " in done.stderr


def test_names_that_are_not_utf8_are_an_error(tmp_path):
    content = arrow_file().replace(b"anna", b"an\xff\xfe")
    with pytest.raises(ValueError, match=r"a\.arrow is not a readable arrow file: .*UTF8"):
        read_triples(write(tmp_path / "a.arrow", content))


@pytest.mark.parametrize("column", ["head", "other"])
def test_lists_and_records_are_no_names_and_do_no_harm_beside_them(tmp_path, column):
    path = write(tmp_path / "a.arrow", arrow_file({**COLUMNS, column: [["x"], ["y", "z"]]}))
    if column == "other":
        assert len(names(path)) == 2
    else:
        with pytest.raises(ValueError, match=r"expected columns head, relation, tail.*found relation, tail"):
            read_triples(path)


def test_a_long_text_that_many_rows_share_is_in_memory_once(tmp_path):
    path, rows = tmp_path / "a.parquet", 1000
    long = pyarrow.DictionaryArray.from_arrays([0] * rows, ["x" * MEBIBYTE])
    table = pyarrow.table({"head": long, "relation": ["p"] * rows, "tail": list(map(str, range(rows)))})
    parquet.write_table(table, path, store_schema=False)  # so that nothing says that it was a dictionary
    tracemalloc.start()
    assert len(read_triples(path).triples) == rows
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size < 2 * MEBIBYTE
    assert peak < 32 * MEBIBYTE  # of Python
    assert pyarrow.default_memory_pool().max_memory() < 256 * MEBIBYTE  # and of the library


def test_bytes_without_a_note_that_they_are_text_are_text(tmp_path):
    columns = {name: pyarrow.array(values, pyarrow.binary()) for name, values in COLUMNS.items()}
    assert ("anna", "knows", "ben") in names(write(tmp_path / "a.arrow", arrow_file(columns)))


# --- RDF ---


def laughs(levels: int) -> str:
    entities = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(levels))
    return f'<!DOCTYPE r [<!ENTITY a0 "ha">{entities}]>' + STATEMENTS.format(f"&a{levels};")


@pytest.mark.parametrize("where", ["before", "inside", "split between chunks"])
def test_entities_of_entities_are_refused_before_they_are_expanded(tmp_path, where):
    text = laughs(9)  # 2 GB when it is expanded
    if where == "inside":
        text = RDF.format(text)
    if where == "split between chunks":  # the word that gives it away
        text = "\n" * (streams.CHUNK - 17) + '<!DOCTYPE r [<!ENTITY x "&amp;">]>' + STATEMENTS.format("&x;")
    with pytest.raises(ValueError, match=r"a\.rdf:\d+: only entities that are plain text"):
        read_triples(write(tmp_path / "a.rdf", text), literals="keep")


def test_an_entity_of_many_bytes_or_many_uses_is_refused(tmp_path):
    entity = '<!DOCTYPE r [<!ENTITY x "{}">]>'
    with pytest.raises(ValueError, match="at most 1,024 bytes"):
        read_triples(write(tmp_path / "a.rdf", entity.format("x" * 1025) + STATEMENTS.format("&x;")))
    often = entity.format("x" * 1000) + STATEMENTS.format("&x;" * 50_000)
    with pytest.raises(ValueError, match="entities make the file many times as long as it is"):
        read_triples(write(tmp_path / "a.rdf", often), literals="keep")


def test_entities_that_stand_for_namespaces_are_expanded(tmp_path):
    entities = '<!DOCTYPE r [\n<!ENTITY ex "http://example.org/ns#" >\n<!ENTITY q "x">]>'
    text = STATEMENTS.format("&q;").replace("http://b", "&ex;b")
    path = write(tmp_path / "a.owl", entities + text)
    assert names(path) == {("http://a", "http://e/p", "http://example.org/ns#b")}


LONG = "long line\n" * (2 * MEBIBYTE)
ESCAPED = LONG.replace("\n", "\\n")


@pytest.mark.parametrize(("name", "text"), [
    ("a.nt", f'<http://a> <http://e/q> "{ESCAPED}" .\n<http://a> <http://e/p> <http://b> .\n'),
    ("a.ttl", f'<http://a> <http://e/q> """{LONG}"""@en ; <http://e/p> <http://b> .'),
    ("a.ttl", f"<http://a> <http://e/q> '{ESCAPED}' ; <http://e/p> <http://b> ."),
    ("a.rdf", STATEMENTS.format(LONG)),
    ("a.rdf", STATEMENTS.format(f"<![CDATA[{LONG}]]>")),
])  # fmt: skip
def test_a_literal_of_twenty_megabytes_is_left_out_with_the_others_and_cannot_be_kept(tmp_path, name, text):
    path = write(tmp_path / name, text)
    table = read_triples(path, literals="drop", strict=True)
    assert names(path) == {("http://a", "http://e/p", "http://b")}
    assert (table.problems.dropped_literals, table.problems.count) == (1, 0)
    with pytest.raises(ValueError, match=rf"{name}:?.*: a literal of more than .*drop"):
        read_triples(path, literals="keep")


def test_lines_behind_a_long_literal_keep_their_numbers(tmp_path):
    text = f'<http://a> <http://e/q> """{"x" * MEBIBYTE}\n\n\n""" .\n<http://a> <http://e/p> <http://b> .\nnonsense .\n'
    table = read_triples(write(tmp_path / "a.ttl", text))
    assert table.problems.first[0].startswith(f"{tmp_path / 'a.ttl'}:6: ")
    text = '<http://a> <http://q> "{}" .\n<http://a> <http://p> <http://b> .\nnonsense\n'.format("x" * (17 * MEBIBYTE))
    table = read_triples(write(tmp_path / "a.nt", text))
    assert table.problems.first[0].startswith(f"{tmp_path / 'a.nt'}:3: ")


@pytest.mark.parametrize("text", [
    "e:a e:b '''it''s \\''' long''' , \"x\" . # a comment with a quote: \"\ne:a e:c <http://x/'> .",
    'e:a e:b """two "quotes" \\""" here""" ; e:O\\\'c "" , \'\' , "\\\\" .',
    "e:a e:b 'it\\'s \\n\\n\\n \\\\', e:c , \"\\\"\\\"\\\"\\\"\\\"\\\"\" .",
    "e:a e:b '''''' , \"\"\"\"\"\" , '\"', \"'\"@en .\n e:a e:b e:c .",
])  # fmt: skip
def test_turtle_says_the_same_with_its_long_literals_emptied(monkeypatch, text):
    text = "@prefix e: <http://e/> .\n" + text
    monkeypatch.setattr(literal_limits, "LONGEST_LITERAL", 8)
    for size in range(1, 60):
        monkeypatch.setattr(literal_limits, "CHUNK", size)
        problems = Problems(strict=True)
        table = rdf.read(io.BytesIO(text.encode()), Path("a.ttl"), "ttl", problems, literals="drop")
        whole = Problems(strict=True)
        kept = rdf.read(io.BytesIO(text.encode()), Path("a.ttl"), "ttl", whole, literals="keep")
        literals = sum(kept.entities[tail].startswith('"') for tail in kept.triples[:, 2].tolist())
        assert problems.dropped_literals == literals
        assert len(table.triples) == len(kept.triples) - literals


# --- text tables ---


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_field_of_a_megabyte_is_read_back(tmp_path, name):
    long = "x" * MEBIBYTE
    separator = "," if name == "a.csv" else "\t"
    path = write(tmp_path / name, f"{separator.join(('a', 'p', long))}\n")
    assert names(path, strict=True) == {("a", "p", long)}
    if name == "a.csv":
        quoted = '"{}"'.format(long.replace("xx" * 5000, '""\n'))
        path = write(tmp_path / "b.csv", f"a,p,{quoted}\n")
        assert names(path, strict=True) == {("a", "p", quoted[1:-1].replace('""', '"'))}
    assert csv.field_size_limit() == 131072  # what other readers of this process rely on


@pytest.mark.parametrize("stray", ['x,p,"y', '"x,p,y', 'x,"p,y', 'x,p,"y""'])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_stray_quote_costs_the_line_where_it_stands_and_no_other(tmp_path, stray, quote):
    lines = [f"e{i},p,{quote}e{i + 1}{quote}" for i in range(5000)]
    lines[10] = stray
    table = read_triples(write(tmp_path / "a.csv", "\n".join(lines)))
    assert len(table.triples) == 4999
    assert table.problems.count == 1
    assert table.problems.first[0].startswith(f"{tmp_path / 'a.csv'}:11: ")


def test_a_line_without_an_end_is_read_past_and_not_held(tmp_path):
    content = gzip.compress(b"a\tp\tb\n" + b"x" * (100 * MEBIBYTE) + b"\nb\tp\tc\n", 1)
    tracemalloc.start()
    table = read_triples(write(tmp_path / "a.tsv.gz", content))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(table.triples) == 2
    assert table.problems.first == [f"{tmp_path / 'a.tsv.gz'}:2: a line of more than {streams.LONGEST_LINE:,} bytes"]
    assert peak < 64 * MEBIBYTE


def test_zstd_is_unpacked_piece_by_piece(tmp_path):
    """A few kilobytes that unpack to hundreds of megabytes, most of it in one line."""
    packed = zstandard.ZstdCompressor(level=1).compress(b"a\tp\tb\n" + b"x" * (200 * MEBIBYTE) + b"\nb\tp\tc\n")
    tracemalloc.start()
    table = read_triples(write(tmp_path / "a.tsv.zst", packed))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(packed) < MEBIBYTE and len(table.triples) == 2
    assert peak < 128 * MEBIBYTE


def test_half_a_character_in_json_is_a_problem_with_its_line(tmp_path):
    lines = [json.dumps({"source": source, "target": "b"}) for source in ("a", "a\ud800", "\udfff", "😀")]
    problems = Problems()
    path = write(tmp_path / "links.jsonl", "\n".join([*lines, "[" * 100_000]))
    assert [link.source for link in read_link_rows(path, problems)] == ["a", "😀"]
    assert [text.split(": ")[0] for text in problems.first] == [f"{path}:{line}" for line in (2, 3, 5)]


@pytest.mark.parametrize(("name", "text"), [
    ("a.nt", b'<http://a> <http://p> <http://b\\uD800> .\n'),
    ("a.nt", b'<http://a> <http://p> <http://b\xed\xa0\x80> .\n'),
    ("a.ttl", b"<http://a> <http://p> <http://b\\uD800> .\n"),
    ("a.tsv", b"a\tp\t\xed\xa0\x80\n"),
    ("a.csv", b"a,p,\xed\xa0\x80\n"),
])  # fmt: skip
def test_half_a_character_is_refused_with_file_and_line(tmp_path, name, text):
    with pytest.raises(ValueError, match=rf"{name}:1: "):
        read_triples(write(tmp_path / name, text), literals="keep", strict=True)
