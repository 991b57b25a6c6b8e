"""Several views of how alike entities are, fused to one: weights are learned from links that none of them made.

A view that is right about such links with a clear lead weighs much, one that does not know them weighs nothing. The
links are seeds, or where there are few, pairs that structure implies: entities next to the same anchors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from stea_fast._util.sparse import run_starts
from stea_fast.clues.name_scores import NAME_BETA, NameScores
from stea_fast.data.graph import KG
from stea_fast.data.pair import Pair

ENOUGH_LINKS = 20  # to learn weights from; with fewer all views weigh the same
MIN_COMMON_ANCHORS = 2
LARGEST_DEGREE = 200  # of an anchor whose neighbours are compared: those of a hub have little in common
PRIOR_WIDTH = 4 * NAME_BETA  # of β, before any link is seen
LEAST_GAIN = 5.0  # of a view in log-likelihood: that much chance gives to noise less than once in a thousand cases
_STEPS = 50


@dataclass(frozen=True)
class Weights:
    """What each view weighs beside the others; 1 is the usual weight of a similarity of names.

    Attributes:
        by_view: The weights by the names of the views.
        learned_from: The links that they were learned from, in words.
    """

    by_view: Mapping[str, float]
    learned_from: str

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {weight:.2f}" for name, weight in self.by_view.items())
        return f"weights of the views: {parts} ({self.learned_from})"


def fuse(views: Mapping[str, NameScores], pair: Pair, anchors: np.ndarray) -> tuple[NameScores, Weights]:
    """One set of scores, the weighted sum of several, and the weights.

    Args:
        views: the scores of every view by its name.
        pair: graphs and seeds.
        anchors: int64 [m, 2], pairs that are nearly certain without seeds.
    """
    links, origin = _links_to_learn_from(pair, anchors)
    keys = np.unique(np.concatenate([view.keys for view in views.values()]))
    shape = pair.kg1.num_entities, pair.kg2.num_entities
    ends = np.divmod(keys, shape[1])
    scores = np.stack([view(*ends) for view in views.values()], axis=1)
    weights = np.ones(len(views))
    if len(links) >= ENOUGH_LINKS:
        right = np.stack([view(*links.T) for view in views.values()], axis=1)
        choices = [_choices(scores, ends[side], links[:, side], shape[1 - side]) for side in (0, 1)]
        weights = _most_likely(right, choices) / NAME_BETA
    total = scores @ weights
    kept = total > 0
    fused = NameScores(keys[kept], total[kept].astype(np.float32), shape)
    return fused, Weights(dict(zip(views, weights.round(4).tolist(), strict=True)), origin)


def _links_to_learn_from(pair: Pair, anchors: np.ndarray) -> tuple[np.ndarray, str]:
    """int64 [m, 2] and what they are: seeds, or pairs that structure implies."""
    if len(pair.train) >= ENOUGH_LINKS:
        return pair.train, f"learned from {len(pair.train):,} seeds"
    implied = implied_pairs(pair.kg1, pair.kg2, np.concatenate([pair.train, anchors]))
    if len(implied) >= ENOUGH_LINKS:
        return implied, f"learned from {len(implied):,} pairs that are next to the same seeds or anchors"
    return implied, "not learned: too few seeds, and structure implies too few pairs"


def implied_pairs(kg1: KG, kg2: KG, known: np.ndarray) -> np.ndarray:
    """int64 [m, 2]: pairs next to at least two known pairs, and to more of them than any rival of either entity."""
    first, second = (_next_to(kg, known[:, side]) for side, kg in enumerate((kg1, kg2)))
    degrees = [np.asarray(side.sum(axis=0)).ravel() for side in (first, second)]
    small = np.flatnonzero((degrees[0] <= LARGEST_DEGREE) & (degrees[1] <= LARGEST_DEGREE))
    common = coo_array(first[:, small] @ second[:, small].T)
    (rows, columns), counts = common.coords, common.data
    new = ~np.isin(rows, known[:, 0]) & ~np.isin(columns, known[:, 1]) & (counts >= MIN_COMMON_ANCHORS)
    rows, columns, counts = rows[new].astype(np.int64), columns[new].astype(np.int64), counts[new]
    alone = np.ones(len(rows), dtype=bool)
    for own, size in ((rows, kg1.num_entities), (columns, kg2.num_entities)):
        best = np.zeros(size)
        np.maximum.at(best, own, counts)
        is_best = counts == best[own]
        alone &= is_best & (np.bincount(own[is_best], minlength=size)[own] == 1)
    return np.stack([rows[alone], columns[alone]], axis=1)


def _next_to(kg: KG, entities: np.ndarray) -> csr_array:
    """float32 [num_entities, m]: 1 where an entity is a neighbour of the m-th of some entities."""
    place = np.full(kg.num_entities, -1)
    place[entities] = np.arange(len(entities))
    owner = np.repeat(np.arange(kg.num_entities), kg.degrees)
    near = place[kg.neighbors]
    pairs = np.unique(np.stack([owner[near >= 0], near[near >= 0]]), axis=1)
    ones = np.ones(pairs.shape[1], dtype=np.float32)
    return csr_array(coo_array((ones, tuple(pairs)), shape=(kg.num_entities, len(entities))))


@dataclass(frozen=True)
class _Choices:
    """The candidates that some entities choose from, one after the other.

    Attributes:
        scores: float64 [m, views], of all candidates.
        starts: int64 [n], where the candidates of each entity begin.
        others: float64 [n], how many entities are no candidates; their scores are 0.
    """

    scores: np.ndarray
    starts: np.ndarray
    others: np.ndarray


def _choices(scores: np.ndarray, own: np.ndarray, entities: np.ndarray, num_others: int) -> _Choices:
    """The choices of the entities that have candidates at all: the others' likelihood depends on no weight."""
    chosen = np.flatnonzero(np.isin(own, entities))
    chosen = chosen[np.argsort(own[chosen], kind="stable")]
    starts = np.flatnonzero(run_starts(own[chosen])) if len(chosen) else np.zeros(0, dtype=np.int64)
    counts = np.diff(np.append(starts, len(chosen)))
    return _Choices(scores[chosen], starts, (num_others - counts).astype(np.float64))


