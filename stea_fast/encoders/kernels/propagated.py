"""The sparse products of propagation: native where it can be used, otherwise by SciPy. No torch."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from stea_fast._backends.dense import native_is_used
from stea_fast._util.threads import thread_count

FEATURES = 16  # random features of one relation dimension


class SparseRows:
    """A constant sparse matrix, for products with dense ones."""

    def __init__(self, matrix: csr_array) -> None:
        self.matrix = matrix
        self._entries = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        """float32 [rows, d] from float32 [columns, d]."""
        out = np.empty((self.matrix.shape[0], x.shape[1]), dtype=np.float32)
        self.fill(out, x)
        return out

    def fill(self, out: np.ndarray, x: np.ndarray) -> None:
        """Write the product with x into `out`."""
        if not native_is_used():
            out[:] = self.matrix @ x
            return
        from stea_fast import _core
        from stea_fast._backends.native import tier

        _core.sparse_rows(*self._entries, x, out, 0, 0, x.shape[1], thread_count(None), tier())


class TripleView:
    """The edges of a graph: of every entity its neighbours and the relations that lead to them."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray, relations: np.ndarray, size: int) -> None:
        self.indptr = np.searchsorted(rows, np.arange(size + 1)).astype(np.int64)
        self.columns, self.relations = columns.astype(np.int32), relations.astype(np.int32)

    def fill(self, out: np.ndarray, start: int, strengths: np.ndarray, x: np.ndarray, squares: np.ndarray) -> None:
        """out[i, start + 16k + c] = Σ strengths[relation, k] · x[neighbour, 16k + c] over the edges of i.

        Args:
            out: float32 [n, *].
            start: the first column that is written.
            strengths: float32 [2R, dimensions].
            x: float32 [n, 16 · dimensions].
            squares: float64 [n]; the squares of what is written are added to it.
        """
        if not native_is_used():
            self._by_scipy(out, start, strengths, x, squares)
            return
        from stea_fast import _core
        from stea_fast._backends.native import tier

        edges = self.indptr, self.columns, self.relations
        _core.triple_view(*edges, strengths, x, out, start, squares, thread_count(None), tier())

    def _by_scipy(self, out: np.ndarray, start: int, strengths: np.ndarray, x: np.ndarray, squares: np.ndarray) -> None:
        shape = len(self.indptr) - 1, len(x)
        for k in range(strengths.shape[1]):
            # Edges of the same pair add up in the product.
            weights = csr_array((strengths[self.relations, k], self.columns, self.indptr), shape=shape)
            made = weights @ x[:, FEATURES * k : FEATURES * (k + 1)]
            out[:, start + FEATURES * k : start + FEATURES * (k + 1)] = made
            squares += np.einsum("ij,ij->i", made, made)
