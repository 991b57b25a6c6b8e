"""Search among what is still open, when most of the counterparts have been found before."""

from __future__ import annotations

from typing import Any

import numpy as np

from stea_fast._util.arrays import is_torch, like, to_numpy
from stea_fast._util.progress import Progress
from stea_fast.search.pair_scores import PairScorer
from stea_fast.search.topk import pair_scorer, topk
from stea_fast.types import Array, Ranking, TopK


def topk_of_unsettled(
    emb1: Array,
    emb2: Array,
    settled: np.ndarray,
    k: int,
    csls: int,
    *,
    beta: float | None = None,
    progress: Progress = None,
) -> TopK:
    """`topk` by cosine, without what is settled: an entity of a settled pair has its partner as only candidate.

    All others are searched among each other, and CSLS and partition sums know nothing else. In the place of the mean
    similarity of a settled entity with its nearest, which nobody has searched, stands that of all others on its side.

    Args:
        emb1, emb2: embeddings [n1, d] and [n2, d], as `topk` takes them.
        settled: int64 [m, 2], pairs in which no entity occurs twice.
        k, csls, beta, progress: as `topk` takes them.
    """
    sides = [_open(settled[:, side], len(emb)) for side, emb in enumerate((emb1, emb2))]
    if min(map(len, sides)) == 0:  # one side has nobody left: what the other's rest resembles is all there is to say
        return topk(emb1, emb2, k, csls, beta=beta, progress=progress)
    found = topk(emb1[_positions(emb1, sides[0])], emb2[_positions(emb2, sides[1])], k, csls, beta=beta, progress=progress)
    score = _scorer(emb1, emb2, sides, found)
    scores = score(*settled.T)
    assert found.backward is not None
    rankings = [
        _whole(ranking, (len(emb), *which), settled[:, ::step], scores)
        for ranking, emb, which, step in (
            (found.forward, emb1, sides, 1),
            (found.backward, emb2, sides[::-1], -1),
        )
    ]
    logs = None
    if found.log_partition is not None and beta is not None:
        logs = tuple(
            like(emb1, _filled(len(emb), opened, to_numpy(part, "log_partition"), settled[:, side], beta * scores))
            for side, (part, opened, emb) in enumerate(zip(found.log_partition, sides, (emb1, emb2), strict=True))
        )
    forward, backward = (Ranking(like(emb1, ids), like(emb1, values)) for ids, values in rankings)
    return TopK(forward, backward, logs, beta, found.engine, found.recall, score)  # type: ignore[arg-type]


def _open(settled: np.ndarray, size: int) -> np.ndarray:
    """int64: the entities that are not settled."""
    mask = np.ones(size, dtype=bool)
    mask[settled] = False
    return np.flatnonzero(mask)


def _positions(emb: Array, chosen: np.ndarray) -> Any:
    return like(emb, chosen) if is_torch(emb) else chosen


def _scorer(emb1: Array, emb2: Array, sides: list[np.ndarray], found: TopK) -> PairScorer:
    """The scores of all pairs, by the means of the open entities."""
    assert isinstance(found.score, PairScorer)
    means = found.score.means
    if means is None:
        return pair_scorer(emb1, emb2, None)
    known = [to_numpy(mean, "means") for mean in means]
    sizes = len(emb1), len(emb2)
    first, second = (_spread(mean, opened, size) for mean, opened, size in zip(known, sides, sizes, strict=True))
    return pair_scorer(emb1, emb2, (first, second))


def _spread(means: np.ndarray, opened: np.ndarray, size: int) -> np.ndarray:
    """float64 [n]: the means of the open entities, and their mean for the others."""
    whole = np.full(size, means.mean())
    whole[opened] = means
    return whole


def _whole(
    ranking: Ranking, sizes: tuple[int, np.ndarray, np.ndarray], settled: np.ndarray, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rankings of all entities of a side, from those of the open ones and the partners of the others."""
    size, rows, columns = sizes
    ids, values = (to_numpy(part, "ranking") for part in ranking)
    indices = np.full((size, ids.shape[1]), -1, dtype=ids.dtype)
    whole = np.full(indices.shape, -np.inf, dtype=np.float32)
    indices[rows] = np.where(ids >= 0, columns[ids], -1)
    whole[rows] = values
    indices[settled[:, 0], 0], whole[settled[:, 0], 0] = settled[:, 1], scores
    return indices, whole


def _filled(size: int, opened: np.ndarray, of_open: np.ndarray, settled: np.ndarray, of_settled: np.ndarray) -> Any:
    whole = np.empty(size, dtype=of_open.dtype)
    whole[opened], whole[settled] = of_open, of_settled
    return whole
