"""Scores of any pairs, not only of the nearest."""

from __future__ import annotations

from typing import Any

import numpy as np

from stea_fast import _backends
from stea_fast._util.arrays import is_torch, like
from stea_fast._util.threads import thread_count
from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.search.exact import BLOCK_BYTES, similarity
from stea_fast.types import Array


class PairScorer:
    """The score of every (row, column), as `topk` defines it; holds on to the embeddings.

    Without the native kernel, products are computed in single precision where the norms allow it: a score here may
    differ from that of the search by rounding.
    """

    def __init__(self, side1: Embeddings, side2: Embeddings, scoring: Scoring) -> None:
        self._side1, self._side2, self._scoring = side1, side2, scoring

    @property
    def means(self) -> tuple[Array, Array] | None:
        """What CSLS subtracts from the similarities of each row and of each column; None without CSLS."""
        return self._scoring.means

    @property
    def device(self) -> Any:
        """The torch device of the embeddings, whose tensors it takes as well; None on the host."""
        return self._side1.array.device if is_torch(self._side1.array) else None

    def __call__(self, rows: Array, columns: Array) -> Array:
        """float64 [m]: the scores of m pairs, as an array of the kind of the ids."""
        side1, side2, ops = self._side1, self._side2, self._side1.ops
        i, j = ops.positions(rows), ops.positions(columns)
        similar = similarity(self._products(i, j), side1, side2, self._scoring, i, j)
        return like(rows, self._scoring.final(similar, i, j))

    def _products(self, i: Array, j: Array) -> Array:
        """float64 [m]: inner products of single pairs, by the native kernel where it can be had."""
        side1, side2, ops = self._side1, self._side2, self._side1.ops
        if isinstance(side1.array, np.ndarray) and _backends.resolve().__name__.endswith(".native"):
            from stea_fast.search.engines.native_merge import pair_products

            found = pair_products(side1, side2, i, j, thread_count(None))
            if found is not None:
                return found
        exact = ops.single if side1.is_balanced and side2.is_balanced else ops.double
        out = ops.empty(len(i), 1)[:, 0]
        step = max(1, BLOCK_BYTES // (8 * side1.width))  # pairs whose vectors are copied side by side
        for begin in range(0, len(i), step):
            span = slice(begin, begin + step)
            out[span] = ops.double((exact(side1.array[i[span]]) * exact(side2.array[j[span]])).sum(1))
        return out
