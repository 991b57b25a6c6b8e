"""What the row kernels compiled by Numba share. Plain arrays in, plain arrays out.

Each kernel files the neighbourhood of a row under its believed targets (linked lists through `head` and
`following`) and then walks the edges of the candidates. The mathematics is that of `reference.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

MIN_FACTOR = 1e-4


def kernel(function: Any) -> Any:
    """Compile on first call, keep the result on disk, run without the GIL."""
    return njit(cache=True, nogil=True)(function)


@kernel
def find_strength(indptr, columns, values, default1, default2, r, r2):  # type: ignore[no-untyped-def]
    """The two strengths of a pair of relations: a binary search in the row of r."""
    low, high = indptr[r], indptr[r + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < r2:
            low = middle + 1
        else:
            high = middle
    if low < end and columns[low] == r2:
        return np.float64(values[low, 0]), np.float64(values[low, 1])
    return np.float64(default1[r]), np.float64(default2[r2])


@kernel
def factor(strength, weight):  # type: ignore[no-untyped-def]
    """1 - x, clamped below."""
    return max(1.0 - strength * weight, MIN_FACTOR)


@kernel
def count_nodes(edges, begin, end, belief_indptr):  # type: ignore[no-untyped-def]
    """Beliefs of all neighbours behind the edges [begin, end)."""
    total = 0
    for j in range(begin, end):
        total += belief_indptr[edges[j, 0] + 1] - belief_indptr[edges[j, 0]]
    return total


@kernel
def file_edge(neighbor, local, belief_indptr, belief_targets, head, following, locals_, beliefs, count):  # type: ignore[no-untyped-def]
    """File one node per belief of `neighbor`; returns the number of nodes so far."""
    for b in range(belief_indptr[neighbor], belief_indptr[neighbor + 1]):
        following[count] = head[belief_targets[b]]
        head[belief_targets[b]] = count
        locals_[count] = local
        beliefs[count] = b
        count += 1
    return count


@kernel
def forget(head, beliefs, belief_targets, count):  # type: ignore[no-untyped-def]
    """Empty the lists of everything filed."""
    for i in range(count):
        head[belief_targets[beliefs[i]]] = -1


@kernel
def first_edge(edges, begin, end, neighbor):  # type: ignore[no-untyped-def]
    """The first edge in [begin, end) that leads to `neighbor` or a later entity."""
    while begin < end:
        middle = (begin + end) // 2
        if edges[middle, 0] < neighbor:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def find_hits(edges2, begin, end, head, beliefs, belief_targets, count, hits):  # type: ignore[no-untyped-def]
    """Positions in [begin, end) of edges that lead to filed targets; returns their number.

    A hub among the candidates of a small row is searched instead of scanned.
    """
    found = 0
    if end - begin <= 32 * count:
        for j in range(begin, end):
            if head[edges2[j, 0]] >= 0:
                hits[found] = j
                found += 1
        return found
    for i in range(count):
        target = belief_targets[beliefs[i]]
        if head[target] != i:  # only the last node filed under a target stands for it
            continue
        j = first_edge(edges2, begin, end, target)
        while j < end and edges2[j, 0] == target:
            hits[found] = j
            found += 1
            j += 1
    return found
