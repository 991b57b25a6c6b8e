"""Simulated candidates for pairs that are too large for a brute-force search on a small machine.

They are made for timing, from all links, test links included: no accuracy may be read off them. What they
share with an encoder's candidates is what the time of the kernels depends on: the true counterpart is usually
among them, the others lie near it in the graph, and their degrees are like its own. (Plain random walks would
end at hubs far more often than an encoder's candidates do.)
"""

from __future__ import annotations

import numpy as np

from stea_fast import KG, Candidates, Pair, Ranking
from stea_fast.data.sealed import reveal

WALKS_PER_CANDIDATE = 4
ROWS_PER_BLOCK = 32_768
LARGEST_RATIO = 4.0  # between the degrees of the counterpart and of another candidate
DECAY = 0.5  # the true counterpart is at place p with a probability in proportion to DECAY ** p


def simulated_candidates(pair: Pair, k: int = 10, *, hit_rate: float = 0.9, seed: int = 0) -> Candidates:
    """Candidates in both directions, best first.

    A linked entity has its counterpart among its k candidates with probability `hit_rate`, at a random place,
    the first places being likelier. The others are ends of two-step walks from the counterpart (neighbours of
    its neighbours) whose degrees are like its own; where the walks find too few, random targets. An
    entity without link, or without triples, has a random target in the role of the counterpart. Scores are
    random and decreasing. No candidate occurs twice in a row; a graph with fewer than k entities leaves -1.
    """
    rng = np.random.default_rng(seed)
    links = reveal(pair.links)
    return Candidates(
        _direction(rng, pair.kg1.num_entities, pair.kg2, links, k, hit_rate),
        _direction(rng, pair.kg2.num_entities, pair.kg1, links[:, ::-1], k, hit_rate),
    )


def _direction(
    rng: np.random.Generator, num_rows: int, target: KG, links: np.ndarray, k: int, hit_rate: float
) -> Ranking:
    truth = np.full(num_rows, -1, dtype=np.int64)
    truth[links[:, 0]] = links[:, 1]
    indices = np.empty((num_rows, k), dtype=np.int32)
    for begin in range(0, num_rows, ROWS_PER_BLOCK):
        block = truth[begin : begin + ROWS_PER_BLOCK]
        indices[begin : begin + ROWS_PER_BLOCK] = _rows(rng, target, block, k, hit_rate)
    scores = -np.sort(-rng.random((num_rows, k), dtype=np.float32), axis=1)
    return Ranking(indices, scores)


def _rows(rng: np.random.Generator, target: KG, truth: np.ndarray, k: int, hit_rate: float) -> np.ndarray:
    """int64 [rows, k]: the candidates of some rows; `truth` is -1 where there is no link."""
    linked = truth >= 0
    anchors = np.where(linked, truth, rng.integers(target.num_entities, size=len(truth)))
    hit = linked & (rng.random(len(truth)) < hit_rate)
    near = _near(rng, target, anchors, WALKS_PER_CANDIDATE * k)
    random = rng.integers(target.num_entities, size=(len(truth), 2 * k))
    draws = np.concatenate([np.where(hit, truth, near[:, 0])[:, None], near, random], axis=1)
    missed = np.where(linked & ~hit, truth, -1)
    chosen = _first_distinct(draws, draws == missed[:, None], k)
    return _move_first(chosen, _places(rng, len(truth), k))


def _near(rng: np.random.Generator, kg: KG, anchors: np.ndarray, count: int) -> np.ndarray:
    """int64 [rows, count]: ends of two-step walks, the most similar degrees first, then random entities."""
    start = np.repeat(anchors[:, None], count, axis=1)
    ends = _step(rng, kg, _step(rng, kg, start))
    size = np.log1p(kg.degrees)
    distance = np.abs(size[ends] - size[start])
    order = np.argsort(distance, axis=1, kind="stable")
    far = np.take_along_axis(distance, order, axis=1) > np.log(LARGEST_RATIO)
    ends = np.take_along_axis(ends, order, axis=1)
    return np.where(far, rng.integers(kg.num_entities, size=ends.shape), ends)


def _step(rng: np.random.Generator, kg: KG, entities: np.ndarray) -> np.ndarray:
    """A random neighbour of each; a random entity where there is none."""
    degrees = kg.degrees[entities]
    edges = kg.indptr[entities] + (rng.random(entities.shape) * degrees).astype(np.int64)
    neighbors = kg.neighbors[np.minimum(edges, len(kg.edges) - 1)].astype(np.int64)
    return np.where(degrees > 0, neighbors, rng.integers(kg.num_entities, size=entities.shape))


def _first_distinct(draws: np.ndarray, excluded: np.ndarray, k: int) -> np.ndarray:
    """The first k distinct draws of every row that are not excluded; -1 where there are fewer."""
    by_id = np.argsort(draws, axis=1, kind="stable")
    ordered = np.take_along_axis(draws, by_id, axis=1)
    repeated = np.zeros(draws.shape, dtype=bool)
    np.put_along_axis(repeated, by_id[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    unusable = repeated | excluded
    first = np.argsort(unusable, axis=1, kind="stable")[:, :k]
    return np.where(np.take_along_axis(unusable, first, axis=1), -1, np.take_along_axis(draws, first, axis=1))


def _places(rng: np.random.Generator, num_rows: int, k: int) -> np.ndarray:
    shares = DECAY ** np.arange(k)
    return rng.choice(k, size=num_rows, p=shares / shares.sum())


def _move_first(rows: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Each row with its first element moved to the given place, the ones before it moved forward."""
    column = np.arange(rows.shape[1])
    source = np.where(column < places[:, None], column + 1, np.where(column == places[:, None], 0, column))
    return np.take_along_axis(rows, source, axis=1)
