"""One probability for every pair, from what its source and its target say of each other."""

from __future__ import annotations

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast.types import Candidates, HasRankings, HasScores, Ranking


def joint_probabilities(result: HasRankings) -> Candidates:
    """Rankings by √(p·p'), where p is the probability of source → target and p' that of target → source.

    A source without counterpart may be sure of its best target, but that target is sure of another source: only what
    both directions hold likely is likely a link. A pair that one direction does not list has p' = 0. Nor is a pair
    likelier than its support: two entities without counterpart may be left over for each other.
    """
    if result.backward is None:
        raise ValueError("joint probabilities need rankings in both directions; only one was given")
    forward, backward = (_arrays(side) for side in (result.forward, result.backward))
    return Candidates(_joint(forward, backward), _joint(backward, forward))


def _arrays(ranking: HasScores) -> tuple[np.ndarray, np.ndarray]:
    indices = to_numpy(ranking.indices, "indices").astype(np.int64)
    probs = np.clip(to_numpy(ranking.scores, "scores"), 0.0, 1.0)
    support = getattr(ranking, "support", None)
    if support is not None:
        probs = np.minimum(probs, to_numpy(support, "support"))
    return indices, np.where(indices >= 0, probs, 0.0)


def _joint(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> Ranking:
    """Each row of `one` by the joint probability, best first."""
    (indices, probs), (back, back_probs) = one, other
    width = len(indices)
    keys = np.where(back >= 0, np.arange(len(back))[:, None] * width + back, -1).ravel()
    order = np.argsort(keys)
    wanted = np.where(indices >= 0, indices * width + np.arange(width)[:, None], -2)
    places = order[np.minimum(_places(keys[order], wanted.ravel()), len(keys) - 1)].reshape(wanted.shape)
    listed = keys[places] == wanted
    joint = np.sqrt(probs * np.where(listed, back_probs.ravel()[places], 0.0)).astype(np.float32)
    best_first = np.argsort(-joint, axis=1, kind="stable")
    return Ranking(np.take_along_axis(indices, best_first, axis=1), np.take_along_axis(joint, best_first, axis=1))


def _places(ordered: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """As `np.searchsorted`, but asked in order: millions of questions at random mostly wait for the memory."""
    by_key = np.argsort(wanted)
    places = np.empty(len(wanted), dtype=np.int64)
    places[by_key] = np.searchsorted(ordered, wanted[by_key])
    return places
