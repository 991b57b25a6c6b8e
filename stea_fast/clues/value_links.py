"""Values of two graphs that are alike: which values, how much, and who has them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from stea_fast.data.attributes import Attributes
from stea_fast.data.pair import Pair
from stea_fast.values.kinds import KINDS, kind_of
from stea_fast.values.matches import Matches, similar_values

MAX_MATCHES = 5  # similar values of the other graph that a value has at most: more say nothing of any of them
MIN_SIMILARITY = 0.5
NUMBER_TOLERANCE = 0.01  # relative
# Kinds of attributes of the two graphs that may say the same, and how they are compared then. Only the values of one
# graph are years, titles of six words, or have lost the zeros before their digits.
ACROSS = (
    ("date", "number", "number"), ("number", "date", "number"), ("code", "number", "number"),
    ("number", "code", "number"), ("string", "text", "text"), ("text", "string", "text"),
)  # fmt: skip
EQUAL = 0.9999  # similarity of values that are spelt alike, after rounding


@dataclass(frozen=True, eq=False)
class ValueSide:
    """The statements of one graph whose values are like one of the other graph.

    Attributes:
        entity: The entity of every statement, int64 [m].
        attribute: Its attribute, int64 [m].
        value: Its value, as a place in `texts`, int64 [m].
        texts: The distinct values.
        attribute_names: The attributes of the graph, also those without such values.
    """

    entity: np.ndarray
    attribute: np.ndarray
    value: np.ndarray
    texts: tuple[str, ...]
    attribute_names: tuple[str, ...]

    @property
    def owners(self) -> np.ndarray:
        """int64 [texts]: how many entities have each value, by whatever attribute."""
        pairs = np.unique(np.stack([self.value, self.entity]), axis=1)
        return np.bincount(pairs[0], minlength=len(self.texts))

    @property
    def any_owner(self) -> np.ndarray:
        """int64 [texts]: an entity that has each value, -1 where none is left."""
        found = np.full(len(self.texts), -1, dtype=np.int64)
        found[self.value] = self.entity
        return found

    def only(self, kept: np.ndarray) -> ValueSide:
        """Some of the statements, by a mask [m]."""
        entity, attribute, value = (array[kept] for array in (self.entity, self.attribute, self.value))
        return ValueSide(entity, attribute, value, self.texts, self.attribute_names)


@dataclass(frozen=True, eq=False)
class ValueLinks:
    """Pairs of similar values of two graphs, and the statements they stand in.

    Attributes:
        sides: The statements of the source and of the target graph.
        pairs: Places in the texts of both sides, int64 [p, 2]; no pair occurs twice.
        similarity: How alike they are, in (0, 1], float32 [p].
    """

    sides: tuple[ValueSide, ValueSide]
    pairs: np.ndarray
    similarity: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All that a result depends on."""
        return (
            *(part for side in self.sides for part in (side.entity, side.attribute, side.value)),
            self.pairs,
            self.similarity,
        )

    def without_targets(self, targets: np.ndarray) -> ValueLinks:
        """As if these entities of the target graph had no values."""
        first, second = self.sides
        return replace(self, sides=(first, second.only(~np.isin(second.entity, targets))))

    def unique(self) -> tuple[np.ndarray, np.ndarray]:
        """Equal values that one entity of either graph has: places in `pairs`, and int64 [m, 2] the two entities."""
        first, second = self.sides
        equal = (
            (self.similarity >= EQUAL) & (first.owners[self.pairs[:, 0]] == 1) & (second.owners[self.pairs[:, 1]] == 1)
        )
        places = np.flatnonzero(equal)
        entities = [side.any_owner[self.pairs[places, column]] for column, side in enumerate(self.sides)]
        return places, np.stack(entities, axis=1)

    def without_unique(self, pairs: np.ndarray) -> ValueLinks:
        """As if some pairs of entities, int64 [m, 2], did not share values that nobody else has."""
        places, entities = self.unique()
        hidden = self.pairs[places[_are_among(entities, pairs)]]
        first, second = (side.only(~np.isin(side.value, hidden[:, column])) for column, side in enumerate(self.sides))
        return replace(self, sides=(first, second))