def _most_likely(right: np.ndarray, choices: list[_Choices]) -> np.ndarray:
    """float64 [views], not negative: the β of every view under which all entities most likely choose as they should.

    A wide normal distribution around the usual β keeps the weights finite where no choice is wrong. A view that makes
    the links no likelier than noise might has no weight.
    """
    used = np.ones(right.shape[1], dtype=bool)
    while used.any():
        weights = _fitted(right, choices, used)
        if (weights < 0).any():
            used &= weights > 0
            continue
        gains = [_gain(right, choices, used, weights, view) for view in range(len(used))]
        weakest = int(np.argmin(gains))
        if gains[weakest] >= LEAST_GAIN:
            return weights
        used[weakest] = False
    return np.zeros(len(used))


def _fitted(right: np.ndarray, choices: list[_Choices], used: np.ndarray) -> np.ndarray:
    """float64 [views]: the most likely β of the views that are used, and 0 for the others."""
    weights = np.zeros(len(used))
    if used.any():
        weights[used] = _newton(right[:, used], [_Choices(c.scores[:, used], c.starts, c.others) for c in choices])
    return weights


def _gain(right: np.ndarray, choices: list[_Choices], used: np.ndarray, weights: np.ndarray, view: int) -> float:
    """How much likelier the links are with a view than without it; infinite for one that none of them can judge."""
    if not used[view] or not any(side.scores[:, view].any() for side in choices):
        return np.inf
    others = used.copy()
    others[view] = False
    without = np.maximum(_fitted(right, choices, others), 0.0)
    return _log_likelihood(right, choices, weights) - _log_likelihood(right, choices, without)


def _log_likelihood(right: np.ndarray, choices: list[_Choices], weights: np.ndarray) -> float:
    """Of all choices in both directions, up to what does not depend on the weights."""
    found = 2.0 * float((right @ weights).sum())
    for side in choices:
        if len(side.starts):
            exponent = side.scores @ weights
            counts = np.diff(np.append(side.starts, len(exponent)))
            top = np.maximum(np.maximum.reduceat(exponent, side.starts), 0.0)
            mass = np.add.reduceat(np.exp(exponent - np.repeat(top, counts)), side.starts)
            listed = np.log(mass + side.others * np.exp(-top)) + top
            nothing = np.log(counts + side.others)
            found -= float((listed - nothing).sum())
    return found


def _newton(right: np.ndarray, choices: list[_Choices]) -> np.ndarray:
    weights = np.full(right.shape[1], NAME_BETA)
    for _ in range(_STEPS):
        gradient = 2.0 * right.sum(axis=0) - (weights - NAME_BETA) / PRIOR_WIDTH**2
        curvature = np.eye(len(weights)) / PRIOR_WIDTH**2
        for side in choices:
            expected, spread = _moments(side, weights)
            gradient -= expected
            curvature += spread
        step = np.linalg.solve(curvature, gradient)
        weights = weights + np.clip(step, -NAME_BETA, NAME_BETA)  # far from the best the curvature says little
        if np.abs(step).max() < 1e-6:
            break
    return weights


def _moments(side: _Choices, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums over all choices of the mean of the scores and of their covariance, as the weights would choose."""
    if not len(side.starts):
        return np.zeros(len(weights)), np.zeros((len(weights), len(weights)))
    exponent = side.scores @ weights
    counts = np.diff(np.append(side.starts, len(exponent)))
    top = np.maximum(np.maximum.reduceat(exponent, side.starts), 0.0)
    mass = np.exp(exponent - np.repeat(top, counts))
    total = np.add.reduceat(mass, side.starts) + side.others * np.exp(-top)
    probs = mass / np.repeat(total, counts)
    weighted = side.scores * probs[:, None]
    means = np.add.reduceat(weighted, side.starts, axis=0)
    return means.sum(axis=0), side.scores.T @ weighted - means.T @ means
