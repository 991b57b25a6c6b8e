"""Files of one graph: every format keeps every triple and every name."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stea_fast._util.name_table import NameTable
from stea_fast.formats import rdf
from stea_fast.formats.terms import unwrap, wrap
from stea_fast.formats.triple_table import Problems, TableBuilder
from stea_fast.formats.triples import FORMATS, TripleTable, read_triples, write_triples

pyoxigraph = pytest.importorskip("pyoxigraph", reason="RDF needs pyoxigraph")
pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
zstandard = pytest.importorskip("zstandard", reason="zstd needs zstandard")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
IRIS = st.sampled_from(
    ["http://dbpedia.org/resource/Berlin", "http://zh.dbpedia.org/resource/金大中", "http://x.org/a#1", "urn:isbn:1",
     "http://x.org/a?b=c&d='e'", "http://x.org/%E2%82%AC", "http://www.w3.org/1999/02/22-rdf-syntax-ns#li", "x:y/"]
)  # fmt: skip
BLANK = st.sampled_from(["_:b0", "_:0a", "_:a.b", "_:é", "_: no label", "_:"])
LITERALS = st.sampled_from(
    [
        '"Berlin"',
        '"Berlin"@de',
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"a\\n\\t\\"b\\\\"',
        '"\\r"',
        '"open',
    ]
)
NAMES = st.one_of(IRIS, BLANK, LITERALS, TEXT.map(wrap), TEXT)
GRAPHS = st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=6)


def table_of(triples: list[tuple[str, str, str]]) -> TripleTable:
    builder = TableBuilder(Problems())
    for triple in triples:
        builder.add(*(name.encode() for name in triple))
    return builder.build()


def named(table: TripleTable) -> set[tuple[str, str, str]]:
    return {(table.entities[h], table.relations[r], table.entities[t]) for h, r, t in table.triples.tolist()}


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- round trips ---


@pytest.mark.parametrize("second", FORMATS)
@pytest.mark.parametrize("first", FORMATS)
@given(triples=GRAPHS)
@settings(max_examples=15)
def test_every_triple_and_name_survives_the_way_through_two_formats(tmp_path_factory, first, second, triples):
    folder = tmp_path_factory.mktemp("trip")
    write_triples(table_of(triples), folder / f"a.{first}")
    through = read_triples(folder / f"a.{first}", literals="keep", strict=True)
    write_triples(through, folder / f"b.{second}")
    back = read_triples(folder / f"b.{second}", literals="keep", strict=True)
    assert named(through) == named(back) == set(triples)


@pytest.mark.parametrize("compression", ["gz", "zst"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_may_be_compressed(tmp_path, name, compression):
    table = table_of([("http://a", "http://p", "_:b"), ("Köln", "liegt in", "http://a")])
    path = tmp_path / f"graph.{name}.{compression}"
    write_triples(table, path)
    assert path.read_bytes()[:2] == {"gz": b"\x1f\x8b", "zst": b"\x28\xb5"}[compression]
    assert named(read_triples(path)) == named(table)


@given(TEXT)
def test_any_text_can_be_written_as_an_iri_and_read_back(name):
    assert unwrap(wrap(name)) == name
    pyoxigraph.NamedNode(wrap(name))


# --- N-Triples: the fast way reads what the parser reads ---

SCHEMES = st.sampled_from(
    ["http://a.b/", "https://a.b/c#", "http://a.b", "urn:", "x", "http://[::1]/", "http://a.b/%4", ""]
)
TOKENS = st.one_of(
    st.builds("<{}{}>".format, SCHEMES, st.text('abé金%20#/:<>" \\|^.', max_size=4)),
    st.sampled_from(
        ["_:b", "_:b.c", "_:b.", '"x"', '"a b"@en', '"x"^^<http://t>', ".", "", "<<", "# note", "<http://a.b/\\u00e9>"]
    ),
)
LINES = st.lists(
    st.builds(
        lambda tokens, space, end: space.join(tokens) + end,
        st.lists(TOKENS, min_size=2, max_size=4),
        st.sampled_from([" ", "\t", "  ", "", "\x0b", "\r"]),
        st.sampled_from([" .\n", ".\n", " . # note\n", " .\r\n", " . \n", "\n", " .", " . ."]),
    ),
    max_size=4,
)


def parsed_by_the_library(text: bytes) -> tuple[set[tuple[str, str, str]], int]:
    quads = pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.N_TRIPLES)
    found, errors = set(), 0
    while True:
        try:
            for quad in quads:
                found.add((str(quad.subject), str(quad.predicate), str(quad.object)))
            return found, errors
        except SyntaxError:  # noqa: PERF203
            errors += 1


@given(LINES)
@settings(max_examples=300)
def test_n_triples_are_read_as_the_rdf_library_reads_them(lines):
    text = "".join(lines).encode()
    table = rdf.read(io.BytesIO(text), Path("x.nt"), "nt", Problems(), literals="keep")
    expected, errors = parsed_by_the_library(text)
    assert {tuple(name if name[:1] in '_"' else f"<{name}>" for name in triple) for triple in named(table)} == expected
    assert table.problems.count == errors


def test_simple_lines_take_the_fast_way_and_keep_the_order_of_the_file():
    builder = TableBuilder(Problems())
    assert rdf._add_simple_lines(b"<http://a/x> <http://a/p> _:b .\n_:b <http://a/p> <http://a/y> .\n", builder)
    table = builder.build()
    assert list(table.entities) == ["<http://a/x>", "_:b", "<http://a/y>"]
    assert table.triples.tolist() == [[0, 0, 1], [1, 0, 2]]


def test_a_file_of_many_chunks_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("stea_fast.formats.streams.CHUNK", 100)
    lines = [
        f"<http://a/{i}> <http://a/p> {f'<http://a/{i + 1}>' if i % 7 else f'{chr(34)}v {i}{chr(34)}'} .\n"
        for i in range(200)
    ]
    lines[150] = "nonsense\n"
    table = read_triples(write(tmp_path / "a.nt", "".join(lines)), literals="drop")
    assert len(table.triples) == 200 - 1 - 29
    assert table.problems.dropped_literals == 29
    assert table.problems.first[0].startswith(f"{tmp_path / 'a.nt'}:151: ")


# --- literals, headers, columns ---


@pytest.mark.parametrize(("name", "text"), [
    ("a.nt", '<http://a> <http://p> "x" .\n<http://a> <http://p> <http://b> .\n'),
    ("a.ttl", '@prefix e: <http://> . e:a e:p "x", e:b .'),
    ("a.rdf", '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://"><rdf:Description '
              'rdf:about="http://a"><e:p>x</e:p><e:p rdf:resource="http://b"/></rdf:Description></rdf:RDF>'),
])  # fmt: skip
def test_literals_are_dropped_and_counted_unless_they_are_kept(tmp_path, name, text):
    path = write(tmp_path / name, text)
    dropped, kept = read_triples(path, literals="drop"), read_triples(path, literals="keep")
    assert named(dropped) == {("http://a", "http://p", "http://b")}
    assert dropped.problems.dropped_literals == 1
    assert named(kept) == named(dropped) | {("http://a", "http://p", '"x"')}


@pytest.mark.parametrize("header", ["", "head\trelation\ttail\n", "Subject\tPredicate\tObject\n", "s\tp\to\n"])
def test_a_table_may_have_a_header_or_none(tmp_path, header):
    assert named(read_triples(write(tmp_path / "a.tsv", f"{header}a\tp\tb\n"))) == {("a", "p", "b")}


def test_columns_are_found_by_their_names_among_others(tmp_path):
    path = write(tmp_path / "a.csv", 'weight,tail,head,relation\r\n0.5,"b, or c",a,p\r\n')
    assert named(read_triples(path)) == {("a", "p", "b, or c")}


# --- what cannot be read ---


def test_malformed_lines_are_reported_with_file_and_line_and_left_out(tmp_path):
    path = write(tmp_path / "a.tsv", b"a\tp\tb\nonly two\tcolumns\n\nc\tp\td\n\xff\tp\td\ne\t\tf\n")
    table = read_triples(path)
    assert named(table) == {("a", "p", "b"), ("c", "p", "d")}
    assert [problem.split(": ")[0] for problem in table.problems.first] == [f"{path}:2", f"{path}:5", f"{path}:6"]


@pytest.mark.parametrize(("name", "text", "line"), [
    ("a.nt", b"<http://a> <http://p> <http://b> .\nnonsense\n", 2),
    ("a.nt", b"<http://a> <http://p> <http://\xff> .\n", 1),
    ("a.ttl", b"@prefix e: <http://e/> .\ne:a e:b\n  nonsense .\n", 3),
    ("a.tsv", b"a\tp\tb\na\tb\n", 2),
    ("a.csv", b"a,p,b\na,p\n", 2),
    ("a.csv", b'a,p,b\na,p,"b"c\n', 2),
])  # fmt: skip
def test_strict_reading_stops_at_the_first_malformed_line(tmp_path, name, text, line):
    with pytest.raises(ValueError, match=rf"{name}:{line}: "):
        read_triples(write(tmp_path / name, text), strict=True)


@pytest.mark.parametrize("name", ["a.nt", "a.tsv", "a.csv"])
def test_an_empty_graph_is_an_error(tmp_path, name):
    with pytest.raises(ValueError, match="holds no triples"):
        read_triples(write(tmp_path / name, ""))


def test_a_graph_of_literals_only_says_how_to_read_them(tmp_path):
    with pytest.raises(ValueError, match="--literals values"):
        read_triples(write(tmp_path / "a.nt", '<http://a> <http://p> "x" .\n'), literals="drop")


def test_a_file_of_another_format_is_refused_with_its_first_problem(tmp_path):
    with pytest.raises(ValueError, match=r"holds no triple that can be read as nt; the first problem is .*a\.nt:1: "):
        read_triples(write(tmp_path / "a.nt", "a,b,c\n"))
    with pytest.raises(ValueError, match="not a readable parquet file"):
        read_triples(write(tmp_path / "a.parquet", "a,b,c\n"))
    with pytest.raises(ValueError, match=r"a\.doc: the suffix '\.doc' names no known format"):
        read_triples(write(tmp_path / "a.doc", "a"))


@pytest.mark.parametrize("name", ["a.nt", "a.ttl", "a.tsv", "a.csv"])
@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("zst", zstandard.compress)])
def test_a_file_that_was_cut_off_is_named_and_not_read_as_a_shorter_one(tmp_path, name, suffix, compress):
    rng = np.random.default_rng(0)
    whole = compress(
        "".join(f"<http://a/{i}> <http://p> <http://b> .\n" for i in rng.integers(10**9, size=20_000)).encode()
    )
    path = write(tmp_path / f"{name}.{suffix}", whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=rf"{path.name} is damaged"):
        read_triples(path)


def test_all_frames_of_a_zstd_file_are_read(tmp_path):
    parts = [zstandard.compress(b"a\tp\tb\n"), zstandard.compress(b"b\tp\tc\n" * 100_000)]
    assert len(read_triples(write(tmp_path / "a.tsv.zst", b"".join(parts))).triples) == 100_001


@pytest.mark.parametrize("entity", ['SYSTEM "file:///etc/hostname"', 'SYSTEM "http://127.0.0.1:9/x"'])
def test_rdf_xml_loads_no_external_entity(tmp_path, entity):
    text = (
        f'<!DOCTYPE r [<!ENTITY x {entity}>]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:e="http://e/"><rdf:Description rdf:about="http://a"><e:p>&x;</e:p></rdf:Description></rdf:RDF>'
    )
    with pytest.raises(ValueError, match=r"a\.rdf:1: "):
        read_triples(write(tmp_path / "a.rdf", text), literals="keep")


@pytest.mark.parametrize(
    ("package", "extra", "suffix"), [("pyoxigraph", "rdf", "nt"), ("pyarrow", "tables", "parquet")]
)
def test_an_absent_package_gives_the_command_that_installs_it(tmp_path, package, extra, suffix):
    path = write(tmp_path / f"a.{suffix}", "x")
    code = f"import sys; sys.modules['{package}'] = None; import stea_fast as sf; sf.read_graph({str(path)!r})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stderr.endswith(f"needs an optional package: pip install 'stea-fast[{extra}]'\n")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write(tmp_path / "a.tsv", "old")
    broken = TripleTable(np.array([[0, 0, 9]]), NameTable.pack(["a"]), NameTable.pack(["p"]))
    with pytest.raises(IndexError):
        write_triples(broken, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_can_be_read(tmp_path):
    path = tmp_path / "pipe.tsv.gz"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(gzip.compress(b"a\tp\tb\n")))
    writer.start()
    assert named(read_triples(path)) == {("a", "p", "b")}
    writer.join()