def similar_statements(pair: Pair, names: Collection[str], n_threads: int) -> ValueLinks | None:
    """Find values of both graphs that are alike; None where there are none.

    Args:
        pair: the graphs with their attributes.
        names: attributes that are left out, because their values are used as names.
        n_threads: how many threads may be used.
    """
    first, second = (_TypedValues(kg.attributes, names) for kg in (pair.kg1, pair.kg2))
    comparisons = [*((kind, kind, kind) for kind in KINDS), *ACROSS]
    found = [
        _matched(first, second, comparison, n_threads)
        for comparison in comparisons
        if len(first.by_kind[comparison[0]]) and len(second.by_kind[comparison[1]])
    ]
    found.append(_spelt_alike(first, second))
    one, two, similarity = (np.concatenate(parts) for parts in zip(*found, strict=True))
    if not len(one):
        return None
    order = np.lexsort((-similarity, two, one))
    one, two, similarity = one[order], two[order], similarity[order]
    best = np.ones(len(one), dtype=bool)
    best[1:] = (one[1:] != one[:-1]) | (two[1:] != two[:-1])
    one, two, similarity = one[best], two[best], similarity[best]
    kept1, kept2 = np.unique(one), np.unique(two)
    pairs = np.stack([np.searchsorted(kept1, one), np.searchsorted(kept2, two)], axis=1)
    return ValueLinks((first.side(kept1), second.side(kept2)), pairs, similarity.astype(np.float32))


def _are_among(rows: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """bool [n]: whether each row is one of some pairs; both int64 of two columns."""
    width = 1 + max(int(rows[:, 1].max(initial=0)), int(pairs[:, 1].max(initial=0)))
    return np.isin(rows[:, 0] * width + rows[:, 1], pairs[:, 0] * width + pairs[:, 1])


class _TypedValues:
    """The distinct texts of a graph's values, and of which kinds they are: those of the attributes they occur with."""

    def __init__(self, attributes: Attributes | None, left_out: Collection[str]) -> None:
        self.names = () if attributes is None else tuple(attributes.attribute_names)
        self.texts: list[str] = []
        self.entity, self.attribute, self.value = np.zeros((3, 0), dtype=np.int64)
        if attributes is not None:
            wanted = np.array([name not in left_out for name in self.names], dtype=bool)
            rows = np.flatnonzero(wanted[attributes.attribute])
            self.entity = attributes.entity[rows].astype(np.int64)
            self.attribute = attributes.attribute[rows].astype(np.int64)
            self.texts, self.value = _numbered(attributes, attributes.value[rows])
        self.by_kind = self._kinds()

    def _kinds(self) -> dict[str, np.ndarray]:
        """By kind, the values that occur with attributes of the kind."""
        used = np.unique(np.stack([self.attribute, self.value]), axis=1)
        found: dict[str, list[np.ndarray]] = {kind: [] for kind in KINDS}
        for attribute in np.unique(used[0]):
            values = used[1, used[0] == attribute]
            found[kind_of([self.texts[value] for value in values.tolist()])].append(values)
        return {kind: np.unique(np.concatenate([np.zeros(0, np.int64), *parts])) for kind, parts in found.items()}

    def side(self, kept: np.ndarray) -> ValueSide:
        """The statements of some values, which are numbered anew."""
        rows = np.isin(self.value, kept)
        value = np.searchsorted(kept, self.value[rows])
        texts = tuple(self.texts[place] for place in kept.tolist())
        return ValueSide(self.entity[rows], self.attribute[rows], value, texts, self.names)


def _numbered(attributes: Attributes, values: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The distinct texts of values, whatever their datatype and language, and the text of each."""
    distinct, places = np.unique(values, return_inverse=True)
    numbers: dict[str, int] = {}
    number = np.array(
        [numbers.setdefault(attributes.values[value], len(numbers)) for value in distinct.tolist()], dtype=np.int64
    )
    return list(numbers), number[places]


def _matched(
    first: _TypedValues, second: _TypedValues, comparison: tuple[str, str, str], n_threads: int
) -> tuple[np.ndarray, ...]:
    """Similar values of a kind of either graph, compared as a third; numbers of two kinds only where they are equal."""
    kind1, kind2, kind = comparison
    places1, places2 = first.by_kind[kind1], second.by_kind[kind2]
    texts1, texts2 = (
        [side.texts[i] for i in places.tolist()] for side, places in ((first, places1), (second, places2))
    )
    matches: Matches = similar_values(
        texts1, texts2, kind, max_matches=MAX_MATCHES, min_similarity=MIN_SIMILARITY,
        tolerance=NUMBER_TOLERANCE if kind1 == kind2 else 0.0, n_threads=n_threads,
    )  # fmt: skip
    return places1[matches.index1], places2[matches.index2], matches.similarity


def _spelt_alike(first: _TypedValues, second: _TypedValues) -> tuple[np.ndarray, ...]:
    """Values that are the same text: attributes of different kinds may say the same in some of their statements."""
    number2 = {text: place for place, text in enumerate(second.texts)}
    shared = np.array(
        [(place, number2[text]) for place, text in enumerate(first.texts) if text in number2], dtype=np.int64
    ).reshape(-1, 2)
    return shared[:, 0], shared[:, 1], np.ones(len(shared), dtype=np.float32)
