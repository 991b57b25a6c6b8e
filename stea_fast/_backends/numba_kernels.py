"""Row kernels compiled by Numba. Plain arrays in, plain arrays out; mathematics as in `reference.py`.

Each kernel files the neighbourhood of a row under its believed targets (linked lists through `head` and
`following`) and then walks the edges of the candidates.
"""

from __future__ import annotations

from math import exp, log1p
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


@kernel
def evidence(
    indptr, edges, indptr2, edges2, candidates, belief_indptr, belief_targets, belief_weights,
    s_indptr, s_columns, s_values, default1, default2, row_begin, row_end, out,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """L(e, e') for the rows [row_begin, row_end)."""
    head = np.full(len(indptr2) - 1, -1, dtype=np.int32)
    following = np.empty(0, dtype=np.int32)
    locals_ = np.empty(0, dtype=np.int32)
    beliefs = np.empty(0, dtype=np.int64)
    hits = np.empty(0, dtype=np.int64)
    for row in range(row_begin, row_end):
        needed = count_nodes(edges, indptr[row], indptr[row + 1], belief_indptr)
        if needed > len(following):
            following = np.empty(2 * needed, dtype=np.int32)
            locals_ = np.empty(2 * needed, dtype=np.int32)
            beliefs = np.empty(2 * needed, dtype=np.int64)
        count = 0
        for j in range(indptr[row], indptr[row + 1]):
            count = file_edge(
                edges[j, 0], edges[j, 1], belief_indptr, belief_targets, head, following, locals_, beliefs, count
            )
        for c in range(candidates.shape[1]):
            e2 = candidates[row - row_begin, c]
            if e2 < 0:
                continue
            if indptr2[e2 + 1] - indptr2[e2] > len(hits):
                hits = np.empty(2 * (indptr2[e2 + 1] - indptr2[e2]), dtype=np.int64)
            found = find_hits(edges2, indptr2[e2], indptr2[e2 + 1], head, beliefs, belief_targets, count, hits)
            total = 0.0
            for h in range(found):
                r2 = edges2[hits[h], 1]
                node = head[edges2[hits[h], 0]]
                while node >= 0:
                    weight = np.float64(belief_weights[beliefs[node]])
                    a, b = find_strength(s_indptr, s_columns, s_values, default1, default2, locals_[node], r2)
                    total -= log1p(-min(a * weight, 1.0 - MIN_FACTOR)) + log1p(-min(b * weight, 1.0 - MIN_FACTOR))
                    node = following[node]
            out[row - row_begin, c] = total
        forget(head, beliefs, belief_targets, count)


@kernel
def inverse(relation, num_relations):  # type: ignore[no-untyped-def]
    """The inverse of r is r + R, and back."""
    return relation + num_relations if relation < num_relations else relation - num_relations


@kernel
def file_groups(indptr, edges, row, belief_indptr, belief_targets, num_relations, head, following, locals_, beliefs, group):  # type: ignore[no-untyped-def]
    """File every neighbour but the row itself; `group` of a node is the first node with the same belief.

    Seen from the neighbour, the edge runs the other way: nodes carry the inverse relation.
    """
    count = 0
    run = 0
    for j in range(indptr[row], indptr[row + 1]):
        if edges[j, 0] == row:
            continue
        if j == indptr[row] or edges[j - 1, 0] != edges[j, 0]:
            run = count
        first = count
        relation = inverse(edges[j, 1], num_relations)
        count = file_edge(
            edges[j, 0], relation, belief_indptr, belief_targets, head, following, locals_, beliefs, count
        )
        for i in range(first, count):
            group[i] = run + i - first
    return count


@kernel
def multiply_groups(entity, weight, indptr2, edges2, num_relations2, strengths, head, following, locals_, group, product):  # type: ignore[no-untyped-def]
    """Multiply the factors that "the row is `entity`, with this weight" gives to each group."""
    s_indptr, s_columns, s_values, default1, default2 = strengths
    for j in range(indptr2[entity], indptr2[entity + 1]):
        r2 = inverse(edges2[j, 1], num_relations2)
        node = head[edges2[j, 0]]
        while node >= 0:
            a, b = find_strength(s_indptr, s_columns, s_values, default1, default2, locals_[node], r2)
            product[group[node]] *= factor(a, weight) * factor(b, weight)
            node = following[node]


@kernel
def blanket(
    indptr, edges, indptr2, edges2, candidates, belief_indptr, belief_targets, belief_weights, belief_evidence,
    s_indptr, s_columns, s_values, default1, default2, num_relations, num_relations2, row_begin, row_end, out,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """The neighbours' factors of the Markov blanket for the rows [row_begin, row_end)."""
    strengths = (s_indptr, s_columns, s_values, default1, default2)
    head = np.full(len(indptr2) - 1, -1, dtype=np.int32)
    for row in range(row_begin, row_end):
        needed = count_nodes(edges, indptr[row], indptr[row + 1], belief_indptr)
        following = np.empty(needed, dtype=np.int32)
        locals_ = np.empty(needed, dtype=np.int32)
        beliefs = np.empty(needed, dtype=np.int64)
        group = np.empty(needed, dtype=np.int64)
        count = file_groups(
            indptr, edges, row, belief_indptr, belief_targets, num_relations, head, following, locals_, beliefs, group
        )
        rest = np.zeros(count)  # L(n, n') without the share of the row, then exp(-that)
        for b in range(belief_indptr[row], belief_indptr[row + 1]):
            share = np.ones(count)
            multiply_groups(
                belief_targets[b], np.float64(belief_weights[b]), indptr2, edges2, num_relations2, strengths, head,
                following, locals_, group, share,
            )  # fmt: skip
            rest += np.log(np.maximum(share, 1e-300))
        base = 0.0
        for i in range(count):
            rest[i] = exp(-max(rest[i] + belief_evidence[beliefs[i]], 0.0))
            if group[i] == i:
                base += belief_weights[beliefs[i]] * (1.0 - rest[i])
        for c in range(candidates.shape[1]):
            if candidates[row - row_begin, c] < 0:
                continue
            product = np.ones(count)
            multiply_groups(
                candidates[row - row_begin, c], 1.0, indptr2, edges2, num_relations2, strengths, head, following,
                locals_, group, product,
            )  # fmt: skip
            gain = 0.0
            for i in range(count):
                gain += belief_weights[beliefs[i]] * rest[i] * (1.0 - product[i])
            out[row - row_begin, c] = base + gain
        forget(head, beliefs, belief_targets, count)


@kernel
def product_of_all(weights, begin, end, begin2, end2):  # type: ignore[no-untyped-def]
    """Π over two rows of beliefs of (1 - w·w')."""
    product = 1.0
    for i in range(begin, end):
        for j in range(begin2, end2):
            product *= 1.0 - np.float64(weights[i]) * np.float64(weights[j])
    return product


@kernel
def file_triples(edges, begin, end, row, belief_indptr, belief_targets, belief_weights, num_relations, scale, den, head, following, locals_, beliefs):  # type: ignore[no-untyped-def]
    """File the triples among the edges [begin, end) and add them to den; returns the number of nodes."""
    count = 0
    for j in range(begin, end):
        tail, r = edges[j, 0], edges[j, 1]
        if r >= num_relations:
            continue
        count = file_edge(tail, j - begin, belief_indptr, belief_targets, head, following, locals_, beliefs, count)
        product = product_of_all(
            belief_weights, belief_indptr[row], belief_indptr[row + 1], belief_indptr[tail], belief_indptr[tail + 1]
        )
        den[r] += np.int64((1.0 - product) * scale + 0.5)
    return count


@kernel
def match_statements(row, indptr2, edges2, belief_indptr, belief_targets, belief_weights, head, following, locals_, beliefs, count, num_edges, column_of, columns):  # type: ignore[no-untyped-def]
    """Products [num_edges, columns] of all the ways in which a statement is matched by r'; and the columns used."""
    num_columns = 0
    products = np.ones((num_edges, 16))
    hits = np.empty(0, dtype=np.int64)
    for b in range(belief_indptr[row], belief_indptr[row + 1]):
        begin, end = indptr2[belief_targets[b]], indptr2[belief_targets[b] + 1]
        if end - begin > len(hits):
            hits = np.empty(2 * (end - begin), dtype=np.int64)
        found = find_hits(edges2, begin, end, head, beliefs, belief_targets, count, hits)
        for h in range(found):
            r2 = edges2[hits[h], 1]
            if column_of[r2] < 0:
                column_of[r2] = num_columns
                columns[num_columns] = r2
                num_columns += 1
                if num_columns > products.shape[1]:
                    wider = np.ones((num_edges, 2 * products.shape[1]))
                    wider[:, : products.shape[1]] = products
                    products = wider
            node = head[edges2[hits[h], 0]]
            while node >= 0:
                weight = np.float64(belief_weights[b]) * np.float64(belief_weights[beliefs[node]])
                products[locals_[node], column_of[r2]] *= 1.0 - weight
                node = following[node]
    for column in range(num_columns):
        column_of[columns[column]] = -1
    return products, num_columns


@kernel
def relation_counts(
    indptr, edges, indptr2, edges2, belief_indptr, belief_targets, belief_weights, num_relations, num_relations2,
    scale, row_begin, row_end,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """Terms (key, value) of num and the sums den, in units of 1 / scale."""
    head = np.full(len(indptr2) - 1, -1, dtype=np.int32)
    column_of = np.full(2 * num_relations2, -1, dtype=np.int64)
    columns = np.empty(2 * num_relations2, dtype=np.int64)
    den = np.zeros(num_relations, dtype=np.int64)
    keys = np.empty(1024, dtype=np.int64)
    values = np.empty(1024, dtype=np.int64)
    size = 0
    block = max(16, (1 << 20) // (2 * num_relations2))  # hubs come in blocks, so that the products stay small
    for row in range(row_begin, row_end):
        if belief_indptr[row] == belief_indptr[row + 1]:
            continue
        for begin in range(indptr[row], indptr[row + 1], block):
            end = min(begin + block, indptr[row + 1])
            needed = count_nodes(edges, begin, end, belief_indptr)
            following = np.empty(needed, dtype=np.int32)
            locals_ = np.empty(needed, dtype=np.int32)
            beliefs = np.empty(needed, dtype=np.int64)
            count = file_triples(
                edges, begin, end, row, belief_indptr, belief_targets, belief_weights, num_relations, scale, den,
                head, following, locals_, beliefs,
            )  # fmt: skip
            products, num_columns = match_statements(
                row, indptr2, edges2, belief_indptr, belief_targets, belief_weights, head, following, locals_,
                beliefs, count, end - begin, column_of, columns,
            )  # fmt: skip
            needed = size + (end - begin) * num_columns
            if needed > len(keys):
                keys = np.concatenate((keys, np.empty(needed, dtype=np.int64)))
                values = np.concatenate((values, np.empty(needed, dtype=np.int64)))
            for i in range(end - begin):
                for column in range(num_columns):
                    keys[size] = np.int64(edges[begin + i, 1]) * 2 * num_relations2 + columns[column]
                    values[size] = np.int64((1.0 - products[i, column]) * scale + 0.5)
                    size += products[i, column] < 1.0
            forget(head, beliefs, belief_targets, count)
    return keys[:size], values[:size], den
