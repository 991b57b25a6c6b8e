"""Candidates of which no link came, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stea_fast._util.sparse import offsets
from stea_fast.alignment.link_table import STATUSES, LinkTable
from stea_fast.types import Candidates

# Why a candidate was not even considered; the page says it in words. The first that holds is given.
REASONS = (
    "seed",  # it belongs to another source, by a seed
    "one_sided",  # its own list of candidates does not hold the source
    "taken",  # one-to-one: it goes to another source, and all links together are likelier so
    "prefers_another",  # less likely than what was considered, and its own best source is another
    "less_likely",  # less likely than what was considered
)


@dataclass(frozen=True, eq=False)
class RejectedCandidates:
    """Candidates beside the one that was considered, as arrays of one length: those of a source side by side.

    Attributes:
        indptr: int64 [sources + 1], where those of each source begin.
        target: int64 [m].
        score: float64 [m], the joint probability √(p·p'), which is not calibrated.
        reason: int64 [m], a place in `REASONS`.
    """

    indptr: np.ndarray
    target: np.ndarray
    score: np.ndarray
    reason: np.ndarray


def rejected_candidates(links: LinkTable, joint: Candidates, *, one_to_one: bool, most: int) -> RejectedCandidates:
    """Up to `most` candidates of every source that is in no seed, likeliest first."""
    assert joint.backward is not None
    indices, scores = np.asarray(joint.forward.indices), np.asarray(joint.forward.scores)
    is_seed = links.status == STATUSES.index("seed")
    rejected = (indices >= 0) & (indices != links.considered[:, None]) & ~is_seed[:, None]
    source, column = np.nonzero(rejected & (np.cumsum(rejected, axis=1) <= most))
    target, score = indices[source, column].astype(np.int64), scores[source, column].astype(np.float64)
    num_targets = len(joint.backward.indices)
    of_seed, held = (_marked(links.considered[chosen], num_targets) for chosen in (is_seed, links.considered >= 0))
    reason = np.select(
        [of_seed[target], score == 0, held[target] & one_to_one, best_sources(joint)[target] != source],
        range(len(REASONS) - 1),
        len(REASONS) - 1,
    )
    return RejectedCandidates(offsets(source, len(indices)), target, score, reason)


def best_sources(joint: Candidates) -> np.ndarray:
    """int64 [targets]: the likeliest source of every target, -1 where none is likely at all."""
    assert joint.backward is not None
    best = np.asarray(joint.backward.indices)[:, 0].astype(np.int64)
    return np.where(np.asarray(joint.backward.scores)[:, 0] > 0, best, -1)


def _marked(places: np.ndarray, count: int) -> np.ndarray:
    marked = np.zeros(count, dtype=bool)
    marked[places] = True
    return marked
