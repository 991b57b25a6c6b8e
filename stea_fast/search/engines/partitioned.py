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
from stea_fast._util.array_ops import NUMPY, Array, Ops
from stea_fast._util.threads import Blocks, equal_blocks, in_order, run_blocks, thread_count
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
Cell = tuple[Array, Array]  # which vectors of either side it has


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

    def products(self, queries: Embeddings, keys: Embeddings, indices: Array, distance: bool) -> Array:
        """float64 [n, k]: inner products, or squared distances, of every row with its candidates."""
        return self.inner.products(queries, keys, indices, distance)

    def rank(self, request: SearchRequest, known: Ranked | None = None) -> Ranked:
        """The best of both directions among the pairs that share a cell; zero vectors are in none."""
        sides = request.side1, request.side2
        if self._cells is None or self._cells.sides != sides:
            self._cells = Cells(sides, self.n_threads)
        best = Best(len(sides[0]), request.keep, sides[0].ops), Best(len(sides[1]), request.keep, sides[1].ops)
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
        """The best of both directions within every cell, in their order. Workers have CPUs: tensors stay here."""
        if self.executor is not None and isinstance(request.side1.array, np.ndarray):
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
    def members(self) -> list[Cell]:
        """For every cell with vectors of both sides, which these are, in increasing order."""
        centroids = self._centroids()
        inside = [_by_cell(side, centroids, self.n_threads) for side in self.sides]
        pairs = [(rows, columns) for rows, columns in zip(*inside, strict=True) if len(rows) and len(columns)]
        return pairs

    @property
    def num_pairs(self) -> float:
        """How many pairs are looked at, those that share several cells several times."""
        return float(sum(len(rows) * len(columns) for rows, columns in self.members))

    def _centroids(self) -> Array:
        """float32 [C, d], unit rows: spherical k-means of a sample of both sides."""
        count, ops = _num_cells(max(map(len, self.sides))), self.sides[0].ops
        rng = np.random.default_rng(SEED)
        sample = ops.chain([_sample(side, rng, count * SAMPLE_PER_CELL // 2) for side in self.sides])
        if not len(sample):
            return ops.full((1, self.sides[0].width), 0.0, "float32")
        centroids = sample[ops.positions(rng.permutation(len(sample))[:count])]
        for _ in range(ITERATIONS):
            nearest = ops.first_largest(matrix_product(sample, centroids.T))
            counts = ops.histogram(nearest, len(centroids))
            sums = ops.sums_of_runs(sample[ops.order(nearest)], counts)
            lengths = ops.at_least(ops.sqrt((sums * sums).sum(1)), 1e-12)[:, None]
            centroids = ops.where((counts > 0)[:, None], sums / lengths, centroids)
        return centroids


def _num_cells(size: int) -> int:
    return max(1, round(np.sqrt(size) / ROOTS_PER_CELL))


def share_seen(size: int) -> float:
    """About which share of all pairs is looked at where the larger side has so many vectors and cells are even."""
    return min(1.0, CELLS_OF_A_VECTOR**2 / _num_cells(size))


def _sample(side: Embeddings, rng: np.random.Generator, size: int) -> Array:
    """float32 [m, d]: some unit vectors of a side."""
    rows = side.ops.nonzero(side.norms > 0)
    rows = rows[side.ops.positions(np.sort(rng.permutation(len(rows))[:size]))]
    return _units(side, rows)


def _units(side: Embeddings, rows: Array) -> Array:
    norms = side.norms[rows]
    return side.ops.single(side.array[rows] * side.ops.divide(norms**0, norms)[:, None])


def _by_cell(side: Embeddings, centroids: Array, n_threads: int) -> list[Array]:
    """The vectors of every cell: each is in those of its nearest centroids."""
    count, several, ops = len(centroids), min(CELLS_OF_A_VECTOR, len(centroids)), side.ops
    rows = ops.nonzero(side.norms > 0)
    cells = ops.full((len(rows), several), -1, "int32")

    def assign(begin: int, end: int) -> None:
        near = matrix_product(_units(side, rows[begin:end]), centroids.T)
        cells[begin:end] = ops.int32(ops.some_largest(near, several))

    over_blocks(assign, equal_blocks(len(rows), ROWS_AT_ONCE), n_threads if isinstance(rows, np.ndarray) else None)
    flat = cells.reshape(-1)
    members = rows[ops.order(flat) // several]
    bounds = ops.offsets(ops.histogram(flat, count)).tolist()
    return [members[begin:end] for begin, end in pairwise(bounds)]


def over_blocks(task: Callable[[int, int], object], blocks: Blocks, n_threads: int | None) -> None:
    """Call `task(begin, end)` for every range; None for tensors, whose device is current in this thread only."""
    if n_threads is not None:
        run_blocks(task, blocks, n_threads)
        return
    for begin, end in blocks:
        task(begin, end)


def matrix_product(a: Array, b: Array) -> Array:
    """a times b, float32: by the kernel whose bits others rely on, or where the tensors lie."""
    return dense_product(a, b) if isinstance(a, np.ndarray) else a @ b


def _among(request: SearchRequest, rows: Array, columns: Array) -> SearchRequest:
    """The same request for some vectors of both sides."""
    side1, side2, given = request.side1.of_rows(rows), request.side2.of_rows(columns), request.scoring
    means = None if given.means is None else (given.means[0][rows], given.means[1][columns])
    scoring = Scoring(
        given.metric, given.scale1[rows], given.scale2[columns], given.offset1[rows], given.offset2[columns], means
    )
    return replace(request, side1=side1, side2=side2, scoring=scoring, step=_unseen)


class Best:
    """The best candidates of every row so far, -1 and -inf where there are none.

    NumPy: int32 and float64 [n, keep]. Tensors have ids of int64, with which they can be indexed.
    """

    def __init__(self, size: int, keep: int, ops: Ops = NUMPY) -> None:
        self.ops = ops
        self.indices = ops.full((size, keep), -1, "int32" if ops is NUMPY else "int64")
        self.scores = ops.full((size, keep), -np.inf)

    def offer(self, rows: Array, columns: Array, indices: Array, scores: Array) -> None:
        """Take in the candidates of some rows; `indices` [m, k] are places in `columns`."""
        keep, ops = self.indices.shape[1], self.ops
        offered = ops.cast(ops.where(indices >= 0, columns[indices], -1), self.indices.dtype)[:, :keep]
        # A pair that met in another cell before is there already.
        known = (offered[:, :, None] == self.indices[rows][:, None, :]).any(2)
        values = ops.join(self.scores[rows], ops.where(known, -np.inf, scores[:, :keep]))
        numbers = ops.where(ops.is_minus_inf(values), -1, ops.join(self.indices[rows], offered))
        order = ops.order(-values)[:, :keep]
        self.indices[rows], self.scores[rows] = ops.take(numbers, order), ops.take(values, order)
