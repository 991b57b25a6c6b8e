"""Values as names of a table, and back: every format holds values as tails that are spelt like literals of N-Triples.

A name such as `"Berlin"@de` is not the name of a thing but a value: here such tails become attribute statements, and
values become such tails to be written.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from stea_fast._util.name_table import NameTable
from stea_fast._util.sparse import run_starts
from stea_fast.formats.attribute_table import AttributeTable
from stea_fast.formats.cell_values import XSD
from stea_fast.formats.triple_table import TripleTable
from stea_fast.formats.value_pool import PoolBuilder, Value, is_usable

_QUOTE = ord('"')
_LITERAL = re.compile(
    rb'"([^"\\\n\r]*(?:\\.[^"\\\n\r]*)*)"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?)|\^\^<([^<>"{}|^`\\\x00-\x20]*)>)?'
)
_ESCAPE = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LETTERS = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"f": b"\f", b'"': b'"', b"'": b"'", b"\\": b"\\"}
_SPECIAL = re.compile('[\x00-\x1f"\\\\\x7f\ufffe\uffff]')
_SPELLING = {"\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f", '"': '\\"', "\\": "\\\\"}
_ENTITY, _UNUSABLE = -1, -2


def parse_literal(name: bytes) -> tuple[bytes, str, str] | None:
    """Text in UTF-8, datatype and language of a literal of N-Triples, or None for any other name."""
    found = _LITERAL.fullmatch(name)
    if found is None:
        return None
    text = found[1]
    if b"\\" in text:
        try:
            text = _ESCAPE.sub(_unescaped, text)
        except (KeyError, ValueError, OverflowError):
            return None
    datatype = (found[3] or b"").decode("utf-8", "surrogatepass")
    return text, "" if datatype == XSD + "string" else datatype, (found[2] or b"").decode("ascii").lower()


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1] or match[2]
    return chr(int(code, 16)).encode() if code else _LETTERS[match[3]]


def spell_literal(value: Value) -> str:
    """A value as a literal of N-Triples, letter by letter as the RDF library writes it."""
    text = _SPECIAL.sub(lambda match: _SPELLING.get(match[0]) or f"\\u{ord(match[0]):04X}", value.text)
    if value.language:
        return f'"{text}"@{value.language}'
    return f'"{text}"^^<{value.datatype}>' if value.datatype else f'"{text}"'


def names_as_values(table: TripleTable, *, certain: bool) -> TripleTable:
    """A table whose tails that are spelt like literals have become attribute statements.

    What is also a head stays an entity. Blank and very long values are left out and counted in `problems`.

    Args:
        table: as a reader filled it.
        certain: whether such tails are literals for certain, as in RDF. If not, a table that spells heads like this as
            well just has its names in quotes, and stays as it is.

    Raises:
        ValueError: there are too many datatypes and languages.
    """
    lengths, starts = np.diff(table.entities.offsets), table.entities.offsets[:-1]
    quoted = lengths > 0
    quoted[quoted] = table.entities.text[starts[quoted]] == _QUOTE
    heads = table.triples[:, 0]
    if not quoted.any() or (quoted[heads].any() and not certain):
        return table
    quoted[heads] = False
    pool = PoolBuilder()
    value_of = np.full(len(quoted), _ENTITY, dtype=np.int64)
    for entity in np.flatnonzero(quoted).tolist():
        start = starts[entity]
        literal = parse_literal(table.entities.text[start : start + lengths[entity]].tobytes())
        if literal is not None:
            value_of[entity] = pool.add(*literal) if is_usable(literal[0]) else _UNUSABLE
    return _divided(table, value_of, pool)


def _divided(table: TripleTable, value_of: np.ndarray, pool: PoolBuilder) -> TripleTable:
    """The table without the entities that are values; ids of all others stay in their order."""
    values = value_of[table.triples[:, 2]]
    table.problems.unusable_values += int((values == _UNUSABLE).sum())
    stays = np.flatnonzero(value_of == _ENTITY)
    new_id = np.cumsum(value_of == _ENTITY) - 1
    triples, statements = table.triples[values == _ENTITY], table.triples[values >= 0]
    relations, kinds = _renumbered(triples[:, 1])
    used, attributes = _renumbered(statements[:, 1])
    return replace(
        table,
        triples=np.stack([new_id[triples[:, 0]], kinds, new_id[triples[:, 2]]], axis=1),
        entities=table.entities.take(stays),
        relations=table.relations.take(relations),
        attributes=AttributeTable(
            np.stack([new_id[statements[:, 0]], attributes, values[values >= 0]], axis=1),
            table.relations.take(used),
            pool.build(),
        )
        if len(statements)
        else None,
    )


def _renumbered(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ids in increasing order, and the place of each of `ids` among them."""
    ordered = np.sort(ids)
    distinct = ordered[run_starts(ordered)]
    return distinct, np.searchsorted(distinct, ids)


def values_as_names(table: TripleTable) -> TripleTable:
    """A table whose attribute statements have become triples, behind all others, with literals as tails."""
    attributes = table.attributes
    if attributes is None:
        return table
    entity, attribute, value = attributes.statements.T
    used, places = _renumbered(value)
    names = [spell_literal(attributes.values.value(index)) for index in used.tolist()]
    relation_ids = {name: ident for ident, name in enumerate(table.relations)}
    relation_of = [relation_ids.setdefault(name, len(relation_ids)) for name in attributes.attributes]
    added = np.stack([entity, np.array(relation_of, dtype=np.int64)[attribute], len(table.entities) + places], axis=1)
    return replace(
        table,
        triples=np.concatenate([table.triples, added]),
        entities=NameTable.pack([*table.entities, *names]),
        relations=NameTable.pack(relation_ids),
        attributes=None,
    )
