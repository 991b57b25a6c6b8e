"""How a round searches: among whom, in how many dimensions, and by which engine."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from stea_fast._backends.dense import dense_product
from stea_fast._executors.base import Executor
from stea_fast._util.arrays import is_torch, like, where_it_is
from stea_fast._util.mapped import Empty, in_memory
from stea_fast._util.progress import Progress
from stea_fast.search.topk import topk
from stea_fast.search.unsettled import topk_of_unsettled
from stea_fast.selftraining.config import SearchConfig
from stea_fast.types import Array, TopK

logger = logging.getLogger("stea_fast")

APPROXIMATE_ENGINE = "partitioned"  # that "auto" takes beyond the budget
ROWS_AT_ONCE = 1 << 16
SEED = 22  # of the projection to fewer dimensions


def engine_for(search: SearchConfig, num_rows: int, num_columns: int, width: int) -> str:
    """The engine of `topk` that a search of this size takes: the exact one as far as the budget goes."""
    if search.engine != "auto" or search.budget is None:
        return search.engine
    return "auto" if work_of(search, num_rows, num_columns, width) <= search.budget else APPROXIMATE_ENGINE


def work_of(search: SearchConfig, num_rows: int, num_columns: int, width: int) -> float:
    """How many products of numbers an exact search takes; CSLS takes a second pass."""
    return float(num_rows) * num_columns * width * (2 if search.csls else 1)


def searched(
    embeddings: tuple[Array, Array],
    search: SearchConfig,
    executor: Executor | None,
    progress: Progress,
    *,
    settled: np.ndarray | None,
    beta: float | None,
    empty: Empty = in_memory,
) -> tuple[TopK, dict[str, Any]]:
    """The candidates of a round, and what is worth knowing of the search.

    Args:
        embeddings: of both graphs.
        search: how to search.
        executor, progress: as `topk` takes them.
        settled: int64 [m, 2], pairs whose entities are not searched; None searches everything.
        beta: for partition sums; None leaves them out.
        empty: makes the matrices that are as large as embeddings.
    """
    emb1, emb2 = in_fewer_dimensions(embeddings, search.dimensions, empty)
    sizes = [len(emb1), len(emb2)]
    if settled is not None:
        opened = [size - len(np.unique(settled[:, side])) for side, size in enumerate(sizes)]
        sizes = opened if min(opened) else sizes
    engine = engine_for(search, sizes[0], sizes[1], int(emb1.shape[1]))
    options: dict[str, Any] = {"engine": engine, "beta": beta, "executor": executor, "progress": progress}
    if settled is None:
        found = topk(emb1, emb2, search.k, search.csls, **options)
    else:
        found = topk_of_unsettled(emb1, emb2, settled, search.k, search.csls, empty=empty, **options)
    facts: dict[str, Any] = {"engine": found.engine, "sources": sizes[0], "targets": sizes[1], "width": emb1.shape[1]}
    if found.recall is not None:
        facts["recall"] = [round(share, 4) for share in found.recall]
        logger.info(
            "approximate search (%s) of %d x %d: recall %.3f and %.3f on a sample", found.engine, *sizes, *found.recall
        )
    return found, facts


def in_fewer_dimensions(
    embeddings: tuple[Array, Array], dimensions: int | None, empty: Empty = in_memory
) -> tuple[Array, Array]:
    """Random directions of the embeddings, which keep cosines up to about 1 / √dimensions; None keeps all of them."""
    width = int(embeddings[0].shape[1])
    if dimensions is None or dimensions == width:
        return embeddings
    if dimensions > width:
        raise ValueError(
            f"search.dimensions is {dimensions}, but the encoder gives {width}: ask for at most {width}, or for a "
            "wider encoder"
        )
    directions = np.random.default_rng(SEED).standard_normal((width, dimensions), dtype=np.float32)
    directions /= np.sqrt(np.float32(dimensions))
    first, second = (like(embedding, _projected(embedding, directions, empty)) for embedding in embeddings)
    return first, second


def _projected(embedding: Array, directions: np.ndarray, empty: Empty) -> Array:
    values = where_it_is(embedding, "embeddings")
    if is_torch(values):
        return values.float() @ like(values, directions)
    out = empty((len(values), directions.shape[1]))
    for begin in range(0, len(values), ROWS_AT_ONCE):
        span = slice(begin, begin + ROWS_AT_ONCE)
        dense_product(values[span].astype(np.float32), directions, out[span])
    return out
