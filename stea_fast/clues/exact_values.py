"""Pairs of entities that share a value nobody else has, by attributes whose word can be relied on.

A version number that one package of either graph has may well be of two different packages; a homepage hardly. Which
attributes can be relied on is seen where several speak of the same entity: those that agree with the others.
"""

from __future__ import annotations

import numpy as np

from stea_fast.clues.value_links import ValueLinks, ValueSide

# The least agreement of an attribute with those that are left. It rises: the worst must not judge the others.
BARS = (0.5, 0.6, 0.7, 0.8, 0.9)
PRIOR_VOTES = 1.0  # that agree, before any is seen: nothing speaks against an attribute that stands alone


def exact_pairs(links: ValueLinks) -> np.ndarray:
    """int64 [m, 2]: pairs of entities by unique equal values; no entity is in two of them."""
    places, entities = links.unique()
    attributes = [_attributes(side)[links.pairs[places, column]] for column, side in enumerate(links.sides)]
    kind = attributes[0] * len(links.sides[1].attribute_names) + attributes[1]
    votes = np.unique(np.column_stack([entities, kind]), axis=0)
    for bar in BARS:
        votes = votes[_agreement(votes) >= bar]
    pairs = np.unique(votes[:, :2], axis=0)
    return pairs[(_counts(pairs[:, :1]) == 1) & (_counts(pairs[:, 1:]) == 1)]


def _attributes(side: ValueSide) -> np.ndarray:
    """int64 [texts]: an attribute that each value occurs with."""
    found = np.zeros(len(side.texts), dtype=np.int64)
    found[side.value] = side.attribute
    return found


def _agreement(votes: np.ndarray) -> np.ndarray:
    """float64 [m]: how often the attributes of a vote agree with others that speak of the same source."""
    together = _counts(votes[:, :2]) > 1
    several = _counts(votes[:, :1]) > 1
    _, kind = np.unique(votes[:, 2], return_inverse=True)
    agreeing, asked = (np.bincount(kind, weights=mask) + PRIOR_VOTES for mask in (together, several))
    return (agreeing / asked)[kind]


def _counts(rows: np.ndarray) -> np.ndarray:
    """int64 [m]: how many rows are like each."""
    _, place, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return counts[place.ravel()]
