"""The Numba backend: works wherever Numba does. Contracts as in `reference.py`.

Kernels release the GIL and run on a range of rows each; a thread pool spreads ranges of about equal
numbers of edges, so there is no OpenMP or TBB runtime beside those of torch and FAISS.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np

from stea_fast._backends import numba_counts, numba_evidence, numba_pairs, numba_proposals
from stea_fast._backends.counts import RelationCounts, scale_bits, sum_by_key
from stea_fast._backends.counts import containment as containment
from stea_fast._backends.witnesses import by_neighbour
from stea_fast._util.sparse import padded_rows
from stea_fast.data.graph import KG
from stea_fast.types import Beliefs, RelationAlignment

BLOCKS_PER_THREAD = 16
EDGES_PER_BLOCK = 20_000  # Ctrl-C waits for the blocks that are running
pairs = numba_pairs


class Strengths(NamedTuple):
    """Sparse strengths by (r, r') and by (r', r): indptr, indices, [nnz, 2] values, and the defaults."""

    forward: tuple[np.ndarray, ...]
    backward: tuple[np.ndarray, ...]


def describe() -> str:
    """What `python -m stea_fast info` says of this backend."""
    return f"Numba {numba.__version__}; the first call compiles"


def strengths(relations: RelationAlignment, kg1: KG, kg2: KG) -> Strengths:
    """Both orders of the strengths, so that either direction searches rows of its own relations."""
    fun1, fun2 = kg1.inverse_functionality, kg2.inverse_functionality
    sub12, sub21 = relations.sub12.tocoo(), relations.sub21.tocoo()
    width = len(fun2)
    keys12 = sub12.row.astype(np.int64) * width + sub12.col
    keys21 = sub21.col.astype(np.int64) * width + sub21.row
    keys = np.union1d(keys12, keys21)
    r, r2 = np.divmod(keys, width)
    values = np.zeros((len(keys), 2), dtype=np.float32)
    values[np.searchsorted(keys, keys21), 0] = sub21.data
    values[np.searchsorted(keys, keys12), 1] = sub12.data
    values[:, 0] *= fun1[r]
    values[:, 1] *= fun2[r2]
    default = np.float32(relations.default)
    by_target = np.lexsort((r, r2))
    return Strengths(
        _rows(r, r2, values, len(fun1), default * fun1, default * fun2),
        _rows(r2[by_target], r[by_target], values[by_target], len(fun2), default * fun2, default * fun1),
    )


def _rows(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, size: int, *defaults: np.ndarray) -> Any:
    indptr = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=size), out=indptr[1:])
    return (indptr, columns.astype(np.int32), values, *defaults)


def _over_rows(
    graph: KG, rows: tuple[int, int], n_threads: int, task: Callable[[int, int], Any]
) -> list[tuple[int, Any]]:
    """Run `task(begin, end)` over blocks of rows; returns (begin, result) in order."""
    begin, end = rows
    cost = graph.indptr[begin : end + 1] + np.arange(end - begin + 1)
    blocks = min(max(end - begin, 1), max(BLOCKS_PER_THREAD * n_threads, int(cost[-1] - cost[0]) // EDGES_PER_BLOCK))
    cuts = begin + np.searchsorted(cost, np.linspace(cost[0], cost[-1], blocks + 1)[1:-1])
    bounds = np.unique(np.concatenate([[begin], cuts, [end]])).tolist()
    pool = ThreadPoolExecutor(n_threads)
    try:
        futures = [pool.submit(task, a, b) for a, b in pairwise(bounds)]
        return [(a, future.result()) for a, future in zip(bounds, futures, strict=False)]
    finally:  # on Ctrl-C the blocks not yet begun are dropped
        pool.shutdown(wait=False, cancel_futures=True)


def evidence(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, strengths: Strengths,
    *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> np.ndarray:  # fmt: skip
    """L(e, e') for every row e and candidate e'."""
    uncounted = np.zeros((len(candidates), 0), dtype=np.int32)
    given = source, target, candidates, beliefs, strengths
    return _evidence(*given, uncounted, forward=forward, rows=rows, n_threads=n_threads, witnesses=witnesses)


def evidence_and_witnesses(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, strengths: Strengths,
    *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """L(e, e') and the number of neighbour pairs that add to it."""
    count = np.zeros(candidates.shape, dtype=np.int32)
    given = source, target, candidates, beliefs, strengths
    return _evidence(*given, count, forward=forward, rows=rows, n_threads=n_threads, witnesses=witnesses), count


def evidence_of_pairs(
    source: KG, target: KG, indptr: np.ndarray, columns: np.ndarray, beliefs: Beliefs, strengths: Strengths,
    *, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """L(e, e') of sparse pairs, and the number of neighbour pairs that add to it."""
    candidates, places = padded_rows(indptr, columns, -1)
    found, number = evidence_and_witnesses(
        source, target, candidates, beliefs, strengths, forward=True, rows=rows, n_threads=n_threads,
        witnesses=witnesses,
    )  # fmt: skip
    return found[places], number[places]


def _evidence(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, strengths: Strengths, count: np.ndarray,
    *, forward: bool, rows: tuple[int, int], n_threads: int, witnesses: str,
) -> np.ndarray:  # fmt: skip
    """L(e, e'); also fills `count`, unless it has no columns."""
    out = np.zeros(candidates.shape, dtype=np.float32)
    strongest = by_neighbour(witnesses)
    table = strengths.forward if forward else strengths.backward

    def task(begin: int, end: int) -> None:
        span = slice(begin - rows[0], end - rows[0])
        numba_evidence.evidence(
            source.indptr, source.edges, target.indptr, target.edges, candidates[span], beliefs.indptr,
            beliefs.targets, beliefs.weights, *table, strongest, begin, end, out[span], count[span],
        )  # fmt: skip

    _over_rows(source, rows, n_threads, task)
    return out


def blanket(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, belief_evidence: np.ndarray,
    strengths: Strengths, *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> np.ndarray:  # fmt: skip
    """The neighbours' factors of the Markov blanket."""
    out = np.zeros(candidates.shape, dtype=np.float32)
    strongest = by_neighbour(witnesses)
    table = strengths.forward if forward else strengths.backward

    def task(begin: int, end: int) -> None:
        span = slice(begin - rows[0], end - rows[0])
        numba_evidence.blanket(
            source.indptr, source.edges, target.indptr, target.edges, candidates[span], beliefs.indptr,
            beliefs.targets, beliefs.weights, belief_evidence, *table, source.num_relations,
            target.num_relations, strongest, begin, end, out[span],
        )  # fmt: skip

    _over_rows(source, rows, n_threads, task)
    return out


def proposals(
    source: KG, target: KG, beliefs: Beliefs, strengths: Strengths, open_rows: np.ndarray, open_targets: np.ndarray,
    *, k: int, budget: int, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The k targets of every row for which its neighbours' beliefs speak most."""
    indices = np.full((rows[1] - rows[0], k), -1, dtype=np.int32)
    evidence = np.zeros(indices.shape, dtype=np.float32)
    strongest = by_neighbour(witnesses)
    table = strengths.forward if forward else strengths.backward

    def task(begin: int, end: int) -> None:
        span = slice(begin - rows[0], end - rows[0])
        numba_proposals.proposals(
            source.indptr, source.edges, target.indptr, target.edges, beliefs.indptr, beliefs.targets, beliefs.weights,
            *table, target.num_relations, open_rows, open_targets, budget, strongest, begin, end, indices[span],
            evidence[span],
        )  # fmt: skip

    _over_rows(source, rows, n_threads, task)
    return indices, evidence


def changes_around(
    source: KG, shares: np.ndarray, changes: np.ndarray, moved: np.ndarray, weights: np.ndarray,
    *, rows: tuple[int, int], n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """How much of what the neighbours of every row say has changed."""
    out = np.empty(rows[1] - rows[0], dtype=np.float32)
    numba_proposals.changes_around(source.indptr, source.edges, shares, changes, moved, weights, *rows, out)
    return out


def relation_counts(
    source: KG, target: KG, beliefs: Beliefs, *, rows: tuple[int, int], n_threads: int = 1
) -> RelationCounts:
    """num(r, r') and den(r) over the triples whose head is in the range of rows."""
    bits = scale_bits(source)
    den = np.zeros(source.num_relations, dtype=np.int64)

    def task(begin: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        keys, values, part = numba_counts.relation_counts(
            source.indptr, source.edges, target.indptr, target.edges, beliefs.indptr, beliefs.targets,
            beliefs.weights, source.num_relations, target.num_relations, 2.0**bits, begin, end,
        )  # fmt: skip
        return (*sum_by_key(keys, values), part)

    parts = [result for _, result in _over_rows(source, rows, n_threads, task)]
    for _, _, part in parts:
        den += part
    none = np.zeros(0, dtype=np.int64)
    keys = np.concatenate([none, *(keys for keys, _, _ in parts)])
    values = np.concatenate([none, *(values for _, values, _ in parts)])
    return RelationCounts.observed(*sum_by_key(keys, values), den, bits)
