"""The attribute statements of a graph: names, dates, numbers and texts of its entities, as CSR by entity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import freeze
from stea_fast._util.name_table import NameTable
from stea_fast._util.sparse import concatenated_runs, offsets, offsets_of_counts, rows_of, run_starts
from stea_fast.formats.attribute_table import AttributeBuilder, AttributeTable
from stea_fast.formats.cell_values import value_of
from stea_fast.formats.value_pool import LONGEST_VALUE, Value, ValuePool, is_usable

if TYPE_CHECKING:
    from stea_fast.types import ArrayLike


class Attributes:
    """The immutable attribute statements (entity, attribute, value) of a graph, each of them once.

    A value is a text with a datatype or a language. Statements are ordered by entity, then attribute, then value, and
    every distinct value is held once, so that tens of millions of statements can be held or mapped into memory.

    Args:
        indptr: The start of every entity's statements, int64 [num_entities + 1].
        attribute: The attribute of every statement, int32 [n].
        value: The place of every statement's value in `values`, int32 [n].
        attribute_names: The name of every attribute, such as an IRI or the title of a column.
        values: The distinct values.

    Example:
        >>> import stea_fast as sf
        >>> attributes = sf.Attributes.from_statements([(1, "name", "Berlin"), (1, "population", 3_644_826)], 2)
        >>> attributes
        Attributes(2 statements, 2 attributes, 2 values)
        >>> attributes.of(1)[0]
        ('name', Value(text='Berlin', datatype='', language=''))
    """

    __slots__ = ("attribute", "attribute_names", "indptr", "value", "values")
    indptr: np.ndarray
    attribute: np.ndarray
    value: np.ndarray
    attribute_names: NameTable
    values: ValuePool

    def __init__(
        self,
        indptr: np.ndarray,
        attribute: np.ndarray,
        value: np.ndarray,
        attribute_names: NameTable,
        values: ValuePool,
    ) -> None:
        parts = (freeze(indptr), freeze(attribute), freeze(value), attribute_names, values)
        for name, part in zip(("indptr", "attribute", "value", "attribute_names", "values"), parts, strict=True):
            object.__setattr__(self, name, part)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Attributes are immutable; cannot set {name!r}")

    def __reduce__(self) -> tuple[type[Attributes], tuple[object, ...]]:
        return Attributes, (self.indptr, self.attribute, self.value, self.attribute_names, self.values)

    @classmethod
    def from_statements(cls, statements: Iterable[tuple[int, str, object]], num_entities: int) -> Attributes:
        """Collect statements from Python objects.

        Args:
            statements: Tuples of an entity's id, the name of an attribute, and a value: text, a number, a truth value,
                a date, or a `Value` that has a datatype or language.
            num_entities: The number of entities of the graph.

        Returns:
            The statements in order, each of them once.

        Raises:
            ValueError: An id is not one of the graph, or a value is blank or longer than 256 KiB.
            TypeError: A value is of another kind.
        """
        builder = AttributeBuilder()
        for entity, attribute, given in statements:
            value = given if isinstance(given, Value) else value_of(given)
            if value is None:
                raise TypeError(f"a value must be text, a number, a truth value or a date; got {type(given).__name__}")
            text = value.text.encode("utf-8", "surrogatepass")
            if not is_usable(text):
                raise ValueError(
                    f"the value of {attribute!r} of entity {entity} must have 1 to {LONGEST_VALUE:,} bytes and not be "
                    f"blank; it has {len(text):,}"
                )
            builder.add(entity, attribute.encode("utf-8", "surrogatepass"), text, value.datatype, value.language)
        return cls.from_table(builder.build(), num_entities)

    @classmethod
    def from_table(cls, table: AttributeTable, num_entities: int) -> Attributes:
        """Order the statements of a table, as the readers of `stea_fast.formats` fill it.

        Args:
            table: A `stea_fast.formats.attribute_table.AttributeTable`.
            num_entities: The number of entities of the graph.

        Returns:
            The statements in order, each of them once.

        Raises:
            ValueError: An id is not one of the graph.
        """
        size = validate.count(num_entities, "num_entities", minimum=1)
        entity, attribute, value = table.statements.T
        validate.in_range(entity, "the entities of the statements", size, "entities")
        order = np.lexsort((value, attribute, entity))
        ordered = table.statements[order]
        ordered = ordered[run_starts(ordered)]
        kinds, values = (np.ascontiguousarray(ordered[:, column], dtype=np.int32) for column in (1, 2))
        return cls(offsets(ordered[:, 0], size), kinds, values, table.attributes, table.values)

    def to_table(self) -> AttributeTable:
        """Give the statements to the writers of `stea_fast.formats`.

        Returns:
            An `AttributeTable` with the ids of the graph.
        """
        statements = np.stack([self.entity, self.attribute, self.value], axis=1).astype(np.int64)
        return AttributeTable(statements, self.attribute_names, self.values)

    @property
    def num_entities(self) -> int:
        """The number of entities of the graph, also those without values."""
        return len(self.indptr) - 1

    @property
    def entity(self) -> np.ndarray:
        """The entity of every statement, int32 [n]."""
        return rows_of(self.indptr).astype(np.int32)

    def __len__(self) -> int:
        return len(self.value)

    def of(self, entity: int) -> list[tuple[str, Value]]:
        """Look up the values of one entity.

        Args:
            entity: The id of the entity.

        Returns:
            The name of the attribute and the value of each of its statements.
        """
        rows = range(self.indptr[entity], self.indptr[entity + 1])
        return [(self.attribute_names[self.attribute[row]], self.values.value(int(self.value[row]))) for row in rows]

    def take(self, entities: ArrayLike) -> Attributes:
        """Number the entities anew.

        Args:
            entities: The id of now of every new entity, int [m]; those that are not listed lose their statements.

        Returns:
            The statements of these entities in their order; the values are shared.
        """
        old = validate.integers(entities, "entities")
        validate.in_range(old, "entities", self.num_entities, "entities")
        counts = np.diff(self.indptr)[old]
        rows = concatenated_runs(self.indptr[old], counts)
        return Attributes(
            offsets_of_counts(counts), self.attribute[rows], self.value[rows], self.attribute_names, self.values
        )

    def without(self, entities: ArrayLike) -> Attributes:
        """Take the statements of some entities away; all ids stay.

        Args:
            entities: The ids of the entities, int [m].

        Returns:
            The other statements; the values are shared.
        """
        ids = validate.integers(entities, "entities")
        validate.in_range(ids, "entities", self.num_entities, "entities")
        counts = np.diff(self.indptr)
        kept = np.ones(self.num_entities, dtype=bool)
        kept[ids] = False
        rows = np.repeat(kept, counts)
        return Attributes(
            offsets_of_counts(np.where(kept, counts, 0)),
            self.attribute[rows],
            self.value[rows],
            self.attribute_names,
            self.values,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attributes):
            return NotImplemented
        return (
            np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.attribute, other.attribute)
            and np.array_equal(self.value, other.value)
            and self.attribute_names == other.attribute_names
            and self.values == other.values
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return (
            f"Attributes({len(self):,} statements, {len(self.attribute_names):,} attributes, "
            f"{len(self.values):,} values)"
        )
