"""Evidence and blanket kernels compiled by Numba."""

from __future__ import annotations

from math import exp, log1p

import numpy as np

from stea_fast._backends.numba_rows import (
    MIN_FACTOR,
    count_nodes,
    factor,
    file_edge,
    find_hits,
    find_strength,
    forget,
    kernel,
)


@kernel
def fact_evidence(strengths, r, r2, weight):  # type: ignore[no-untyped-def]
    """The share of two statements about (n, n')."""
    s_indptr, s_columns, s_values, default1, default2 = strengths
    a, b = find_strength(s_indptr, s_columns, s_values, default1, default2, r, r2)
    return -(log1p(-min(a * weight, 1.0 - MIN_FACTOR)) + log1p(-min(b * weight, 1.0 - MIN_FACTOR)))


@kernel
def sum_of_statements(strengths, edges2, hits, found, head, following, locals_, beliefs, belief_weights):  # type: ignore[no-untyped-def]
    """The evidence of a candidate in which every two statements are a witness."""
    total = 0.0
    for h in range(found):
        node = head[edges2[hits[h], 0]]
        while node >= 0:
            weight = np.float64(belief_weights[beliefs[node]])
            total += fact_evidence(strengths, locals_[node], edges2[hits[h], 1], weight)
            node = following[node]
    return total


@kernel
def sum_of_witnesses(strengths, edges2, hits, found, head, following, locals_, beliefs, belief_weights):  # type: ignore[no-untyped-def]
    """The evidence of a candidate in which every pair of neighbours is a witness, and the number of witnesses.

    A pair is a run of hits, and a run of nodes with the same belief: both are filed in the order of the neighbours.
    """
    total = 0.0
    count = 0
    end = 0
    while end < found:
        begin = end
        target = edges2[hits[begin], 0]
        while end < found and edges2[hits[end], 0] == target:
            end += 1
        node = head[target]
        while node >= 0:
            belief = beliefs[node]
            weight = np.float64(belief_weights[belief])
            strongest = 0.0
            while node >= 0 and beliefs[node] == belief:
                for h in range(begin, end):
                    share = fact_evidence(strengths, locals_[node], edges2[hits[h], 1], weight)
                    strongest = max(strongest, share)
                node = following[node]
            total += strongest
            count += np.float32(strongest) > 0
    return total, count


@kernel
def evidence(
    indptr, edges, indptr2, edges2, candidates, belief_indptr, belief_targets, belief_weights,
    s_indptr, s_columns, s_values, default1, default2, by_neighbour, row_begin, row_end, out, witnesses,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """L(e, e') for the rows [row_begin, row_end), and the number of its witnesses where `witnesses` has columns."""
    strengths = (s_indptr, s_columns, s_values, default1, default2)
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
            filed = (strengths, edges2, hits, found, head, following, locals_, beliefs, belief_weights)
            if not by_neighbour:
                out[row - row_begin, c] = sum_of_statements(*filed)
            if by_neighbour or witnesses.shape[1] > 0:
                total, number = sum_of_witnesses(*filed)
                if by_neighbour:
                    out[row - row_begin, c] = total
                if witnesses.shape[1] > 0:
                    witnesses[row - row_begin, c] = number
        forget(head, beliefs, belief_targets, count)


@kernel
def inverse(relation, num_relations):  # type: ignore[no-untyped-def]
    """The inverse of r is r + R, and back."""
    return relation + num_relations if relation < num_relations else relation - num_relations


@kernel
def file_groups(
    indptr, edges, row, belief_indptr, belief_targets, num_relations, head, following, locals_, beliefs, group
):  # type: ignore[no-untyped-def]
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
def multiply_groups(
    entity, weight, indptr2, edges2, num_relations2, strengths, head, following, locals_, group, strongest, product
):  # type: ignore[no-untyped-def]
    """The factors that "the row is `entity`, with this weight" gives to each group: all of them, or the strongest."""
    s_indptr, s_columns, s_values, default1, default2 = strengths
    for j in range(indptr2[entity], indptr2[entity + 1]):
        r2 = inverse(edges2[j, 1], num_relations2)
        node = head[edges2[j, 0]]
        while node >= 0:
            a, b = find_strength(s_indptr, s_columns, s_values, default1, default2, locals_[node], r2)
            both = factor(a, weight) * factor(b, weight)
            before = product[group[node]]
            product[group[node]] = min(before, both) if strongest else before * both
            node = following[node]


@kernel
def blanket(
    indptr, edges, indptr2, edges2, candidates, belief_indptr, belief_targets, belief_weights, belief_evidence,
    s_indptr, s_columns, s_values, default1, default2, num_relations, num_relations2, strongest, row_begin, row_end,
    out,
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
                following, locals_, group, strongest, share,
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
                locals_, group, strongest, product,
            )  # fmt: skip
            gain = 0.0
            for i in range(count):
                gain += belief_weights[beliefs[i]] * rest[i] * (1.0 - product[i])
            out[row - row_begin, c] = base + gain
        forget(head, beliefs, belief_targets, count)
