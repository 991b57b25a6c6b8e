"""The CPU engine: blocks of inner products from NumPy's BLAS, merged into both directions in one read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import numpy as np

from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.search.exact import RowCandidates, SearchRequest, SearchResult
from stea_fast.search.ranked import CandidateEngine

BLOCK_ROWS, BLOCK_COLUMNS = 1024, 4096
ENTRY = np.dtype([("score", np.float32), ("index", np.int32)])
Block = tuple[np.ndarray, ...]


class Pools:
    """What is kept of every line (row or column) while the blocks come in; see csrc/kernels/topk.h."""

    def __init__(self, lines: int, keep: int, floor: np.ndarray | None) -> None:
        self.keep = keep
        self.entries = np.empty((lines, keep + max(16, keep // 2)), dtype=ENTRY)
        self.sizes = np.zeros(lines, dtype=np.int32)
        self.threshold = np.full(lines, -np.inf, dtype=np.float32) if floor is None else floor.copy()
        self.best = self.threshold.copy()  # partition sums are relative to it: never below what is overlooked

    def part(self, span: slice) -> tuple[np.ndarray, ...]:
        """Views of some lines, as the kernels take them."""
        return self.entries[span], self.sizes[span], self.threshold[span], self.best[span]

    def candidates(self) -> RowCandidates:
        """The kept entries, once they are sorted."""
        filled = np.arange(self.keep) < self.sizes[:, None]
        entries = self.entries[:, : self.keep]
        return RowCandidates(np.where(filled, entries["index"], -1), np.where(filled, entries["score"], -np.inf))


class PartitionSums:
    """Σ exp(β·(score − anchor)) of every line."""

    def __init__(self, lines: int) -> None:
        self.sums = np.zeros(lines)
        self.anchor = np.zeros(lines, dtype=np.float32)

    def part(self, span: slice) -> tuple[np.ndarray, np.ndarray]:
        """Views of some lines."""
        return self.sums[span], self.anchor[span]

    def log(self, beta: float) -> np.ndarray:
        """float64 [lines]: log Σ exp(β·score)."""
        return np.log(self.sums) + beta * self.anchor.astype(np.float64)


class CpuEngine(CandidateEngine):
    """Matrix products by NumPy's BLAS, merging by compiled kernels.

    Args:
        kernels: a module with `merge`, `partition`, `sort` and `products`: `native_merge` or `numba_merge`.
    """

    def __init__(self, kernels: ModuleType, n_threads: int) -> None:
        self.name = kernels.__name__.rpartition(".")[2].removesuffix("_merge")
        self.kernels, self.n_threads = kernels, n_threads

    def products(self, queries: Embeddings, keys: Embeddings, indices: np.ndarray, distance: bool) -> np.ndarray:
        """float64 [n, k]: inner products, or squared distances, of every row with its candidates."""
        return self.kernels.products(queries, keys, indices, distance, self.n_threads)

    def search(self, request: SearchRequest) -> SearchResult:
        """The `keep` best of every row and of every column, in single precision."""
        side1, side2, beta = request.side1, request.side2, request.beta
        rows = Pools(len(side1), min(request.keep, len(side2)), request.floors[0])
        columns = Pools(len(side2), min(request.keep, len(side1)), request.floors[1])
        sums = None if beta is None else (PartitionSums(len(side1)), PartitionSums(len(side2)))
        for block, span1, span2 in _blocks(side1, side2, request.scoring):
            pools = rows.part(span1), columns.part(span2)
            keeps = rows.keep, columns.keep
            self.kernels.merge(block, span1.start, span2.start, *pools, *keeps, self.n_threads)
            if sums is not None:
                parts = sums[0].part(span1), sums[1].part(span2)
                self.kernels.partition(block, *pools, *keeps, *parts, beta, self.n_threads)
            request.step(block[0].size)
        for line_pools in (rows, columns):
            self.kernels.sort(line_pools.part(slice(None)), line_pools.keep, self.n_threads)
        logs = None if sums is None or beta is None else (sums[0].log(beta), sums[1].log(beta))
        return SearchResult(rows.candidates(), columns.candidates(), logs)

    def partition(self, request: SearchRequest) -> tuple[np.ndarray, np.ndarray]:
        """float64 [n1] and [n2]: the log-partition sums of a request that has a β, and nothing else."""
        found = self.search(replace(request, keep=1, floors=(None, None))).log_partition
        assert found is not None, "a request with beta has partition sums"
        return found


def _blocks(side1: Embeddings, side2: Embeddings, scoring: Scoring) -> Iterator[tuple[Block, slice, slice]]:
    """(inner products, row and column scales, row and column offsets) of one block after the other, float32.

    One piece of memory serves all blocks: each is overwritten by the next. The products are always NumPy's: their last
    bits must not depend on what else is loaded, or on which library was the faster one in a trial.
    """
    scale1, scale2 = scoring.scale1 * side1.block_norms, scoring.scale2 * side2.block_norms
    scale1, scale2, offset1, offset2 = (
        values.astype(np.float32) for values in (scale1, scale2, scoring.offset1, scoring.offset2)
    )
    buffer = np.empty(min(BLOCK_ROWS, len(side1)) * min(BLOCK_COLUMNS, len(side2)), dtype=np.float32)
    for begin1 in range(0, len(side1), BLOCK_ROWS):
        span1 = slice(begin1, min(begin1 + BLOCK_ROWS, len(side1)))
        left = side1.block(span1.start, span1.stop)
        for begin2 in range(0, len(side2), BLOCK_COLUMNS):
            span2 = slice(begin2, min(begin2 + BLOCK_COLUMNS, len(side2)))
            right = side2.block(span2.start, span2.stop)
            values = buffer[: len(left) * len(right)].reshape(len(left), len(right))
            np.matmul(left, right.T, out=values)
            yield (values, scale1[span1], scale2[span2], offset1[span1], offset2[span2]), span1, span2


def describe_blas() -> str:
    """What `python -m stea_fast info` says of the matrix products."""
    config = getattr(np.__config__, "CONFIG", {})  # of NumPy 1.25 and later
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return " ".join(["of NumPy:", blas.get("name", "unknown"), blas.get("version", "")]).rstrip()
