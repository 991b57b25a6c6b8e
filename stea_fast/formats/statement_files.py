"""The `attr_triples` files of dataset folders: an entity, an attribute and a value in every line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stea_fast.formats.attribute_table import AttributeBuilder, AttributeTable
from stea_fast.formats.literal_values import parse_literal
from stea_fast.formats.streams import LongLine, lines, reading
from stea_fast.formats.tab_separated import integer
from stea_fast.formats.value_pool import is_usable

UNKNOWN = -1  # the id of an entity that is not among those known


def read_statements(path: Path, ids: Mapping[str, int] | None) -> AttributeTable:
    """The statements of a file. What stands behind the second tab is the value, spelt as a literal of RDF or not.

    Blank values and those of more than `LONGEST_VALUE` bytes are left out.

    Args:
        path: the file.
        ids: entities by name, of which those missing become `UNKNOWN`; None if the file has integer ids.

    Raises:
        ValueError: a line is malformed; the message names file and line.
    """
    builder = AttributeBuilder()
    with reading(path) as stream:
        for number, line in enumerate(lines(stream), start=1):
            fields = line.removesuffix(b"\n").removesuffix(b"\r").split(b"\t", 2)
            if fields == [b""]:
                continue
            entity = _entity(fields[0].removeprefix(b"\xef\xbb\xbf") if number == 1 else fields[0], ids)
            if len(fields) != 3 or entity is None or not fields[1]:
                kind = "an integer id" if ids is None else "an entity"
                raise ValueError(f"{path}:{number}: expected {kind}, an attribute and a value, got {line!r:.100}")
            if isinstance(line, LongLine):
                continue
            try:
                line.decode()
                _add(builder, entity, fields[1], fields[2])
            except ValueError as error:  # not UTF-8, or too many datatypes
                raise ValueError(f"{path}:{number}: {error}") from None
    return builder.build()


def _entity(field: bytes, ids: Mapping[str, int] | None) -> int | None:
    text = field.decode("utf-8", "replace")
    return integer(text) if ids is None else ids.get(text, UNKNOWN)


def _add(builder: AttributeBuilder, entity: int, attribute: bytes, field: bytes) -> None:
    literal = parse_literal(field) if field.startswith(b'"') else None
    text, datatype, language = literal or (field, "", "")
    if is_usable(text):
        builder.add(entity, attribute, text, datatype, language)
