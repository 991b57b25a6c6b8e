"""Texts as sparse vectors: every token weighs by how rare it is (TF-IDF), and all vectors have length 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stea_fast.values.sparse_kernels import CountedRows, kernels
from stea_fast.values.tokens import Tokens

ROWS_AT_ONCE = 100_000


@dataclass(frozen=True, eq=False)
class Vectors:
    """Sparse rows of at most unit length: tokens that the other side lacks count for the length and are left out.

    Attributes:
        indptr: Where every row begins, int64 [rows + 1].
        columns: The tokens, numbered from rare to frequent, int32 [nnz], increasing in every row.
        weights: Their weights, float32 [nnz], above 0.
        num_columns: The number of tokens.
    """

    indptr: np.ndarray
    columns: np.ndarray
    weights: np.ndarray
    num_columns: int

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Offsets, columns and weights."""
        return self.indptr, self.columns, self.weights

    def rows(self, chosen: np.ndarray) -> Vectors:
        """Some of the rows."""
        lengths = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return Vectors(indptr, self.columns[places], self.weights[places], self.num_columns)


def tfidf(tokens1: Tokens, tokens2: Tokens, n_threads: int) -> tuple[Vectors, Vectors]:
    """Weigh the tokens of two sides by log((1 + n) / (1 + rows with the token)) + 1, over the rows of both."""
    side1, side2, rows = kernels().token_counts(tokens1, tokens2, n_threads)
    num_rows = len(tokens1[1]) + len(tokens2[1]) - 2
    rarity = (np.log((1.0 + num_rows) / (1.0 + rows.sum(axis=1))) + 1.0).astype(np.float32)
    shared = (rows > 0).all(axis=1)
    return _weighted(side1, rarity, shared), _weighted(side2, rarity, shared)


def _weighted(counted: CountedRows, rarity: np.ndarray, shared: np.ndarray) -> Vectors:
    """The weights of the shared tokens; in place and by blocks, for the arrays may be gigabytes."""
    indptr, columns, weights = counted
    lengths = np.zeros(len(indptr) - 1, dtype=np.int64)
    end = 0
    for begin in range(0, len(lengths), ROWS_AT_ONCE):
        offsets = indptr[begin : begin + ROWS_AT_ONCE + 1]
        span, local = slice(offsets[0], offsets[-1]), offsets - offsets[0]
        token = columns[span]
        weight = (weights[span] * rarity[token]).astype(np.float64)
        row = np.repeat(np.arange(len(local) - 1), np.diff(local))
        weight /= np.sqrt(np.bincount(row, weights=weight**2, minlength=len(local) - 1))[row]
        keep = shared[token]
        lengths[begin : begin + len(local) - 1] = np.bincount(row[keep], minlength=len(local) - 1)
        size = int(keep.sum())
        columns[end : end + size], weights[end : end + size] = token[keep], weight[keep]
        end += size
    return Vectors(np.concatenate([[0], np.cumsum(lengths)]), columns[:end], weights[:end], len(rarity))
