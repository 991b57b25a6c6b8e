"""What separates right links from wrong ones: numbers about every source entity's best candidate.

A probability of a refinement says how far a candidate is ahead of its rivals, not how much stands behind it. So a link
is also described by its supporters: neighbours that are believed to correspond, and do so consistently, by how these
rest on seeds themselves, and by neighbours that contradict it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast.data.graph import KG
from stea_fast.data.pair import Pair
from stea_fast.types import Candidates, HasRankings

MIN_BELIEVED = 0.3  # joint probability from which a mutual best pair is believed when neighbours are counted
FAR = 12.0  # distance of what no seed reaches
_TINY = 1e-6

# Every feature grows, or stays, with the probability of a link; a monotone model needs no other knowledge of them.
FEATURES = (
    "log-odds of the joint probability",
    "log-odds of the support",
    "lead over the source's next candidate",
    "lead over the target's next candidate",
    "chosen by both sides",
    "supporting neighbours",
    "share of believed neighbours that support it",
    "share of the smaller neighbourhood explained",
    "nearness to a seed",
    "evidence",
    "chosen by the encoder",
)


@dataclass(frozen=True, eq=False)
class DescribedLinks:
    """The best candidate of every source entity, and what stands behind it.

    Attributes:
        targets: int64 [n], -1 for a source without candidates.
        probs: float64 [n], the joint probability √(p·p'); 0 without candidates.
        features: float64 [n, len(FEATURES)].
    """

    targets: np.ndarray
    probs: np.ndarray
    features: np.ndarray


def describe_links(
    pair: Pair,
    joint: Candidates,
    result: HasRankings,
    encoder: HasRankings | None = None,
    targets: np.ndarray | None = None,
) -> DescribedLinks:
    """Describe a candidate of every source entity.

    Args:
        pair: graphs and seeds.
        joint: rankings by the joint probability, of `joint_probabilities`.
        result: the refined rankings, with `support` and `evidence` where the method gives them.
        encoder: the encoder's own rankings; None where no encoder took part.
        targets: int64 [n], which candidate, -1 for none; default: each source's best.
    """
    assert joint.backward is not None
    forward, backward = (
        (np.asarray(side.indices), np.asarray(side.scores)) for side in (joint.forward, joint.backward)
    )
    best = forward[0][:, 0].astype(np.int64)
    targets = best if targets is None else targets
    rows = np.arange(len(targets))
    probs = _of_candidate(forward[1], forward[0], targets)
    believed = _believed(pair, best, forward[1][:, 0], backward[0])
    supporters, against, nearness = _neighbourhood(pair, targets, believed)
    smaller = np.minimum(_distinct_degrees(pair.kg1), _at(_distinct_degrees(pair.kg2), targets))
    support, evidence = (getattr(result.forward, name, None) for name in ("support", "evidence"))
    refined = result.forward.indices
    columns = (
        _log_odds(probs),
        _log_odds(probs if support is None else _of_candidate(support, refined, targets)),
        _lead(probs, _best_other(*forward, rows, targets)),
        _lead(probs, _best_other(*backward, targets, rows)),
        (_at(backward[0][:, 0], targets) == rows).astype(np.float64),
        np.log1p(supporters),
        (supporters + 1.0) / (supporters + against + 2.0),
        supporters / np.maximum(smaller, 1.0),
        nearness,
        np.zeros(len(rows)) if evidence is None else np.log1p(_of_candidate(evidence, refined, targets)),
        _encoder_agreement(encoder, rows, targets),
    )
    return DescribedLinks(targets, probs, np.stack(columns, axis=1))


def _best_other(indices: np.ndarray, probs: np.ndarray, rows: np.ndarray, not_this: np.ndarray) -> np.ndarray:
    """The best probability in each of the rows with anything but `not_this`; 0 where there is none."""
    others = np.where((indices[rows] >= 0) & (indices[rows] != not_this[:, None]), probs[rows], 0.0)
    return np.where(rows >= 0, others.max(axis=1, initial=0.0), 0.0)


def _of_candidate(values: object, indices: object, targets: np.ndarray) -> np.ndarray:
    """float64 [n]: the value of each row's candidate `targets`; 0 where it is not listed."""
    listed = (to_numpy(indices, "indices") == targets[:, None]) & (targets >= 0)[:, None]
    return np.where(listed, to_numpy(values, "values"), 0.0).max(axis=1, initial=0.0).astype(np.float64)


def _believed(pair: Pair, targets: np.ndarray, probs: np.ndarray, back_indices: np.ndarray) -> np.ndarray:
    """int64 [n]: the target that each source is believed to be when neighbours are counted, -1 for none."""
    rows = np.arange(len(targets))
    mutual = (_at(back_indices[:, 0], targets) == rows) & (probs >= MIN_BELIEVED)
    believed = np.where(mutual, targets, -1)
    believed[np.isin(believed, pair.train[:, 1])] = -1
    believed[pair.train[:, 0]] = pair.train[:, 1]
    return believed


def _neighbourhood(pair: Pair, targets: np.ndarray, believed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every candidate: neighbours that support it, believed neighbours that do not, and nearness to a seed."""
    owner, neighbor = _distinct_edges(pair.kg1)
    counted = (believed[neighbor] >= 0) & (targets[owner] >= 0)
    owner, neighbor = owner[counted], neighbor[counted]
    supports = _are_adjacent(pair.kg2, targets[owner], believed[neighbor])
    n = len(targets)
    supporters = np.bincount(owner[supports], minlength=n).astype(np.float64)
    against = np.bincount(owner[~supports], minlength=n).astype(np.float64)
    distance = _distances(n, pair.train[:, 0], owner[supports], neighbor[supports])
    return supporters, against, 1.0 / (1.0 + distance)


def _distances(n: int, seeds: np.ndarray, owner: np.ndarray, supporter: np.ndarray) -> np.ndarray:
    """float64 [n]: how many links lie between an entity and the nearest seed that it rests on; 0 for a seed."""
    distance = np.full(n, FAR)
    distance[seeds] = 0.0
    for step in range(1, int(FAR)):
        reached = owner[(distance[supporter] == step - 1) & (distance[owner] == FAR)]
        if not len(reached):
            break
        distance[reached] = step
    return distance


def _distinct_edges(kg: KG) -> tuple[np.ndarray, np.ndarray]:
    """(entity, neighbour) of every two entities that are related, in both directions, without loops and repetition."""
    owner = np.repeat(np.arange(kg.num_entities, dtype=np.int64), kg.degrees)
    neighbor = kg.neighbors.astype(np.int64)
    first = np.ones(len(owner), dtype=bool)
    first[1:] = (owner[1:] != owner[:-1]) | (neighbor[1:] != neighbor[:-1])  # edges are ordered by neighbour
    first &= owner != neighbor
    return owner[first], neighbor[first]


def _distinct_degrees(kg: KG) -> np.ndarray:
    return np.bincount(_distinct_edges(kg)[0], minlength=kg.num_entities).astype(np.float64)


def _are_adjacent(kg: KG, entities: np.ndarray, others: np.ndarray) -> np.ndarray:
    """bool [m]: whether a relation, in either direction, holds between two entities."""
    owner, neighbor = _distinct_edges(kg)
    keys, wanted = owner * kg.num_entities + neighbor, entities * kg.num_entities + others
    places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    return keys[places] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)


def _encoder_agreement(encoder: HasRankings | None, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The share of the encoder's two directions whose nearest is this candidate; one half where none took part."""
    if encoder is None or encoder.backward is None:
        return np.full(len(rows), 0.5)
    forward = to_numpy(encoder.forward.indices, "indices")[:, 0]
    backward = to_numpy(encoder.backward.indices, "indices")[:, 0]
    return 0.5 * (forward == targets) + 0.5 * (_at(backward, targets) == rows)


def _at(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """values[places], and -1 where the place is -1."""
    return np.where(places >= 0, values[places], -1)


def _log_odds(probs: np.ndarray) -> np.ndarray:
    clipped = np.clip(probs, _TINY, 1.0 - _TINY)
    return np.log(clipped) - np.log1p(-clipped)


def _lead(probs: np.ndarray, rivals: np.ndarray) -> np.ndarray:
    return np.log(probs + 1e-3) - np.log(rivals + 1e-3)
