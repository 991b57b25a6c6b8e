"""From triples to the adjacency of their inverse closure, and the functionality of its relations."""

from __future__ import annotations

import numpy as np

from stea_fast._util.sparse import distinct, offsets, rows_of


def inverse_closure(triples: np.ndarray, n: int, r: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR of the inverse closure: each (row, neighbor, relation) is one integer, so sorting is one sort."""
    head, relation, tail = triples.T
    rows = np.concatenate([head, tail])
    neighbors = np.concatenate([tail, head])
    relations = np.concatenate([relation, relation + r])
    if n * n * 2 * r < 2**63:
        pairs, relations = np.divmod(distinct((rows * n + neighbors) * (2 * r) + relations), 2 * r)
        rows, neighbors = np.divmod(pairs, n)
    else:
        rows, neighbors, relations = np.unique(np.stack([rows, neighbors, relations]), axis=1)
    edges = np.empty((len(rows), 2), dtype=np.int32)
    edges[:, 0], edges[:, 1] = neighbors, relations
    return offsets(rows, n), edges


def functionality(indptr: np.ndarray, edges: np.ndarray, n: int, r: int) -> np.ndarray:
    """fun(r) for the 2R relations: rows that have an edge r, divided by the number of edges r."""
    heads = np.bincount(distinct(edges[:, 1].astype(np.int64) * n + rows_of(indptr)) // n, minlength=2 * r)
    pairs = np.bincount(edges[:, 1], minlength=2 * r)
    return (heads / np.maximum(pairs, 1)).astype(np.float32)
