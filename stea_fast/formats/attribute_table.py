"""Statements about values as a file has them: which entity has which value under which attribute."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

from stea_fast._util.name_table import NameTable
from stea_fast.formats.value_pool import PoolBuilder, ValuePool


@dataclass(frozen=True, eq=False)
class AttributeTable:
    """The attribute statements of a file.

    Attributes:
        statements: int64 [n, 3]: entity, attribute, value; in the order of the file, repetitions kept.
        attributes: names of the attributes by id.
        values: the distinct values by id.
    """

    statements: np.ndarray
    attributes: NameTable
    values: ValuePool


class AttributeBuilder:
    """Collects statements, of which every distinct attribute and value is held once."""

    def __init__(self) -> None:
        self.pool = PoolBuilder()
        self._attributes: dict[bytes, int] = {}
        self._rows = array("q")

    def add(self, entity: int, attribute: bytes, text: bytes, datatype: str = "", language: str = "") -> None:
        """One statement, whose texts are in UTF-8.

        Raises:
            ValueError: there are too many datatypes and languages.
        """
        ident = self._attributes.setdefault(attribute, len(self._attributes))
        self._rows.extend((entity, ident, self.pool.add(text, datatype, language)))

    def build(self) -> AttributeTable:
        """The table."""
        statements = np.array(self._rows, dtype=np.int64).reshape(-1, 3)
        return AttributeTable(statements, NameTable.pack_utf8(list(self._attributes)), self.pool.build())


def merged(first: AttributeTable, second: AttributeTable) -> AttributeTable:
    """The statements of two tables about the same entities.

    Raises:
        ValueError: there are too many datatypes and languages.
    """
    pool = PoolBuilder()
    attributes: dict[str, int] = {}
    blocks = []
    for table in (first, second):
        names = [attributes.setdefault(name, len(attributes)) for name in table.attributes]
        values = [pool.add_value(table.values.value(index)) for index in range(len(table.values))]
        entity, attribute, value = table.statements.T
        columns = (entity, np.array(names, dtype=np.int64)[attribute], np.array(values, dtype=np.int64)[value])
        blocks.append(np.stack(columns, axis=1))
    return AttributeTable(np.concatenate(blocks), NameTable.pack(attributes), pool.build())
