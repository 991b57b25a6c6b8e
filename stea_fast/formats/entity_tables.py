"""Files of values beside a graph: rows of entities with columns of attributes, or rows of entity, attribute and value.

Entities are those of a graph that is there already, by their names. RDF of literals, such as a file of labels, is read
as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

from stea_fast.formats import arrow_tables
from stea_fast.formats.attribute_table import AttributeBuilder, AttributeTable
from stea_fast.formats.cell_values import value_of
from stea_fast.formats.literal_values import parse_literal
from stea_fast.formats.streams import reading
from stea_fast.formats.tabular import Row, find_columns, text_rows
from stea_fast.formats.terms import unwrap
from stea_fast.formats.triple_table import Problems
from stea_fast.formats.triples import RDF_FORMATS, format_of, read_triples
from stea_fast.formats.value_pool import is_usable

_ENTITY = ("entity", "id", "head", "subject", "iri", "uri")
_ATTRIBUTE = ("attribute", "property", "predicate", "relation")
_VALUE = ("value", "object", "tail", "literal")


@dataclass
class ValueSink:
    """Collects values of the entities of a graph; those of others are noted as problems.

    Attributes:
        path: the file, for problems.
        index: the entities of the graph by name.
        problems: what was left out.
    """

    path: Path
    index: Mapping[str, int]
    problems: Problems

    def __post_init__(self) -> None:
        self._builder = AttributeBuilder()

    def entity(self, name: object, line: int | None = None) -> int | None:
        """The id of an entity, or None for one that the graph does not have."""
        found = self.index.get(unwrap(str(name)))
        if found is None:
            place = self.path if line is None else f"{self.path}:{line}"
            self.problems.add(str(place), f"{name!s:.100} is no entity of the graph")
        return found

    def add_text(self, entity: int, attribute: str, text: str) -> None:
        """A value that is text, or spelt as a literal of RDF."""
        raw = text.encode("utf-8", "surrogatepass")
        self.add(entity, attribute, *((parse_literal(raw) if raw[:1] == b'"' else None) or (raw, "", "")))

    def add(self, entity: int, attribute: str, text: bytes, datatype: str = "", language: str = "") -> None:
        """A value; one that is blank is a value that is missing, and one that is too long is counted."""
        if is_usable(text):
            try:
                self._builder.add(entity, attribute.encode("utf-8", "surrogatepass"), text, datatype, language)
            except ValueError as error:
                raise ValueError(f"{self.path}: {error}") from None
        elif text.strip():
            self.problems.unusable_values += 1

    def add_cell(self, entity: int | None, attribute: str, cell: object) -> None:
        """A value of a typed column; what is neither text, number, truth value nor date is counted."""
        if entity is None or cell is None or cell != cell:  # not a number, or not a time: missing
            return
        if isinstance(cell, str):
            self.add_text(entity, attribute, cell)
            return
        value = value_of(cell)
        if value is None:
            self.problems.unusable_values += 1
        else:
            self.add(entity, attribute, value.text.encode(), value.datatype)

    def build(self) -> AttributeTable:
        """The table of all of them."""
        return self._builder.build()


def read_values(path: Path, index: Mapping[str, int], problems: Problems, format: str | None = None) -> AttributeTable:
    """The values of a file, by the names of the entities in `index`.

    Raises:
        ValueError: the file is not of its format; the message names file and line.
        MissingExtraError: a package for this format is not installed.
    """
    kind = format_of(path, format)
    sink = ValueSink(path, index, problems)
    if kind in RDF_FORMATS:
        _add_rdf(path, kind, sink)
        return sink.build()
    with reading(path) as stream:
        if kind in ("parquet", "arrow"):
            _add_columns(stream, kind, sink)
        else:
            _add_rows(text_rows(stream, path, kind, problems), kind, sink)
    return sink.build()


def _add_rdf(path: Path, kind: str, sink: ValueSink) -> None:
    table = read_triples(path, format=kind, strict=sink.problems.strict)
    for name in ("count", "unusable_values"):
        setattr(sink.problems, name, getattr(sink.problems, name) + getattr(table.problems, name))
    sink.problems.first += table.problems.first
    if table.attributes is None:
        raise ValueError(f"{path} holds no values: none of its {len(table.triples):,} triples has a literal")
    values, names = table.attributes.values, list(table.attributes.attributes)
    entity_of: dict[int, int | None] = {}
    for entity, attribute, value in table.attributes.statements.tolist():
        if entity not in entity_of:
            entity_of[entity] = sink.entity(table.entities[entity])
        place = entity_of[entity]
        if place is not None:
            text, datatype, language = values.value(value)
            sink.add(place, names[attribute], text.encode("utf-8", "surrogatepass"), datatype, language)


def _add_rows(rows: Iterator[Row], kind: str, sink: ValueSink) -> None:
    first = next(rows, None)
    if first is None:
        return
    header = first[1]
    places = find_columns(header, (_ENTITY, _ATTRIBUTE, _VALUE))
    if places is not None:
        _add_statements(rows, places, len(header), sink)
    elif len(header) >= 3 and unwrap(header[0]) in sink.index:  # no header: the first row is a statement itself
        joined = _with_tabs_in_values(chain([first], rows)) if kind == "tsv" else chain([first], rows)
        _add_statements(joined, [0, 1, 2], 3, sink)
    else:
        _add_entities(rows, header, sink)


def _with_tabs_in_values(rows: Iterator[Row]) -> Iterator[Row]:
    """What stands behind the second tab of a statement is its value, with all further tabs."""
    return ((line, [*row[:2], "\t".join(row[2:])] if len(row) > 3 else row) for line, row in rows)


def _add_statements(rows: Iterator[Row], places: Sequence[int], width: int, sink: ValueSink) -> None:
    entity, attribute, value = places
    for line, row in rows:
        if len(row) != width or not row[attribute]:
            sink.problems.add(f"{sink.path}:{line}", f"expected entity, attribute and value, got {row!r:.100}")
            continue
        ident = sink.entity(row[entity], line)
        if ident is not None:
            sink.add_text(ident, unwrap(row[attribute]), row[value])


def _add_entities(rows: Iterator[Row], header: Sequence[str], sink: ValueSink) -> None:
    entity = entity_column(header)
    attributes = attribute_columns(header, entity, sink.path)
    for line, row in rows:
        if len(row) != len(header):
            sink.problems.add(f"{sink.path}:{line}", f"expected {len(header)} columns, got {len(row)}: {row!r:.100}")
            continue
        ident = sink.entity(row[entity], line)
        if ident is not None:
            for place, attribute in attributes:
                sink.add_text(ident, attribute, row[place])


def entity_column(header: Sequence[str]) -> int:
    """The column that names the entities: one that is called like that, or the first."""
    return (find_columns(header, (_ENTITY,)) or [0])[0]


def attribute_columns(header: Sequence[str], entity: int, path: Path) -> list[tuple[int, str]]:
    """The place and the name of every other column."""
    columns = [(place, name.strip()) for place, name in enumerate(header) if place != entity]
    if not columns or not all(name for _, name in columns):
        raise ValueError(
            f"{path}: expected a header with the entities' column and a name for each column of values, or statements "
            f"of entity, attribute and value about the graph; its first row is {list(header)!r:.200}"
        )
    return columns


def _add_columns(stream: IO[bytes], kind: str, sink: ValueSink) -> None:
    table = arrow_tables.read_table(stream, sink.path, kind)
    header = table.column_names
    places = find_columns(header, (_ENTITY, _ATTRIBUTE, _VALUE))

    def cells(place: int) -> list[object]:
        return arrow_tables.values(table.column(place), sink.path)

    if places is not None:
        names, attributes, values = map(cells, places)
        for name, attribute, cell in zip(names, attributes, values, strict=True):
            sink.add_cell(sink.entity(name), str(attribute), cell)
        return
    entity = entity_column(header)
    idents = [sink.entity(name) for name in cells(entity)]
    for place, attribute in attribute_columns(header, entity, sink.path):
        for ident, cell in zip(idents, cells(place), strict=True):
            sink.add_cell(ident, attribute, cell)
