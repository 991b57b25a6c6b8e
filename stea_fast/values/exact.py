"""Names that occur once on either side, and are equal: anchors to start from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stea_fast.values.labels import DistinctTexts, LabelsLike, as_labels, distinct_texts
from stea_fast.values.normalising import TIERS


@dataclass(frozen=True, eq=False)
class UniqueMatches:
    """Pairs of entities by a name that no other entity of their graphs has.

    Attributes:
        pairs: The pairs (source, target), int32 [m, 2], by source; no entity occurs twice.
        tier: The place in `TIERS` of the strongest normalisation by which each pair is equal, int8 [m].
        counts: How many pairs every tier adds, by its name.
    """

    pairs: np.ndarray
    tier: np.ndarray
    counts: dict[str, int]


def unique_matches(labels1: LabelsLike, labels2: LabelsLike) -> UniqueMatches:
    """Find the entities that have an equal name, where this name is unique in both graphs.

    The tiers are tried from the strongest to the weakest. An entity that two names lead to different counterparts stays
    without one at that tier, and one that is matched is left out of the weaker tiers.

    Args:
        labels1: The labels of the source graph, or one text (or None) per entity.
        labels2: The labels of the target graph, likewise.

    Returns:
        The pairs with their tiers.
    """
    first, second = as_labels(labels1), as_labels(labels2)
    free1, free2 = np.ones(first.size, dtype=bool), np.ones(second.size, dtype=bool)
    found, counts = [], {}
    for place, tier in enumerate(TIERS):
        pairs = _equal_pairs(distinct_texts(first, tier), distinct_texts(second, tier))
        pairs = pairs[free1[pairs[:, 0]] & free2[pairs[:, 1]]]
        free1[pairs[:, 0]], free2[pairs[:, 1]] = False, False
        found.append(np.column_stack([pairs, np.full(len(pairs), place)]))
        counts[tier] = len(pairs)
    rows = np.concatenate(found)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return UniqueMatches(rows[:, :2].astype(np.int32), rows[:, 2].astype(np.int8), counts)


def _equal_pairs(side1: DistinctTexts, side2: DistinctTexts) -> np.ndarray:
    """int64 [m, 2]: one-to-one pairs by texts that one entity of either side has."""
    owner1, owner2 = _only_owners(side1), _only_owners(side2)
    number2 = {text: i for i, text in enumerate(side2.texts) if owner2[i] >= 0}
    shared = [(owner1[i], number2[text]) for i, text in enumerate(side1.texts) if owner1[i] >= 0 and text in number2]
    if not shared:
        return np.empty((0, 2), dtype=np.int64)
    pairs = np.array(shared, dtype=np.int64)
    pairs[:, 1] = owner2[pairs[:, 1]]
    pairs = np.unique(pairs, axis=0)  # two names may lead to the same entity
    single1 = np.bincount(pairs[:, 0])[pairs[:, 0]] == 1
    single2 = np.bincount(pairs[:, 1])[pairs[:, 1]] == 1
    return pairs[single1 & single2]


def _only_owners(side: DistinctTexts) -> np.ndarray:
    """int64 [texts]: the entity that has a text alone, or -1."""
    indptr = side.indptr
    owners = side.entity[indptr[:-1]].astype(np.int64)
    owners[np.diff(indptr) != 1] = -1
    return owners
