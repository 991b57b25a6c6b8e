"""The graphs of AliNet: one hop with the triples of known pairs swapped, two hops without the commonest patterns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array

from stea_fast._util.sparse import rows_of
from stea_fast.data.graph import KG
from stea_fast.encoders._graph import Entries

COMMON_PATTERNS = 5
MAX_PATHS = 4_000_000  # paths held at a time


def swapped(triples: np.ndarray, pairs: np.ndarray, size: int) -> np.ndarray:
    """int64 [s, 3]: triples between known entities, written with their counterparts, where these have no edge yet."""
    counterpart = np.full(size, -1)
    counterpart[pairs[:, 0]], counterpart[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    heads, tails = counterpart[triples[:, 0]], counterpart[triples[:, 2]]
    known = (heads >= 0) & (tails >= 0)
    known &= ~np.isin(heads * size + tails, triples[:, 0] * size + triples[:, 2])
    return np.stack([heads, triples[:, 1], tails], axis=1)[known]


def one_hop(triples: np.ndarray, size: int) -> Entries:
    """Â of the undirected, unweighted edges of all triples."""
    return _normalised(triples[:, 0], triples[:, 2], size, np.zeros(0, dtype=np.int64))


def two_hop(kg1: KG, kg2: KG) -> Entries:
    """Â of the ends of paths h → m → t without an edge h → t, per graph, in joint ids."""
    size = kg1.num_entities + kg2.num_entities
    first, second = _path_ends(kg1), _path_ends(kg2) + kg1.num_entities
    heads, tails = np.concatenate([first, second]).T
    return _normalised(heads, tails, size, np.unique(heads))


def _normalised(heads: np.ndarray, tails: np.ndarray, size: int, loops: np.ndarray) -> Entries:
    """D^−½ (A + I) D^−½ of the undirected binary edges; `loops` are entities with one to themselves as well."""
    keys = np.unique(np.concatenate([heads * size + tails, tails * size + heads, loops * (size + 1)]))
    keys = np.concatenate([keys, np.arange(size) * (size + 1)])
    matrix = coo_array((np.ones(len(keys)), np.divmod(keys, size)), shape=(size, size)).tocsr()
    scale = np.asarray(matrix.sum(axis=1)) ** -0.5
    rows = rows_of(matrix.indptr)
    data = (matrix.data * scale[rows] * scale[matrix.indices]).astype(np.float32)
    return Entries(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), data, size)


def _path_ends(kg: KG) -> np.ndarray:
    """int64 [p, 2]: distinct (h, t) of the paths that are left."""
    triples, n, width = kg.triples.astype(np.int64), kg.num_entities, kg.num_relations
    direct = np.unique(triples[:, 0] * n + triples[:, 2])
    found = []
    for heads, tails, patterns in _paths(triples, n, width):
        keys = heads * n + tails
        kept = (heads != tails) & ~np.isin(keys, direct)
        found.append(np.stack([keys[kept], patterns[kept]]))
    keys, patterns = np.concatenate(found, axis=1) if found else np.zeros((2, 0), dtype=np.int64)
    names, numbers = np.unique(patterns, return_counts=True)
    common = names[np.argsort(-numbers, kind="stable")[:COMMON_PATTERNS]]
    return np.stack(np.divmod(np.unique(keys[~np.isin(patterns, common)]), n), axis=1)


def _paths(triples: np.ndarray, n: int, width: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of all paths of two triples: head, tail and the number of the relation pattern of each."""
    starts = np.searchsorted(triples[:, 0], np.arange(n + 1))  # triples are ordered by head
    degrees = np.diff(starts)[triples[:, 2]]
    ends = np.cumsum(degrees)
    begin = 0
    while begin < len(triples):
        done = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + MAX_PATHS, side="right")))
        block, number = triples[begin:end], degrees[begin:end]
        first = np.repeat(np.arange(len(block)), number)
        offsets = np.arange(len(first)) - np.repeat(np.cumsum(number) - number, number)
        second = triples[starts[block[first, 2]] + offsets]
        yield block[first, 0], second[:, 2], block[first, 1] * width + second[:, 1]
        begin = end


def mean_differences(ends: np.ndarray, per_row: int, size: int) -> Entries:
    """The matrix [m / per_row, size] that gives of x the means of x[h] − x[t] over every `per_row` of ends [m, 2]."""
    heads, tails = ends.T
    rows, share = np.arange(len(ends)) // per_row, np.full(len(ends), 1 / per_row)
    entries = np.concatenate([share, -share]), (np.tile(rows, 2), np.concatenate([heads, tails]))
    mean = coo_array(entries, shape=(len(ends) // per_row, size)).tocsr()
    return Entries(mean.indptr.astype(np.int64), mean.indices.astype(np.int64), mean.data.astype(np.float32), size)
