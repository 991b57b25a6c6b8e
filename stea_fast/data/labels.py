"""What the entities of a graph are called, and where these names came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from stea_fast._util.arrays import freeze
from stea_fast._util.name_table import NameTable


@dataclass(frozen=True, eq=False)
class Labels:
    """The names of the entities of a graph: none, one or several for each of them, the best first.

    Attributes:
        entity: The entity of every name, int32 [m], increasing.
        text: The names, [m].
        num_entities: The number of entities of the graph, also those without a name.
        counts: How many entities are named by each source: an attribute, a file, or the local parts of ids.
        language: The language that was preferred; None where any counts.

    Example:
        >>> import stea_fast as sf
        >>> kg = sf.KG([[0, 0, 1]], entity_names=["http://ex.org/New_York", "http://ex.org/Berlin"])
        >>> labels = sf.labels_of(kg)
        >>> labels.of(0), labels.source
        (['New York'], 'local part of the id (2 entities)')
    """

    entity: np.ndarray
    text: NameTable
    num_entities: int
    counts: Mapping[str, int] = field(default_factory=dict)
    language: str | None = None

    def __post_init__(self) -> None:
        freeze(self.entity)

    @classmethod
    def from_names(cls, names: Iterable[tuple[int, str]], num_entities: int, source: str) -> Labels:
        """Collect names that all come from one source.

        Args:
            names: Entities and their names, the best name of an entity first; a name that is there twice counts once.
            num_entities: The number of entities of the graph.
            source: Where the names came from.

        Returns:
            The names in the order of the entities.
        """
        by_entity: dict[int, dict[str, None]] = {}
        for entity, name in names:
            by_entity.setdefault(entity, {})[name] = None
        order = sorted(by_entity)
        entities = np.repeat(np.array(order, dtype=np.int32), [len(by_entity[entity]) for entity in order])
        text = NameTable.pack(name for entity in order for name in by_entity[entity])
        return cls(entities, text, num_entities, {source: len(order)} if order else {})

    @property
    def source(self) -> str:
        """Where the names came from, and how many entities each source names, as a sentence for people."""
        parts = [f"{name} ({count:,} entities)" for name, count in self.counts.items()]
        return ", ".join(parts) or "nothing: no entity has a name"

    @property
    def num_named(self) -> int:
        """The number of entities that have a name."""
        return sum(self.counts.values())

    def of(self, entity: int) -> list[str]:
        """Look up the names of one entity.

        Args:
            entity: The id of the entity.

        Returns:
            Its names, the best first.
        """
        begin, end = np.searchsorted(self.entity, [entity, entity + 1])
        return self.text[begin:end]

    def __len__(self) -> int:
        return len(self.entity)

    def __repr__(self) -> str:
        return f"Labels({len(self):,} names of {self.num_named:,} of {self.num_entities:,} entities: {self.source})"
