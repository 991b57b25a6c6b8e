"""From triples to the adjacency of their inverse closure, and the functionality of its relations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stea_fast._util.sparse import offsets, offsets_of_counts, rows_of, run_starts

AT_ONCE = 1 << 17  # triples, or edges, that are turned into numbers at a time


def inverse_closure(triples: np.ndarray, n: int, r: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR of the inverse closure: each (row, neighbor, relation) is one integer, so sorting is one sort."""
    if n * n * 2 * r < 2**63:
        return _by_keys(triples, n, r)
    head, relation, tail = triples.T
    ends = np.concatenate([head, tail]), np.concatenate([tail, head]), np.concatenate([relation, relation + r])
    rows, neighbors, relations = np.unique(np.stack(ends), axis=1)
    edges = np.empty((len(rows), 2), dtype=np.int32)
    edges[:, 0], edges[:, 1] = neighbors, relations
    return offsets(rows, n), edges


def _by_keys(triples: np.ndarray, n: int, r: int) -> tuple[np.ndarray, np.ndarray]:
    """The same, with little beside the keys: of large graphs they are most of what is held."""
    count = len(triples)
    keys = np.empty(2 * count, dtype=np.int64)
    for begin, end in _spans(count):
        head, relation, tail = triples[begin:end].T.astype(np.int64)
        keys[begin:end] = (head * n + tail) * (2 * r) + relation
        keys[count + begin : count + end] = (tail * n + head) * (2 * r) + relation + r
    keys.sort()
    keys = keys[run_starts(keys)]
    degrees, edges = np.zeros(n, dtype=np.int64), np.empty((len(keys), 2), dtype=np.int32)
    for begin, end in _spans(len(keys)):
        pairs, edges[begin:end, 1] = np.divmod(keys[begin:end], 2 * r)
        rows, edges[begin:end, 0] = np.divmod(pairs, n)
        first, last = int(rows[0]), int(rows[-1]) + 1
        degrees[first:last] += np.bincount(rows - first, minlength=last - first)
    return offsets_of_counts(degrees), edges


def _spans(count: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + AT_ONCE, count)) for begin in range(0, count, AT_ONCE))


def functionality(indptr: np.ndarray, edges: np.ndarray, n: int, r: int) -> np.ndarray:
    """fun(r) for the 2R relations: rows that have an edge r, divided by the number of edges r."""
    keys = rows_of(indptr)
    for begin, end in _spans(len(edges)):
        keys[begin:end] += edges[begin:end, 1].astype(np.int64) * n
    keys.sort()
    heads, first = np.zeros(2 * r, dtype=np.int64), run_starts(keys)
    for begin, end in _spans(len(keys)):
        heads += np.bincount(keys[begin:end][first[begin:end]] // n, minlength=2 * r)
    pairs = np.bincount(edges[:, 1], minlength=2 * r)
    return (heads / np.maximum(pairs, 1)).astype(np.float32)
