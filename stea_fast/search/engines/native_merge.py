"""The merging of blocks by the C++ kernels."""

from __future__ import annotations

import numpy as np

import stea_fast._core as _core
from stea_fast._backends.native import tier
from stea_fast.search.embeddings import Embeddings
from stea_fast.search.exact import gathered_products

Arrays = tuple[np.ndarray, ...]


def merge(
    block: Arrays, first_row: int, first_column: int, row_pools: Arrays, column_pools: Arrays,
    row_keep: int, column_keep: int, n_threads: int,
) -> None:  # fmt: skip
    """Offer every score of the block to its row and its column."""
    _core.topk_merge(block, first_row, first_column, row_pools, column_pools, row_keep, column_keep, n_threads, tier())


def partition(
    block: Arrays, row_pools: Arrays, column_pools: Arrays, row_keep: int, column_keep: int,
    rows: tuple[np.ndarray, np.ndarray], columns: tuple[np.ndarray, np.ndarray], beta: float, n_threads: int,
) -> None:  # fmt: skip
    """Add a merged block to the partition sums."""
    _core.topk_partition(
        block, row_pools, column_pools, row_keep, column_keep, *rows, *columns, beta, n_threads, tier()
    )


def sort(pools: Arrays, keep: int, n_threads: int) -> None:
    """Cut every pool back to the best and order it."""
    _core.topk_sort(pools, keep, n_threads)


def products(queries: Embeddings, keys: Embeddings, indices: np.ndarray, distance: bool, n_threads: int) -> np.ndarray:
    """float64 [n, k]: inner products, or squared distances, of every row with its candidates."""
    if not _is_native(queries, keys):
        return gathered_products(queries, keys, indices, distance)
    return _core.topk_products(queries.array, keys.array, np.ascontiguousarray(indices), distance, n_threads, tier())


def pair_products(
    queries: Embeddings, keys: Embeddings, rows: np.ndarray, columns: np.ndarray, n_threads: int
) -> np.ndarray | None:
    """float64 [m]: inner products of single pairs; None where the kernel does not take these embeddings."""
    if not _is_native(queries, keys):
        return None
    pairs = rows.astype(np.int32), columns.astype(np.int32)
    return _core.pair_products(queries.array, keys.array, *pairs, n_threads, tier())


def _is_native(queries: Embeddings, keys: Embeddings) -> bool:
    left, right = queries.array, keys.array
    native = left.dtype == right.dtype and left.dtype in (np.float32, np.float64)
    return bool(native and left.flags.c_contiguous and right.flags.c_contiguous)
