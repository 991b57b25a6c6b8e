"""From an engine's candidates to the exact result: double precision, and one order for ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stea_fast._util.progress import Step
from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.types import Array

EXTRA_CANDIDATES = 8  # candidates beyond those asked for; they settle nearly every row
BLOCK_BYTES = 1 << 25
Products = Callable[[Embeddings, Embeddings, Array, bool], Array]


@dataclass(frozen=True, eq=False)
class RowCandidates:
    """An engine's candidates of every row, best first: int and float32 [n, keep], -1 and -inf where there are none.

    What is not among them scored, in single precision, no more than the last one.
    """

    indices: Array
    scores: Array


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """What an engine is asked for.

    Attributes:
        keep: how many candidates of every row, and of every column.
        beta: if given, log-partition sums as well.
        step: to be called with the number of scores just seen.
        floors: float32 [n1] and [n2], scores that the `keep` best of every row, and of every column, are known to
            exceed: an engine may overlook what is below. None where nothing is known.
    """

    side1: Embeddings
    side2: Embeddings
    scoring: Scoring
    keep: int
    beta: float | None
    step: Step
    floors: tuple[Array | None, Array | None] = (None, None)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """One pass over all similarities: candidates of both directions, and log-partition sums if asked for."""

    forward: RowCandidates
    backward: RowCandidates
    log_partition: tuple[Array, Array] | None = None


def exact_ranking(
    candidates: RowCandidates,
    queries: Embeddings,
    keys: Embeddings,
    scoring: Scoring,
    k: int,
    products: Products,
    *,
    settle: bool,
) -> tuple[Array, Array]:
    """Indices and float64 scores [n, k]: the k best of every row, ordered by (rounded score, index).

    With `settle`, rows in which single precision may have missed one of the best are searched again: the result is
    exact. Without, it is as good as what was found.
    """
    ops = queries.ops
    indices, scores = rescored(candidates.indices, queries, keys, scoring, products)
    kept = min(indices.shape[1], k)
    if settle and indices.shape[1] < len(keys):  # the others could be better where the last kept one is close
        margin = scores[:, kept - 1] - ops.double(candidates.scores[:, -1])
        unsettled = ops.nonzero(~(margin > 2.0 * scoring.tolerance(queries, keys)))
        unsettled = unsettled[ops.order(queries.norms[unsettled][None])[0]]  # equal rows side by side, in one block
        size = max(1, BLOCK_BYTES // (8 * queries.width))
        for begin in range(0, len(unsettled), size):
            rows = unsettled[begin : begin + size]
            indices[rows, :kept], scores[rows, :kept] = search_rows(
                rows, queries, keys, scoring, kept, reached=scores[rows, kept - 1]
            )
    missing = k - kept
    return ops.pad(indices[:, :kept], missing, -1), ops.pad(scores[:, :kept], missing, -float("inf"))


def rescored(
    indices: Array, queries: Embeddings, keys: Embeddings, scoring: Scoring, products: Products
) -> tuple[Array, Array]:
    """The same candidates with their rounded scores (-inf for none): by decreasing score, then by index."""
    ops = queries.ops
    product = products(queries, keys, indices, scoring.metric == "l2")
    rows = ops.arange(len(indices))[:, None]
    plain = -product if scoring.metric == "l2" else similarity(product, queries, keys, scoring, rows, indices)
    exact = ops.round(scoring.final(plain, rows, indices), scoring.quantum(queries, keys)[:, None])
    scores = ops.where(indices >= 0, exact, -float("inf"))
    by_index = ops.order(indices)
    indices, scores = ops.take(indices, by_index), ops.take(scores, by_index)
    by_score = ops.order(-scores)
    return ops.take(indices, by_score), ops.take(scores, by_score)


def similarity(
    product: Array, queries: Embeddings, keys: Embeddings, scoring: Scoring, rows: Array, columns: Array
) -> Array:
    """From inner products, for rows and columns that broadcast."""
    if scoring.metric == "l2":
        return 2.0 * product - queries.norms[rows] ** 2 - keys.norms[columns] ** 2
    if scoring.metric == "cosine":
        # Divided, not multiplied by inverses: equal vectors have the cosine 1, not almost 1.
        return queries.ops.divide(product, queries.norms[rows] * keys.norms[columns])
    return product


def floor_of(
    candidates: RowCandidates, queries: Embeddings, keys: Embeddings, scoring: Scoring, keep: int
) -> Array | None:
    """float32 [n]: with the candidates of another scoring, a bound below the `keep`-th best score of every row."""
    if candidates.indices.shape[1] < keep:
        return None
    ops = queries.ops
    rows = ops.arange(len(candidates.indices))[:, None]
    scores = ops.where(
        candidates.indices >= 0, scoring.final(ops.double(candidates.scores), rows, candidates.indices), -float("inf")
    )
    least = ops.take(scores, ops.order(-scores))[:, keep - 1]
    return ops.single(least - 2.0 * scoring.tolerance(queries, keys))


def search_rows(
    rows: Array, queries: Embeddings, keys: Embeddings, scoring: Scoring, k: int, reached: Array | None = None
) -> tuple[Array, Array]:
    """The k best of a few rows by their scores with everything, in double precision.

    `reached`: scores that the k-th best of every row is known to reach; nothing below them is looked at.

    Rows that are equal are searched once: it is where many entities look the same that single precision settles
    nothing, and these come here as copies of each other.
    """
    ops = queries.ops
    first, kind = _distinct_rows(rows, queries, scoring)
    rows = rows[first]
    left, quantum = queries.doubles(rows), scoring.quantum(queries, keys)[rows, None]
    # Two quanta: the known score was added up in another order, and may have been rounded to a neighbour.
    floor = -float("inf") if reached is None else reached[first][:, None] - 2.0 * quantum
    indices, scores = ops.positions(np.full((len(rows), k), -1)), ops.empty(len(rows), k)
    scores[:] = -float("inf")
    width = max(1, BLOCK_BYTES // (8 * max(len(rows), queries.width)))
    for begin in range(0, len(keys), width):
        columns = ops.arange(len(keys))[begin : begin + width]
        product = left @ keys.doubles(slice(begin, begin + width)).T
        plain = similarity(product, queries, keys, scoring, rows[:, None], columns)
        block = ops.round(scoring.final(plain, rows[:, None], columns), quantum)
        better = ops.nonzero(((block > scores[:, -1:]) & (block >= floor)).any(1))
        if len(better):
            joined = ops.join(scores[better], block[better])
            numbers = ops.join(indices[better], columns + 0 * indices[better][:, :1])
            order = ops.order(-joined)[:, :k]
            indices[better], scores[better] = ops.take(numbers, order), ops.take(joined, order)
    return indices[kind], scores[kind]


def _distinct_rows(rows: Array, queries: Embeddings, scoring: Scoring) -> tuple[Array, Array]:
    """Places in `rows` of one row of every kind, and the kind of every row: those of a kind have the same scores."""
    ops = queries.ops
    first, kind = ops.distinct(queries.array[rows])
    if scoring.means is None:
        return first, kind
    with_means = ops.empty(len(rows), 2)
    with_means[:, 0], with_means[:, 1] = kind, scoring.means[0][rows]
    return ops.distinct(with_means)


def gathered_products(queries: Embeddings, keys: Embeddings, indices: Array, distance: bool) -> Array:
    """float64 [n, keep]: inner products, or squared distances, of every row with its candidates."""
    out = queries.ops.empty(*indices.shape)
    rows = max(1, BLOCK_BYTES // (8 * queries.width * indices.shape[1]))
    for begin in range(0, len(indices), rows):
        span = slice(begin, begin + rows)
        left, right = queries.doubles(span), keys.doubles(indices[span])
        if distance:
            right -= left[:, None, :]
            out[span] = (right * right).sum(2)
        else:
            out[span] = (right @ left[:, :, None])[:, :, 0]
    return out
