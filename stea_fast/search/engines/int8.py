"""Exact search by products of 8-bit whole numbers: the first choice on processors that multiply them fast."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import stea_fast._core as _core
from stea_fast._backends.native import int8_tier, tier
from stea_fast._util.progress import Step
from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.search.engines import native_merge
from stea_fast.search.engines.cpu import CpuEngine
from stea_fast.search.exact import SearchRequest, search_rows
from stea_fast.search.ranked import Ranked

LEAST_WORK = 2e9  # multiplications below which preparing costs more than it saves
MOST_WIDTH = 1 << 16  # the sums of wider products do not fit in 31 bits
MOST_KEPT = 256  # more candidates of a row need longer lists than are kept
MOST_UNEVEN = 1e9  # largest weight or offset over the smallest, so that thresholds fit in single precision
ROWS_AT_ONCE = 256  # of those that are searched in double precision
PANEL_BYTES = 96 << 20  # of rounded numbers at a time
LEAST_SCORED = 256  # pairs of a row that are scored one by one, at least, before it is searched in another way
MOST_EXPONENT = 40.0  # of the largest term of a partition sum: far from what single precision can hold
MOST_SPREAD = 60.0  # of the exponents of the largest terms of all rows and columns
DEVIATION = (2 / 12) ** 0.5 / 46000  # of a cosine, by the rounding of both vectors to 16 bits
MOST_DEVIATION = 3e-4  # of an exponent: sums are then right to 1e-3

ALL = slice(None)
Arrays = tuple[np.ndarray, np.ndarray]


def describe() -> str:
    """What `python -m stea_fast info` says of the search."""
    chosen, known = int8_tier(), ", ".join(_core.int8_tiers(True))
    if chosen:
        return f"8-bit products, tier {chosen} of {known}; float32 blocks for small or uneven inputs"
    return "float32 blocks (" + ("STEA_TIER is set)" if known else "this CPU has no instruction for 8-bit products)")


class Int8Engine(CpuEngine):
    """The CPU engine with compiled kernels: by whole numbers where they are faster, by blocks of float32 otherwise."""

    def __init__(self, n_threads: int) -> None:
        super().__init__(native_merge, n_threads)
        self._search: Int8Search | None = None

    def rank(self, request: SearchRequest, known: Ranked | None = None) -> Ranked:
        """The `keep` best of both directions, exactly."""
        tier_name = int8_tier()
        if tier_name is None or not can_rank(request, known):
            return super().rank(request, known)
        sides = request.side1, request.side2
        if self._search is None or self._search.sides != sides:
            self._search = Int8Search(*sides, self.n_threads, tier_name)
        return self._search.rank(request, known)


@dataclass(frozen=True, eq=False)
class View:
    """One direction of a search: the scoring is seen from the queries, and `values` are their numbers."""

    number: int
    queries: Embeddings
    keys: Embeddings
    scoring: Scoring
    values: np.ndarray

    def reached(self, scores: np.ndarray, rows: slice | np.ndarray = ALL) -> np.ndarray:
        """float64 [n]: what the best of some rows reach at least, from the scores [n, k] found so far."""
        least = -self.scoring.magnitude(self.queries, self.keys)[rows]
        return np.maximum(scores[:, -1], least) - 4.0 * self.scoring.quantum(self.queries, self.keys)[rows]


@dataclass(frozen=True, eq=False)
class Lines:
    """The rows, or the columns, of a pass.

    Attributes:
        floors: what the best scores of every line reach, if anything is known.
        excluded: 1 for what is nobody's candidate.
        rows: which of the queries take part.
    """

    view: View
    floors: np.ndarray | None
    excluded: np.ndarray | None
    rows: slice | np.ndarray

    def side(self) -> _core.Int8Side:
        """As the kernel takes them."""
        view, rows = self.view, self.rows
        means = None if view.scoring.means is None else view.scoring.means[0][rows]
        return _core.Int8Side(
            view.values[rows], view.queries.norms[rows], _weights(view.scoring, view.queries)[rows],
            view.scoring.offset1[rows], view.scoring.quantum(view.queries, view.keys)[rows], means,
            None if self.floors is None else self.floors[rows], None if self.excluded is None else self.excluded[rows],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Found:
    """The best of some rows; which of them are unsettled; and their partition sums, if asked for."""

    indices: np.ndarray
    scores: np.ndarray
    unsettled: np.ndarray
    sums: np.ndarray

    def beside(self, later: Found, first: int, keep: int) -> Found:
        """With what was found among other keys, which are numbered from `first`."""
        numbers = np.where(later.indices >= 0, later.indices + first, -1)
        scores = np.concatenate([self.scores, later.scores], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :keep]
        indices = np.take_along_axis(np.concatenate([self.indices, numbers], axis=1), order, axis=1)
        unsettled, sums = self.unsettled | later.unsettled, self.sums + later.sums
        return Found(indices, np.take_along_axis(scores, order, axis=1), unsettled, sums)


@dataclass(frozen=True, eq=False)
class Pass:
    """How all pairs are looked at; see `Int8Search` in csrc/bindings."""

    keep: int
    bits: int
    certain: bool
    most_scored: int
    beta: float | None = None
    anchor: float = 0.0
    step: Step = lambda amount: None


class Int8Search:
    """Exact rankings of one pair of sides; the rounded numbers of the last columns are kept between calls."""

    def __init__(self, side1: Embeddings, side2: Embeddings, n_threads: int, tier_name: str) -> None:
        self.sides = side1, side2
        self.n_threads, self.tier = n_threads, tier_name
        self.values = _same_kind(side1.array, side2.array)
        self._panels: tuple[tuple[int, int, slice], _core.Int8Panels] | None = None

    def panels(self, number: int, bits: int, span: slice) -> _core.Int8Panels:
        """The rounded numbers of some rows of a side, 0 or 1; the others are dropped."""
        key = number, bits, span
        if self._panels is None or self._panels[0] != key:
            self._panels = None
            values, norms = self.values[number][span], self.sides[number].norms[span]
            self._panels = key, _core.Int8Panels(values, norms, bits, self.n_threads, self.tier)
        return self._panels[1]

    def rank(self, request: SearchRequest, known: Ranked | None) -> Ranked:
        """The `keep` best of both directions."""
        scoring, keep, beta = request.scoring, request.keep, request.beta
        views = (
            View(0, *self.sides, scoring, self.values[0]),
            View(1, *self.sides[::-1], scoring.swapped(), self.values[1]),
        )
        lines = [Lines(view, _floor(known, view, keep), _redundant(view.queries, keep), ALL) for view in views]
        anchor = 0.0 if beta is None else _exponents(request, known)[1] - MOST_EXPONENT
        most_scored = max(LEAST_SCORED, len(self.sides[1]) // 64)
        how = Pass(keep, 8 if beta is None else 16, False, most_scored, beta, anchor, request.step)
        found = self._search(lines[0], lines[1], how)
        forward, backward = (
            self._complete(view, lines[1 - number], found[number], keep) for number, view in enumerate(views)
        )
        logs = None if beta is None else (np.log(found[0].sums) + anchor, np.log(found[1].sums) + anchor)
        return Ranked(forward, backward, logs)

    def _search(self, rows: Lines, columns: Lines, how: Pass) -> tuple[Found, Found]:
        """Both directions, by one look at all pairs: as many columns at a time as may be kept in memory."""
        number, count = columns.view.number, len(columns.view.queries)
        size = max(1, PANEL_BYTES // (self.sides[0].width * how.bits // 8))
        keep, of_columns, of_rows = min(how.keep, count), [], None
        for begin in range(0, count, size):
            span = slice(begin, min(begin + size, count))
            found, of_span = self._search_among(
                self.panels(number, how.bits, span), rows, replace(columns, rows=span), how
            )
            of_columns.append(of_span)
            of_rows = found if of_rows is None else of_rows.beside(found, begin, keep)
            rows = _raised(rows, of_rows.scores) if span.stop < count and of_rows.scores.shape[1] == keep else rows
        assert of_rows is not None
        return of_rows, Found(*(np.concatenate(parts) for parts in zip(*of_columns, strict=True)))

    def _search_among(
        self, panels: _core.Int8Panels, rows: Lines, columns: Lines, how: Pass
    ) -> tuple[Found, tuple[np.ndarray, ...]]:
        """The same among some columns, whose part of the result is as the kernel gives it."""
        scoring = rows.view.scoring
        search = _core.Int8Search(
            panels, rows.side(), columns.side(), scoring.metric, how.keep, how.beta, how.anchor,
            how.certain, how.most_scored, self.n_threads, tier(),
        )  # fmt: skip
        of_columns = search.of_columns()
        while done := search.advance():
            how.step(done * len(of_columns[0]))
        search.settle_columns()
        return Found(*search.of_rows()), of_columns

    def _complete(self, view: View, keys: Lines, found: Found, keep: int) -> Arrays:
        """Settles the rows that are left; pads to `keep`."""
        indices, scores, kept = found.indices, found.scores, found.indices.shape[1]
        rows = np.flatnonzero(found.unsettled)
        if len(rows):
            # By the certain bounds of 16 bits. The rows are nobody's candidates: the columns have been searched.
            floors, nobodys = np.zeros(len(view.queries)), np.ones(len(view.queries), dtype=np.uint8)
            floors[rows] = view.reached(scores[rows], rows)
            some, all_keys = Lines(view, floors, nobodys, rows), replace(keys, floors=np.zeros(len(view.keys)))
            most_scored = max(LEAST_SCORED, len(view.keys) // 8)
            again, _ = self._search(some, all_keys, Pass(kept, 16, True, most_scored))
            indices[rows], scores[rows] = again.indices, again.scores
            rows = rows[again.unsettled != 0]
        _search_zeros(view, indices, scores)
        rows = rows[np.argsort(view.queries.norms[rows], kind="stable")]  # equal rows side by side, in one block
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            some_rows = rows[begin : begin + ROWS_AT_ONCE]
            indices[some_rows], scores[some_rows] = search_rows(some_rows, view.queries, view.keys, view.scoring, kept)
        missing = keep - kept
        return view.queries.ops.pad(indices, missing, -1), view.queries.ops.pad(scores, missing, -np.inf)


def _raised(rows: Lines, scores: np.ndarray) -> Lines:
    """With floors by the scores found so far."""
    reached = rows.view.reached(scores, rows.rows)
    floors = np.full(len(rows.view.queries), -np.inf) if rows.floors is None else rows.floors.copy()
    floors[rows.rows] = np.maximum(floors[rows.rows], reached)
    return replace(rows, floors=floors)


def _search_zeros(view: View, indices: np.ndarray, scores: np.ndarray) -> None:
    """Zero vectors, in place: those with the same mean have the same scores."""
    rows = np.flatnonzero(view.queries.norms == 0)
    if len(rows) == 0:
        return
    means = np.zeros(len(rows)) if view.scoring.means is None else view.scoring.means[0][rows]
    _, first, kind = np.unique(means, return_index=True, return_inverse=True)
    best = search_rows(rows[first], view.queries, view.keys, view.scoring, indices.shape[1])
    indices[rows], scores[rows] = best[0][kind], best[1][kind]


def can_rank(request: SearchRequest, known: Ranked | None) -> bool:
    """Whether these sides are large and even enough, and partition sums would be right to 1e-3."""
    side1, side2, scoring = request.side1, request.side2, request.scoring
    work = float(len(side1)) * len(side2) * side1.width
    if work < LEAST_WORK or side1.width > MOST_WIDTH or request.keep > MOST_KEPT:
        return False
    weights = _weights(scoring, side1), _weights(scoring.swapped(), side2)
    largest = [float(values.max()) for values in weights]
    if min(largest) == 0.0:
        return False
    offsets = max(float(abs(scoring.offset1).max()), float(abs(scoring.offset2).max()))
    uneven = max(top / float(values[values > 0].min()) for top, values in zip(largest, weights, strict=True))
    if uneven > MOST_UNEVEN or offsets > MOST_UNEVEN * largest[0] * largest[1]:
        return False
    if request.beta is None:
        return True
    lowest, highest = _exponents(request, known)
    return highest - lowest <= MOST_SPREAD and request.beta * largest[0] * largest[1] * DEVIATION <= MOST_DEVIATION


def _exponents(request: SearchRequest, known: Ranked | None) -> tuple[float, float]:
    """β times bounds of the best score of every row and column: below the least of them, and above the largest."""
    side1, side2, scoring, beta = request.side1, request.side2, request.scoring, request.beta or 0.0
    if known is not None and scoring.means is not None:
        floors = [
            np.where(known_best[1] > -np.inf, 2.0 * known_best[1] - means[:, None], -np.inf)[:, 0]
            for known_best, means in zip((known.forward, known.backward), scoring.means, strict=True)
        ]
        return (
            beta * float(min(floors[0].min() - scoring.means[1].max(), floors[1].min() - scoring.means[0].max())),
            beta * float(floors[0].max() - scoring.means[1].min()),
        )
    reach = float(_weights(scoring, side1).max() * _weights(scoring.swapped(), side2).max())
    return (
        beta * (-reach - float(scoring.offset1.max() + scoring.offset2.max())),
        beta * (reach - float(scoring.offset1.min() + scoring.offset2.min())),
    )


def _same_kind(array1: np.ndarray, array2: np.ndarray) -> Arrays:
    """Contiguous, and both float32 or both float64: no number changes."""
    dtype = np.result_type(array1.dtype, array2.dtype, np.float32)
    return np.ascontiguousarray(array1, dtype=dtype), np.ascontiguousarray(array2, dtype=dtype)


def _weights(scoring: Scoring, side: Embeddings) -> np.ndarray:
    """float64 [n]: what the cosine is multiplied with, as far as it depends on the first side."""
    return scoring.scale1 * side.norms


def _redundant(side: Embeddings, keep: int) -> np.ndarray | None:
    """uint8 [n]: 1 for rows of which `keep` equal ones come before: ties go to those."""
    by_norm = np.argsort(side.norms, kind="stable")
    _, group, sizes = np.unique(side.norms, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(sizes[group] > keep)
    if len(rows) == 0:
        return None
    _, kind = side.ops.distinct(side.array[rows])
    order = np.argsort(kind, kind="stable")
    begins = np.r_[0, np.flatnonzero(np.diff(kind[order])) + 1]
    place = np.arange(len(rows)) - np.repeat(begins, np.diff(np.r_[begins, len(rows)]))
    redundant = np.zeros(len(by_norm), dtype=np.uint8)
    redundant[rows[order[place >= keep]]] = 1
    return redundant


def _floor(known: Ranked | None, view: View, keep: int) -> np.ndarray | None:
    """float64 [n]: what the `keep`-th best score of every row reaches, from the ranking by another scoring."""
    if known is None:
        return None
    indices, similarities = known.forward if view.number == 0 else known.backward
    if indices.shape[1] < keep or (indices[:, keep - 1] < 0).any():
        return None
    rows = np.arange(len(indices))[:, None]
    scores = np.where(indices >= 0, view.scoring.final(similarities, rows, indices), -np.inf)
    least = -np.partition(-scores, keep - 1, axis=1)[:, keep - 1]
    return np.ascontiguousarray(least - 4.0 * view.scoring.quantum(view.queries, view.keys))
