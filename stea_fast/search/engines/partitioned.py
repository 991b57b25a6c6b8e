"""Approximate search by cells: what is near lies in the same part of the space, and only there it is looked for.

Unit vectors are assigned to their nearest centroids, a few cells each, on both sides alike. A pair is seen if the two
have a cell in common, and within a cell the search is exact. With C cells and p of them for every vector about p²/C of
all pairs are looked at. `topk` measures on a sample which share of the true neighbours was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from stea_fast._backends.dense import dense_product
from stea_fast._executors.base import Executor
from stea_fast._executors.spread import spread
from stea_fast._util.threads import equal_blocks, in_order, run_blocks, thread_count
from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.search.engines.cpu import CpuEngine
from stea_fast.search.exact import SearchRequest, SearchResult
from stea_fast.search.ranked import CandidateEngine, Ranked

CELLS_OF_A_VECTOR = 3
ROOTS_PER_CELL = 4.0  # with n vectors on the larger side there are √n / 4 cells
SAMPLE_PER_CELL = 64  # vectors by which a centroid is found
ITERATIONS = 8
ROWS_AT_ONCE = 4096
SEED = 20  # of the sample: the same sides always have the same cells
Cell = tuple[np.ndarray, np.ndarray]  # which vectors of either side it has


class PartitionedEngine(CandidateEngine):
    """Searches cell by cell, each with an exact engine."""

    name = "partitioned"
    is_exact = False

    def __init__(
        self,
        inner: CandidateEngine,
        exact_engine: Callable[[int], CandidateEngine],
        n_threads: int = 1,
        executor: Executor | None = None,
    ) -> None:
        self.inner, self.exact_engine = inner, exact_engine
        self.n_threads, self.executor = n_threads, executor
        self._cells: Cells | None = None

    def search(self, request: SearchRequest) -> SearchResult:
        """Not used: `rank` asks the exact engine cell by cell."""
        return self.inner.search(request)

    def products(self, queries: Embeddings, keys: Embeddings, indices: np.ndarray, distance: bool) -> np.ndarray:
        """float64 [n, k]: inner products, or squared distances, of every row with its candidates."""
        return self.inner.products(queries, keys, indices, distance)

    def rank(self, request: SearchRequest, known: Ranked | None = None) -> Ranked:
        """The best of both directions among the pairs that share a cell; zero vectors are in none."""
        sides = request.side1, request.side2
        if self._cells is None or self._cells.sides != sides:
            self._cells = Cells(sides, self.n_threads)
        best = Best(len(sides[0]), request.keep), Best(len(sides[1]), request.keep)
        seen, total = 0.0, float(len(sides[0])) * len(sides[1])
        members = self._cells.members
        for (rows, columns), found in zip(members, self._ranked(request, members), strict=True):
            best[0].offer(rows, columns, *found.forward)
            best[1].offer(columns, rows, *found.backward)
            share = len(rows) * len(columns) / self._cells.num_pairs * total
            seen += share
            request.step(share)
        request.step(max(total - seen, 0.0))
        return Ranked((best[0].indices, best[0].scores), (best[1].indices, best[1].scores))

    def _ranked(self, request: SearchRequest, members: list[Cell]) -> Iterator[Ranked]:
        """The best of both directions within every cell, in their order."""
        if self.executor is not None:
            shared = replace(request, step=_unseen)
            return spread(self.executor, _rank_cell, members, thread_count(None), shared, self.exact_engine)
        if isinstance(self.inner, CpuEngine):  # cells are small: a thread for each keeps more threads busy
            return in_order(lambda cell: _rank_cell(cell, 1, request, self.exact_engine), members, self.n_threads)
        return (self.inner.rank(_among(request, *cell)) for cell in members)


def _rank_cell(cell: Cell, n_threads: int, request: SearchRequest, exact_engine: Any) -> Ranked:
    """The work of a worker: what is best within a cell, and nothing that was only needed to find it."""
    return replace(exact_engine(n_threads).rank(_among(request, *cell)), candidates=None)


def _unseen(amount: float) -> None:
    """Whoever takes the results counts them."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Which vectors of both sides lie in which part of the space."""

    sides: tuple[Embeddings, Embeddings]
    n_threads: int = 1

    @cached_property
    def members(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For every cell with vectors of both sides, which these are, in increasing order."""
        centroids = self._centroids()
        inside = [_by_cell(side, centroids, self.n_threads) for side in self.sides]
        pairs = [(rows, columns) for rows, columns in zip(*inside, strict=True) if len(rows) and len(columns)]
        return pairs

    @property
    def num_pairs(self) -> float:
        """How many pairs are looked at, those that share several cells several times."""
        return float(sum(len(rows) * len(columns) for rows, columns in self.members))

    def _centroids(self) -> np.ndarray:
        """float32 [C, d], unit rows: spherical k-means of a sample of both sides."""
        count = _num_cells(max(map(len, self.sides)))
        rng = np.random.default_rng(SEED)
        sample = np.concatenate([_sample(side, rng, count * SAMPLE_PER_CELL // 2) for side in self.sides])
        if not len(sample):
            return np.zeros((1, self.sides[0].width), dtype=np.float32)
        centroids = sample[rng.permutation(len(sample))[:count]]
        for _ in range(ITERATIONS):
            nearest = dense_product(sample, centroids.T).argmax(axis=1)
            order = np.argsort(nearest, kind="stable")
            present, begins = np.unique(nearest[order], return_index=True)
            sums = np.add.reduceat(sample[order], begins, axis=0)
            centroids[present] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        return centroids


def _num_cells(size: int) -> int:
    return max(1, round(np.sqrt(size) / ROOTS_PER_CELL))


def share_seen(size: int) -> float:
    """About which share of all pairs is looked at where the larger side has so many vectors and cells are even."""
    return min(1.0, CELLS_OF_A_VECTOR**2 / _num_cells(size))


def _sample(side: Embeddings, rng: np.random.Generator, size: int) -> np.ndarray:
    """float32 [m, d]: some unit vectors of a side."""
    rows = np.flatnonzero(side.norms > 0)
    rows = np.sort(rng.permutation(rows)[:size])
    return _units(side, rows)


def _units(side: Embeddings, rows: np.ndarray) -> np.ndarray:
    scale = side.ops.divide(np.ones(len(rows)), side.norms[rows])[:, None]
    return (side.array[rows] * scale).astype(np.float32)


def _by_cell(side: Embeddings, centroids: np.ndarray, n_threads: int) -> list[np.ndarray]:
    """The vectors of every cell: each is in those of its nearest centroids."""
    count, several = len(centroids), min(CELLS_OF_A_VECTOR, len(centroids))
    rows = np.flatnonzero(side.norms > 0)
    cells = np.empty((len(rows), several), dtype=np.int32)

    def assign(begin: int, end: int) -> None:
        near = dense_product(_units(side, rows[begin:end]), centroids.T)
        cells[begin:end] = np.argpartition(-near, several - 1, axis=1)[:, :several]

    run_blocks(assign, equal_blocks(len(rows), ROWS_AT_ONCE), n_threads)
    order = np.argsort(cells.ravel(), kind="stable")
    bounds = np.searchsorted(cells.ravel()[order], np.arange(count + 1))
    members = np.repeat(rows, several)[order]
    return [members[begin:end] for begin, end in pairwise(bounds)]


def _among(request: SearchRequest, rows: np.ndarray, columns: np.ndarray) -> SearchRequest:
    """The same request for some vectors of both sides."""
    side1, side2, given = request.side1.of_rows(rows), request.side2.of_rows(columns), request.scoring
    means = None if given.means is None else (given.means[0][rows], given.means[1][columns])
    scoring = Scoring(
        given.metric, given.scale1[rows], given.scale2[columns], given.offset1[rows], given.offset2[columns], means
    )
    return replace(request, side1=side1, side2=side2, scoring=scoring, step=_unseen)


class Best:
    """The best candidates of every row so far: int32 and float64 [n, keep], -1 and -inf where there are none."""

    def __init__(self, size: int, keep: int) -> None:
        self.indices = np.full((size, keep), -1, dtype=np.int32)
        self.scores = np.full((size, keep), -np.inf)

    def offer(self, rows: np.ndarray, columns: np.ndarray, indices: np.ndarray, scores: np.ndarray) -> None:
        """Take in the candidates of some rows; `indices` [m, k] are places in `columns`."""
        keep = self.indices.shape[1]
        offered = np.where(indices >= 0, columns[indices], -1).astype(np.int32)
        offered, scores = offered[:, :keep], scores[:, :keep].copy()
        # A pair that met in another cell before is there already.
        scores[(offered[:, :, None] == self.indices[rows][:, None, :]).any(axis=2)] = -np.inf
        numbers = np.concatenate([self.indices[rows], offered], axis=1)
        values = np.concatenate([self.scores[rows], scores], axis=1)
        numbers[values == -np.inf] = -1
        order = np.argsort(-values, axis=1, kind="stable")[:, :keep]
        self.indices[rows] = np.take_along_axis(numbers, order, axis=1)
        self.scores[rows] = np.take_along_axis(values, order, axis=1)
