"""Search among what is still open, when the counterparts of the others have been found before."""

from __future__ import annotations

import numpy as np

from stea_fast._executors.base import Executor
from stea_fast._util.array_ops import ops_of
from stea_fast._util.arrays import is_torch, like, where_it_is
from stea_fast._util.mapped import Empty, in_memory, rows_of
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
    engine: str = "auto",
    beta: float | None = None,
    executor: Executor | None = None,
    progress: Progress = None,
    empty: Empty = in_memory,
) -> TopK:
    """`topk` by cosine without what is settled: an entity of a settled pair has its partner as its only candidate.

    All others are searched among each other, and CSLS and partition sums know of nobody else. The mean similarity of a
    settled entity with its nearest is not searched, either: the mean of the others' stands in its place. Where nobody
    is open on one side, everything is searched.

    Args:
        emb1, emb2: embeddings [n1, d] and [n2, d], as `topk` takes them.
        settled: int64 [m, 2]; of the pairs of an entity that occurs twice, the last counts.
        k, csls, engine, beta, executor, progress: as `topk` takes them.
        empty: makes the matrices of the open entities' embeddings.
    """
    open1, open2 = (_others(settled[:, side], len(emb)) for side, emb in enumerate((emb1, emb2)))
    if min(len(open1), len(open2)) == 0:
        return topk(emb1, emb2, k, csls, engine=engine, beta=beta, executor=executor, progress=progress)
    opened = _opened(emb1, open1, empty), _opened(emb2, open2, empty)
    found = topk(*opened, k, csls, engine=engine, beta=beta, executor=executor, progress=progress)
    assert found.backward is not None, "a search has both directions"
    template = where_it_is(found.forward.indices, "indices")
    open1, open2, pairs = (like(template, ids) for ids in (open1, open2, settled))
    score = _scorer((emb1, emb2), (open1, open2), found)
    scores = score(*pairs.T)
    forward = _completed(found.forward, open1, open2, pairs, scores, len(emb1))
    backward = _completed(found.backward, open2, open1, pairs[:, [1, 0]], scores, len(emb2))
    logs = None
    if found.log_partition is not None and beta is not None:
        of_rows, of_columns = (where_it_is(part, "log_partition") for part in found.log_partition)
        logs = (
            like(emb1, _filled(len(emb1), open1, of_rows, pairs[:, 0], beta * scores)),
            like(emb1, _filled(len(emb2), open2, of_columns, pairs[:, 1], beta * scores)),
        )
    return TopK(forward, backward, logs, beta, found.engine, found.recall, score)


def _opened(embedding: Array, rows: np.ndarray, empty: Empty) -> Array:
    if is_torch(embedding) or embedding.dtype != np.float32:
        return embedding[like(embedding, rows)]
    return rows_of(embedding, rows, empty)


def _others(settled: np.ndarray, size: int) -> np.ndarray:
    """int64: the entities that are not settled, in order."""
    mask = np.ones(size, dtype=bool)
    mask[settled] = False
    return np.flatnonzero(mask)


def _scorer(embeddings: tuple[Array, Array], opened: tuple[Array, Array], found: TopK) -> PairScorer:
    """The scores of any pairs, by the means that the search among the open entities found."""
    assert isinstance(found.score, PairScorer)
    if found.score.means is None:
        return pair_scorer(*embeddings, None)
    means = []
    for embedding, some, mean in zip(embeddings, opened, found.score.means, strict=True):
        everybody = ops_of(mean).full(len(embedding), 1.0) * mean.mean()
        everybody[some] = mean
        means.append(everybody)
    return pair_scorer(*embeddings, (means[0], means[1]))


def _completed(ranking: Ranking, rows: Array, columns: Array, settled: Array, scores: Array, size: int) -> Ranking:
    """The ranking of all entities of a side, from that of the open ones and the partners of the others."""
    ids, values = where_it_is(ranking.indices, "indices"), where_it_is(ranking.scores, "scores")
    ops, shape = ops_of(ids), (size, ids.shape[1])
    indices = ops.cast(ops.full(shape, -1, "int64"), ids.dtype)
    whole = ops.full(shape, -np.inf, "float32")
    indices[rows], whole[rows] = ops.cast(ops.where(ids >= 0, columns[ids], -1), ids.dtype), values
    indices[settled[:, 0], 0] = ops.cast(settled[:, 1], ids.dtype)
    whole[settled[:, 0], 0] = ops.single(scores)
    return Ranking(like(ranking.indices, indices), like(ranking.scores, whole))


def _filled(size: int, opened: Array, of_open: Array, settled: Array, of_settled: Array) -> Array:
    """One number per entity of a side."""
    whole = ops_of(of_open).full(size, 0.0)
    whole[opened], whole[settled] = of_open, of_settled
    return whole
