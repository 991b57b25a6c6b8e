"""Counting tokens and the search by cosine: compiled (csrc/kernels/token_counts.h and cosine_topk.h), or by SciPy.

Both give the same bits. The SciPy versions serve where there is no compiled module, and are the reference of its tests.
"""

from __future__ import annotations

import logging
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from stea_fast import _backends

logger = logging.getLogger("stea_fast")

CountedRows = tuple[np.ndarray, np.ndarray, np.ndarray]  # indptr int64, tokens int32 and how often, float32
Weighted = tuple[np.ndarray, np.ndarray, np.ndarray]  # indptr int64, columns int32, weights float32
PRODUCTS_AT_ONCE = 20_000_000  # of the SciPy version
BUDGET = 2_000_000  # list entries that the compiled version walks for a query at most


def kernels() -> Any:
    """The functions `token_counts` and `cosine_topk` of the backend in use."""
    name = _backends.resolve().__name__.rpartition(".")[2]
    return _native() if name == "native" else SCIPY


@cache
def _native() -> Any:
    from stea_fast import _core

    def token_counts(
        tokens1: tuple[np.ndarray, np.ndarray], tokens2: tuple[np.ndarray, np.ndarray], n_threads: int
    ) -> tuple[CountedRows, CountedRows, np.ndarray]:
        *sides, rows = _core.token_counts(tokens1, tokens2, n_threads)
        first, second = _compact(tokens1[1], *sides[:3]), _compact(tokens2[1], *sides[3:])
        return first, second, rows.reshape(-1, 2)

    def cosine_topk(
        queries: Weighted, targets: Weighted, num_columns: int, k: int, min_score: float, n_threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        indices, scores, cut = _core.cosine_topk(queries, targets, num_columns, k, min_score, BUDGET, n_threads)
        if cut:
            logger.info("%d of %d texts are compared by their rarest parts only", cut, len(indices))
        return indices, scores

    return SimpleNamespace(token_counts=token_counts, cosine_topk=cosine_topk)


def _compact(offsets: np.ndarray, tokens: np.ndarray, counts: np.ndarray, lengths: np.ndarray) -> CountedRows:
    """Close the gaps behind the rows, where repeated tokens were."""
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    if indptr[-1] < len(tokens):
        used = np.zeros(len(tokens) + 1, dtype=np.int8)
        np.add.at(used, offsets[:-1], 1)
        np.add.at(used, offsets[:-1] + lengths, -1)
        keep = np.cumsum(used[:-1], dtype=np.int8).view(bool)
        tokens, counts = tokens[keep], counts[keep]
    return indptr, tokens, counts


def _scipy_token_counts(
    tokens1: tuple[np.ndarray, np.ndarray], tokens2: tuple[np.ndarray, np.ndarray], n_threads: int
) -> tuple[CountedRows, CountedRows, np.ndarray]:
    keys, number = np.unique(np.concatenate([tokens1[0], tokens2[0]]), return_inverse=True)
    sides, rows = [], np.zeros((len(keys), 2), dtype=np.int32)
    for side, (token, offsets) in enumerate(
        ((number[: len(tokens1[0])], tokens1[1]), (number[len(tokens1[0]) :], tokens2[1]))
    ):
        row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        pairs, counts = np.unique(row * max(len(keys), 1) + token, return_counts=True)
        row, token = np.divmod(pairs, max(len(keys), 1))
        rows[:, side] = np.bincount(token, minlength=len(keys))
        sides.append((row, token, counts, len(offsets) - 1))
    order = np.argsort(rows.sum(axis=1), kind="stable")  # keys are in order
    rank = np.empty(len(keys), dtype=np.int32)
    rank[order] = np.arange(len(keys))
    first, second = (_csr(row, rank[token], counts, size) for row, token, counts, size in sides)
    return first, second, rows[order]


def _csr(row: np.ndarray, token: np.ndarray, counts: np.ndarray, size: int) -> CountedRows:
    order = np.lexsort((token, row))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))])
    return indptr, token[order], counts[order].astype(np.float32)


def _scipy_cosine_topk(
    queries: Weighted, targets: Weighted, num_columns: int, k: int, min_score: float, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    from scipy.sparse import csr_array

    sides = []
    for indptr, columns, weights in (queries, targets):
        sides.append(csr_array((weights.astype(np.float64), columns, indptr), shape=(len(indptr) - 1, num_columns)))
    lists = sides[1].T.tocsr()
    cost = np.concatenate([[0], np.cumsum(np.diff(lists.indptr)[queries[1]])])[queries[0]]
    indices = np.full((len(queries[0]) - 1, k), -1, dtype=np.int32)
    scores = np.zeros(indices.shape, dtype=np.float32)
    begin = 0
    while begin < len(indices):
        end = max(begin + 1, int(np.searchsorted(cost, cost[begin] + PRODUCTS_AT_ONCE, "right")) - 1)
        end = min(end, len(indices))
        block = (sides[0][begin:end] @ lists).tocoo()
        score = block.data.astype(np.float32)
        row, target, score = (part[score >= min_score] for part in (*block.coords, score))
        order = np.lexsort((target, -score, row))
        row, target, score = row[order], target[order], score[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        best = place < k
        indices[begin + row[best], place[best]], scores[begin + row[best], place[best]] = target[best], score[best]
        begin = end
    return indices, scores


SCIPY = SimpleNamespace(token_counts=_scipy_token_counts, cosine_topk=_scipy_cosine_topk)
