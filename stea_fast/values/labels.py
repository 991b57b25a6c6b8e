"""The labels of a graph's entities, and the distinct texts among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast.values.normalising import normalised


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of entities: several per entity, or none.

    Attributes:
        entity: The entity of every label, int [m].
        text: The labels, m strings; None and texts without a letter, digit or symbol are no labels.
        num_entities: The number of entities; None, the default, for one more than the largest in `entity`.

    Raises:
        ValueError: There are not as many entities as texts, or an entity is out of range.
        TypeError: A text is neither a string nor None.
    """

    entity: Any
    text: Sequence[str | None]
    num_entities: int | None = None

    def __post_init__(self) -> None:
        entity = validate.integers(self.entity, "entity")
        if entity.shape != (len(self.text),):
            raise ValueError(f"entity must hold one id per text, {len(self.text)}; got shape {entity.shape}")
        size = int(entity.max(initial=-1)) + 1 if self.num_entities is None else self.num_entities
        validate.in_range(entity, "entity", validate.count(size, "num_entities"), "entities")
        for place, text in enumerate(self.text):
            if not (text is None or isinstance(text, str)):
                raise TypeError(f"text[{place}] must be a string or None, got {type(text).__name__}")
        object.__setattr__(self, "entity", entity.astype(np.int32))
        object.__setattr__(self, "num_entities", size)

    @property
    def size(self) -> int:
        """The number of entities."""
        assert self.num_entities is not None
        return self.num_entities


LabelsLike = Labels | Sequence[str | None]


def as_labels(value: LabelsLike) -> Labels:
    """Labels as they are, or one per entity in order."""
    if isinstance(value, Labels):
        return value
    if isinstance(value, (str, bytes)):
        raise TypeError(f"labels must be Labels or a sequence of strings, got {type(value).__name__}")
    texts = list(value)
    return Labels(np.arange(len(texts)), texts, len(texts))


@dataclass(frozen=True, eq=False)
class DistinctTexts:
    """The distinct normalised texts of labels, by the lowest entity that has them.

    Attributes:
        texts: The texts; none is empty.
        entity: The entity of every (entity, text) that occurs, int32 [m], by text and then entity.
        text: Its text, int32 [m], increasing.
        num_entities: The number of entities.
    """

    texts: list[str]
    entity: np.ndarray
    text: np.ndarray
    num_entities: int

    @property
    def indptr(self) -> np.ndarray:
        """Where the entities of every text begin, int64 [texts + 1]."""
        return np.searchsorted(self.text, np.arange(len(self.texts) + 1))


def distinct_texts(labels: Labels, tier: str) -> DistinctTexts:
    """Normalise labels and number the distinct ones; what has no letter or digit keeps its symbols."""
    order = np.argsort(labels.entity, kind="stable")
    order = order[[labels.text[i] is not None for i in order.tolist()]]
    given = [str(labels.text[i]) for i in order.tolist()]
    spelt = normalised(given, tier)
    bare = [i for i, text in enumerate(spelt) if not text]
    for place, text in zip(bare, normalised([given[i] for i in bare], "text"), strict=True):
        spelt[place] = text
    numbers: dict[str, int] = {}
    text = np.array([numbers.setdefault(text, len(numbers)) if text else -1 for text in spelt], dtype=np.int64)
    entity = labels.entity[order].astype(np.int64)
    width = max(labels.size, 1)
    both = np.unique(text[text >= 0] * width + entity[text >= 0])
    return DistinctTexts(list(numbers), (both % width).astype(np.int32), (both // width).astype(np.int32), labels.size)
