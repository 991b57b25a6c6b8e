"""N-Triples, Turtle and RDF/XML, by pyoxigraph."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from stea_fast.formats import terms
from stea_fast.formats.literal_limits import CheckedXml, TurtleWithoutLongLiterals
from stea_fast.formats.streams import CHUNK, LONGEST_LINE, LongLine, line_chunks
from stea_fast.formats.triple_table import Problems, TableBuilder, TripleTable
from stea_fast.formats.value_pool import LONGEST_VALUE

_RDF_FORMATS = {"nt": "N_TRIPLES", "ttl": "TURTLE", "rdf": "RDF_XML"}
_NOT_SIMPLE = (b'"', b"\r", b"\x0b", b"\x0c")  # literals, and what bytes.split() takes for a space but RDF does not
# Web addresses of ordinary letters, one per line: certainly IRIs. For any other the library is asked.
_ORDINARY = rb"<https?://[\w.-]+/(?:[\w.~:@!$&'()*+,;=/#-]|%[0-9A-Fa-f]{2})*>"
_LITERAL_LINE = re.compile(rb"[ \t]*(?:<[^<>]*>|_:[^\s\"]+)[ \t]*<[^<>]*>[ \t]*\"")
_TOO_LONG = (
    "a literal of more than 16 MiB cannot be kept; leave long ones out with literals='values' (--literals values), or "
    "all of them with 'drop'"
)
_ORDINARY_IRIS = re.compile(rb"(?:" + _ORDINARY + rb"\n)*", re.ASCII)


def read(stream: IO[bytes], path: Path, fmt: str, problems: Problems, *, literals: str) -> TripleTable:
    """Triples of a stream; objects that are literals are spelt as names ("values" and "keep") or left out ("drop").

    Literals that are to be values may have any length: those that are too long for one are left out as well.
    """
    builder = TableBuilder(problems)
    parser = _Parser(builder, path, fmt, literals)
    if fmt != "nt":
        parser.parse(parser.checked(stream))
        return builder.build(terms.name_of_token)
    terms.oxigraph()  # without it no line is read, so that what is read does not depend on the lines
    line = 1
    for chunk in line_chunks(stream):
        if isinstance(chunk, LongLine):
            parser.pass_over(chunk, line)
            line += 1
            continue
        if not _add_simple_lines(chunk, builder):
            parser.parse(chunk, line)
        line += chunk.count(b"\n")
    return builder.build(terms.name_of_token)


def _add_simple_lines(chunk: bytes, builder: TableBuilder) -> bool:
    """Add the triples if every line is `subject predicate object .` of plain IRIs and blank nodes.

    A whole chunk is split at once, and every distinct token is checked once, when it is first seen: several times
    as fast as a parser that makes objects of every term. Each line ends in a full stop, and no other token is one
    (it would not be accepted), so that every fourth token being one means that every line has four.
    """
    lines = chunk.count(b"\n")
    if any(mark in chunk for mark in _NOT_SIMPLE) or chunk.count(b" .\n") != lines:
        return False
    tokens = chunk.split()
    if len(tokens) != 4 * lines or tokens[3::4].count(b".") != lines:
        return False
    return builder.add_columns(tokens[0::4], tokens[1::4], tokens[2::4], _accept)


def _accept(entities: list[bytes], relations: list[bytes]) -> bool:
    """Whether all tokens are IRIs, or blank nodes where these may stand."""
    blank = [token for token in entities if token.startswith(b"_:")]
    iris = [token for token in entities if not token.startswith(b"_:")] if blank else entities
    return _are_iris(iris) and _are_iris(relations) and all(map(_is_blank_node, blank))


def _are_iris(tokens: list[bytes]) -> bool:
    return bool(_ORDINARY_IRIS.fullmatch(b"\n".join([*tokens, b""]))) or all(map(_is_iri, tokens))


def _is_iri(token: bytes) -> bool:
    if token[:1] != b"<" or token[-1:] != b">":
        return False
    try:
        terms.oxigraph().NamedNode(token[1:-1].decode())
    except ValueError:
        return False
    return True


def _is_blank_node(token: bytes) -> bool:
    try:
        terms.oxigraph().BlankNode(token[2:].decode())
    except ValueError:
        return False
    return True


class _Parser:
    """Feeds a builder with what pyoxigraph reads."""

    def __init__(self, builder: TableBuilder, path: Path, fmt: str, literals: str) -> None:
        self.builder, self.path, self.fmt, self.literals = builder, path, fmt, literals
        self.keep = literals == "keep"

    def checked(self, stream: IO[bytes]) -> IO[bytes]:
        """The stream without what the library cannot hold."""
        if self.fmt == "rdf":
            return io.BufferedReader(CheckedXml(stream, self.path, keep=self.keep), CHUNK)
        return stream if self.keep else io.BufferedReader(TurtleWithoutLongLiterals(stream), CHUNK)

    def pass_over(self, line: LongLine, number: int) -> None:
        """Count a line of N-Triples that is too long as a literal that is left out, or else as a problem."""
        if self.keep:
            raise ValueError(f"{self.path}:{number}: {_TOO_LONG}")
        if _LITERAL_LINE.match(line):
            self._leave_out_literal()
        else:
            self.builder.problems.add(f"{self.path}:{number}", f"a line of more than {LONGEST_LINE:,} bytes")

    def parse(self, source: bytes | IO[bytes], first_line: int = 1) -> None:
        """Add all triples. Errors are noted with their line, and reading goes on behind them where it can."""
        ox = terms.oxigraph()
        quads = ox.parse(source, format=getattr(ox.RdfFormat, _RDF_FORMATS[self.fmt]))
        while True:
            try:
                self._add_all(quads, ox)
                break
            except SyntaxError as error:
                place = f"{self.path}:{first_line + (error.lineno or 1) - 1}"
                if self.fmt == "rdf":  # nothing of XML can be understood behind an error
                    raise ValueError(f"{place}: {error.msg}") from None
                self.builder.problems.add(place, error.msg)
            except MemoryError:  # the library's own limit
                raise ValueError(f"{self.path}: {_TOO_LONG}") from None

    def _add_all(self, quads: Iterator[Any], ox: Any) -> None:
        add, literal, triple = self.builder.add, ox.Literal, ox.Triple
        drop, values = self.literals == "drop", self.literals == "values"
        for quad in quads:
            tail = quad.object
            kind = type(tail)
            if kind is literal and (drop or (values and len(tail.value) > LONGEST_VALUE)):
                self._leave_out_literal()
            elif kind is triple:
                self.builder.problems.add(str(self.path), f"triples about triples are not supported: {quad}")
            else:
                add(str(quad.subject).encode(), str(quad.predicate).encode(), str(tail).encode())

    def _leave_out_literal(self) -> None:
        if self.literals == "drop":
            self.builder.problems.dropped_literals += 1
        else:
            self.builder.problems.unusable_values += 1


def write(table: TripleTable, stream: IO[bytes], fmt: str) -> None:
    """Write all triples in their order."""
    ox = terms.oxigraph()
    xml = fmt == "rdf"
    nodes = [terms.node(name, xml=xml) for name in table.entities]
    values = [
        terms.value(name, xml=xml) if name.startswith('"') else term
        for name, term in zip(table.entities, nodes, strict=True)
    ]
    predicates = [terms.predicate(name, xml=xml) for name in table.relations]
    triples = (ox.Triple(nodes[h], predicates[r], values[t]) for h, r, t in table.triples.tolist())
    ox.serialize(triples, output=stream, format=getattr(ox.RdfFormat, _RDF_FORMATS[fmt]))
