"""What every reader gives and every writer takes: triples in ids, names by id, and what was wrong in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from stea_fast._util.name_table import NameTable
from stea_fast._util.printable import printable_line
from stea_fast.formats.attribute_table import AttributeTable

Accept = Callable[[list[bytes], list[bytes]], bool]

SHOWN_PROBLEMS = 5


class MissingExtraError(ModuleNotFoundError):
    """An optional package is not installed; the message is the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional package: pip install 'stea-fast[{extra}]'")


@dataclass
class Problems:
    """What could not be read. With `strict` the first problem is an error.

    Attributes:
        count: number of problems.
        first: the first few, each with file and line.
        dropped_literals: triples left out because their object is a literal; not a problem.
        unusable_values: values left out because they are blank or very long; not a problem.
    """

    strict: bool = False
    count: int = 0
    first: list[str] = field(default_factory=list)
    dropped_literals: int = 0
    unusable_values: int = 0

    def add(self, place: str, message: str) -> None:
        """Note a problem at file:line."""
        text = printable_line(f"{place}: {message}")
        if self.strict:
            raise ValueError(text)
        self.count += 1
        if len(self.first) < SHOWN_PROBLEMS:
            self.first.append(text)


@dataclass(frozen=True, eq=False)
class TripleTable:
    """A graph as its file has it.

    Attributes:
        triples: int64 [n, 3]: head, relation, tail; in the order of the file, repetitions kept.
        entities, relations: names by id. An IRI is its own name, a blank node is `_:label`, a literal is written as in
            N-Triples.
        problems: what was left out.
        attributes: statements whose objects are values, if there are any.
    """

    triples: np.ndarray
    entities: NameTable
    relations: NameTable
    problems: Problems = field(default_factory=Problems)
    attributes: AttributeTable | None = None


class Vocabulary(dict[bytes, int]):
    """Ids by key, in order of first occurrence. A key is what the file calls an entity or relation."""

    def look_up(self, keys: Iterable[bytes]) -> tuple[dict[bytes, int | None], list[bytes]]:
        """The ids of the distinct keys, None for those that are not there yet, and the latter as a list.

        Keys repeat within a few thousand lines; a small table of them stays in the processor's cache.
        """
        distinct = dict.fromkeys(keys)
        ids = dict(zip(distinct, map(self.get, distinct), strict=True))
        return ids, [key for key, ident in ids.items() if ident is None]

    def extend(self, ids: dict[bytes, int | None], new: list[bytes]) -> None:
        """Give ids to new keys, here and in what `look_up` returned."""
        added = dict(zip(new, range(len(self), len(self) + len(new)), strict=True))
        self.update(added)
        ids.update(added)


class TableBuilder:
    """Collects triples of keys."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.entities, self.relations = Vocabulary(), Vocabulary()
        self._blocks = [np.zeros((0, 3), dtype=np.int64)]
        self._rows: list[int] = []

    def add(self, head: bytes, relation: bytes, tail: bytes) -> None:
        """One triple."""
        entities, relations = self.entities, self.relations
        h = entities.setdefault(head, len(entities))
        t = entities.setdefault(tail, len(entities))
        self._rows += (h, relations.setdefault(relation, len(relations)), t)

    def add_columns(
        self, heads: list[bytes], relations: list[bytes], tails: list[bytes], accept: Accept | None = None
    ) -> bool:
        """Many triples at once, a list per column.

        `accept` is asked about the keys not seen before, those of entities and those of relations; if it objects
        nothing is added, and the answer is False.
        """
        both = [b""] * (2 * len(heads))  # head, tail, head, …: ids follow the order of the file
        both[0::2], both[1::2] = heads, tails
        entity_ids, new_entities = self.entities.look_up(both)
        relation_ids, new_relations = self.relations.look_up(relations)
        if accept is not None and not accept(new_entities, new_relations):
            return False
        self.entities.extend(entity_ids, new_entities)
        self.relations.extend(relation_ids, new_relations)
        block = np.empty((len(heads), 3), dtype=np.int64)
        block[:, [0, 2]] = np.fromiter(map(entity_ids.__getitem__, both), np.int64, len(both)).reshape(-1, 2)
        block[:, 1] = np.fromiter(map(relation_ids.__getitem__, relations), np.int64, len(relations))
        self._flush()
        self._blocks.append(block)
        return True

    def _flush(self) -> None:
        if self._rows:
            self._blocks.append(np.array(self._rows, dtype=np.int64).reshape(-1, 3))
            self._rows = []

    def build(self, name_of: Callable[[bytes], bytes] | None = None, isolated: Iterable[bytes] = ()) -> TripleTable:
        """The table.

        Args:
            name_of: turns keys into names in UTF-8; without it keys are names.
            isolated: keys of entities that may be in no triple.
        """
        self._flush()
        self.entities.extend(*self.entities.look_up(isolated))
        entities, relations = (
            NameTable.pack_utf8(list(vocabulary if name_of is None else map(name_of, vocabulary)))
            for vocabulary in (self.entities, self.relations)
        )
        return TripleTable(np.concatenate(self._blocks), entities, relations, self.problems)
