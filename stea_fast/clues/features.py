"""Vectors that somebody else gave the entities, from a text model for example, as a sparse set of scored pairs."""

from __future__ import annotations

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast.clues.name_scores import NameScores
from stea_fast.search.topk import topk
from stea_fast.types import ArrayLike, Ranking

Features = tuple[ArrayLike, ArrayLike]


def feature_scores(features: Features, shape: tuple[int, int], k: int, n_threads: int | None) -> NameScores:
    """How much nearer than others the vectors of two entities are.

    The score of a pair is its cosine above the mean of two others: the cosine of the source with its k-th nearest
    target, and of the target with its k-th nearest source. So models whose cosines are all large, or all small, give
    scores of the same kind, and 0 is the right score of all pairs that are not listed.

    Args:
        features: a matrix for either graph, with a row for every entity; a row of zeros says nothing of its entity.
        shape: the numbers of entities of both graphs.
        k: how many candidates of every entity are looked at.
        n_threads: how many threads may be used.

    Raises:
        ValueError: a matrix has not a row for every entity, the widths differ, or a value is not finite.
        TypeError: the features are not two matrices of numbers.
    """
    first, second = _checked(features, shape)
    found = topk(first, second, min(k, *shape), csls=0, n_threads=n_threads, progress=False)
    assert isinstance(found.backward, Ranking), "topk searches both directions"
    cosines = NameScores.of_rankings(found.forward, found.backward)
    rows, columns = np.divmod(cosines.keys, shape[1])
    floors = [np.asarray(side.scores)[:, -1].astype(np.float64) for side in (found.forward, found.backward)]
    scores = cosines.scores - (floors[0][rows] + floors[1][columns]) / 2
    is_zero = [np.flatnonzero(~side.any(axis=1)) for side in (first, second)]
    kept = (scores > 0) & ~np.isin(rows, is_zero[0]) & ~np.isin(columns, is_zero[1])
    return NameScores(cosines.keys[kept], scores[kept].astype(np.float32), shape)


def _checked(features: Features, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(features, (tuple, list)) or len(features) != 2:
        raise TypeError("features must be two matrices, one for each graph")
    sides = []
    for side, (given, size) in enumerate(zip(features, shape, strict=True)):
        name = f"features[{side}]"
        array = to_numpy(given, name)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
        if array.ndim != 2 or len(array) != size:
            raise ValueError(f"{name} must have a row for each of {size:,} entities, got shape {array.shape}")
        unusable = ~np.isfinite(array).all(axis=1)
        if unusable.any():
            raise ValueError(f"{name}[{int(unusable.argmax())}] holds NaN or infinite values; all must be finite")
        sides.append(array)
    if sides[0].shape[1] != sides[1].shape[1] or not sides[0].shape[1]:
        raise ValueError(f"features must be of one width, got {sides[0].shape[1]} and {sides[1].shape[1]}")
    return sides[0], sides[1]
