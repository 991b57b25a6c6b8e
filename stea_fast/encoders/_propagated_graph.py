"""What propagation makes of a graph and of random numbers on the host, wherever the vectors are made then."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array

from stea_fast.data.graph import KG
from stea_fast.encoders.kernels.propagated import FEATURES

HOPS = 2
BATCH = 8  # relation dimensions made at a time
ROWS = 4096  # rows normalised at a time


def projection(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Gaussian directions: float32 [rows, columns] with unit rows."""
    return unit_rows(rng.standard_normal((rows, columns), dtype=np.float32))


def placed(seeds: np.ndarray, size: int) -> csr_array:
    """[n, m] with a one where a seed is; of an entity that is there twice, the last counts."""
    last = np.full(size, -1)
    last[seeds] = np.arange(len(seeds))
    there = np.flatnonzero(last >= 0)
    ones = np.ones(len(there), dtype=np.float32)
    return csr_array((ones, (there, last[there])), shape=(size, len(seeds)))


def column_blocks(width: int) -> list[slice]:
    """Ranges of columns, narrow enough for what is made of them to stay in a cache."""
    return [slice(begin, min(begin + BATCH * FEATURES, width)) for begin in range(0, width, BATCH * FEATURES)]


def structure(kg: KG) -> tuple[csr_array, csr_array, csr_array]:
    """Edge counts [n, n] with 2 · degree on the diagonal; who heads [2R, n] and who ends [n, 2R] each relation."""
    rows, columns, relations = edges_of(kg)
    n, ones = kg.num_entities, np.ones(len(rows), dtype=np.float32)
    degrees = np.bincount(rows, minlength=n).astype(np.float32)
    adjacency = csr_array((ones, (rows, columns)), shape=(n, n)) + diags_array(2 * degrees)
    heads = _binary(relations, rows, (2 * kg.num_relations, n))
    tails = _binary(columns, relations, (n, 2 * kg.num_relations))
    return adjacency.tocsr().astype(np.float32), heads, tails


def edges_of(kg: KG) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entity, neighbour and relation of all edges but self-loops."""
    rows = np.repeat(np.arange(kg.num_entities, dtype=np.int32), kg.degrees)
    proper = rows != kg.neighbors
    return rows[proper], kg.neighbors[proper], kg.relations[proper]


def _binary(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    matrix = csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def unit_rows(matrix: np.ndarray) -> np.ndarray:
    """Divide every row by its norm, in place; a zero row stays zero."""
    for begin in range(0, len(matrix), ROWS):
        block = matrix[begin : begin + ROWS]
        block /= np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-12)
    return matrix
