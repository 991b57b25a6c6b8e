"""The FAISS engine: exact search on CPU or GPUs, and approximate search by IVF or HNSW.

FAISS finds neighbours and nothing else: partition sums are taken by a pass of our own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import faiss
import numpy as np

from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.search.exact import Products, RowCandidates, SearchRequest, SearchResult
from stea_fast.search.ranked import CandidateEngine
from stea_fast.types import Array

logger = logging.getLogger("stea_fast")

QUERIES_AT_ONCE = 4096  # between two looks at progress and Ctrl-C
HNSW_LINKS = 32
MOST_ON_A_GPU = 2048  # neighbours of a query that FAISS can select on a GPU
Partition = Callable[[SearchRequest], tuple[Array, Array]]
Search = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def num_gpus() -> int:
    """How many GPUs answer; 0 with faiss-cpu."""
    return int(faiss.get_num_gpus()) if hasattr(faiss, "get_num_gpus") else 0


class FaissEngine(CandidateEngine):
    """kind "flat" is exact; "ivf" and "hnsw" find most of the neighbours in less time.

    Args:
        kind: "flat", "ivf" or "hnsw".
        products: inner products of single pairs in double precision.
        partition: the log-partition sums of a request, for which FAISS has no function.
    """

    def __init__(self, kind: str, products: Products, partition: Partition) -> None:
        self.name = "faiss" if kind == "flat" else f"faiss-{kind}"
        self.kind, self.is_exact = kind, kind == "flat"
        self._products, self._partition = products, partition

    def products(self, queries: Embeddings, keys: Embeddings, indices: np.ndarray, distance: bool) -> np.ndarray:
        """float64 [n, k]: inner products, or squared distances, of every row with its candidates."""
        return self._products(queries, keys, indices, distance)

    def search(self, request: SearchRequest) -> SearchResult:
        """The `keep` best of every row and of every column: one search in each direction."""
        side1, side2, scoring = request.side1, request.side2, request.scoring
        forward = self._direction(side1, side2, scoring, request)
        backward = self._direction(side2, side1, scoring.swapped(), request)
        logs = None if request.beta is None else self._partition(replace(request, step=_unseen))
        return SearchResult(forward, backward, logs)

    def _direction(
        self, queries: Embeddings, keys: Embeddings, scoring: Scoring, request: SearchRequest
    ) -> RowCandidates:
        keep = min(request.keep, len(keys))
        # An offset of the key is one more dimension, at which every query is -1.
        has_offsets = bool(np.any(scoring.offset2))
        search = self._searcher(_scaled(keys, scoring.scale2, scoring.offset2 if has_offsets else None), keep)
        indices = np.empty((len(queries), keep), dtype=np.int32)
        scores = np.empty((len(queries), keep), dtype=np.float32)
        for begin in range(0, len(queries), QUERIES_AT_ONCE):
            span = slice(begin, min(begin + QUERIES_AT_ONCE, len(queries)))
            minus_one = np.full(len(queries), -1.0) if has_offsets else None
            scores[span], indices[span] = search(_scaled(queries, scoring.scale1, minus_one, span), keep)
            scores[span] -= scoring.offset1[span, None].astype(np.float32)
            request.step((span.stop - span.start) * len(keys) / 2)  # each direction is half of the work
        return RowCandidates(indices, np.where(indices >= 0, scores, -np.inf).astype(np.float32))

    def _searcher(self, keys: np.ndarray, keep: int) -> Search:
        if self.kind != "flat":
            return _index(self.kind, keys).search
        if num_gpus() and keep <= MOST_ON_A_GPU:
            logger.info("faiss searches on %d GPU(s)", num_gpus())
            return _GpuSearch(keys).search
        return lambda queries, k: faiss.knn(queries, keys, k, metric=faiss.METRIC_INNER_PRODUCT)


def _unseen(count: float) -> None:
    """Progress has been reported by the search."""


def _scaled(side: Embeddings, scale: np.ndarray, extra: np.ndarray | None, span: slice = slice(None)) -> np.ndarray:
    """float32 [m, d (+ 1)]: some rows times their scale, and the extra column."""
    begin, end, _ = span.indices(len(side))
    factor = (scale * side.block_norms)[span, None].astype(np.float32)
    rows = side.block(begin, end) * factor
    if extra is None:
        return np.ascontiguousarray(rows)
    return np.ascontiguousarray(np.concatenate([rows, extra[span, None].astype(np.float32)], axis=1))


class _GpuSearch:
    """Exact search, the queries shared out among the GPUs."""

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys
        self.resources = [faiss.StandardGpuResources() for _ in range(num_gpus())]

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        parts = np.array_split(queries, len(self.resources))
        with ThreadPoolExecutor(len(self.resources)) as pool:
            parts_found = list(pool.map(lambda device: self._on_device(device, parts[device], k), range(len(parts))))
        return np.concatenate([scores for scores, _ in parts_found]), np.concatenate(
            [indices for _, indices in parts_found]
        )

    def _on_device(self, device: int, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        if len(queries) == 0:
            return np.empty((0, k), dtype=np.float32), np.empty((0, k), dtype=np.int64)
        return faiss.knn_gpu(
            self.resources[device], queries, self.keys, k, metric=faiss.METRIC_INNER_PRODUCT, device=device
        )


def _index(kind: str, keys: np.ndarray) -> Any:
    """An approximate index by inner product."""
    index: Any
    count, width = keys.shape
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(width, HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = 80, 128
    else:
        lists = max(1, min(int(4 * np.sqrt(count)), count // 39))  # FAISS wants 39 vectors per list to train on
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, lists, faiss.METRIC_INNER_PRODUCT)
        index.nprobe = max(1, lists // 16)
        index.train(keys)
    index.add(keys)
    return index
