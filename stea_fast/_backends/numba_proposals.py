"""Proposal kernel compiled by Numba: targets found by walking over the neighbours' counterparts."""

from __future__ import annotations

from math import log

import numpy as np

from stea_fast._backends.factors import ENOUGH_FACTS, ENOUGH_SHARE
from stea_fast._backends.numba_rows import factor, find_strength, kernel

LEAST_PRODUCT = 1e-300
SMALL = 1e-6  # below, the sum of the x is the evidence to as many digits, and the product has lost its own


@kernel
def count_fan_out(indptr2, edges, begin, end, belief_indptr, belief_targets, fan_out):  # type: ignore[no-untyped-def]
    """The target edges behind every fact of a row; returns the largest number."""
    largest = 0
    for j in range(begin, end):
        total = 0
        for b in range(belief_indptr[edges[j, 0]], belief_indptr[edges[j, 0] + 1]):
            total += indptr2[belief_targets[b] + 1] - indptr2[belief_targets[b]]
        fan_out[j - begin] = total
        largest = max(largest, total)
    return largest


@kernel
def strongest_statement(edges, first, last, weight, edges2, begin, end, num_relations2, strengths):  # type: ignore[no-untyped-def]
    """Of the statements [first, last) of the row and [begin, end) of a counterpart: two factors and the sum of the x."""
    s_indptr, s_columns, s_values, default1, default2 = strengths
    factor1, factor2, total = 1.0, 1.0, 0.0
    for j in range(begin, end):
        back = edges2[j, 1]
        r2 = back + num_relations2 if back < num_relations2 else back - num_relations2
        for i in range(first, last):
            a, b = find_strength(s_indptr, s_columns, s_values, default1, default2, edges[i, 1], r2)
            if factor(a, weight) * factor(b, weight) <= factor1 * factor2:
                factor1, factor2 = factor(a, weight), factor(b, weight)
            total = max(total, (a + b) * weight)
    return factor1, factor2, total


@kernel
def follow_belief(
    edges, first, last, counterpart, weight, indptr2, edges2, num_relations2, strengths, open_targets, by_neighbour,
    product, total, touched, count,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """Every target beyond the counterpart takes the factors of the facts [first, last) about one neighbour.

    One fact at a time where statements are witnesses. Returns the number of touched targets.
    """
    begin = indptr2[counterpart]
    while begin < indptr2[counterpart + 1]:
        target = edges2[begin, 0]
        end = begin + 1
        while by_neighbour and end < indptr2[counterpart + 1] and edges2[end, 0] == target:
            end += 1
        if open_targets[target]:
            factor1, factor2, x = strongest_statement(
                edges, first, last, weight, edges2, begin, end, num_relations2, strengths
            )
            if x > 0.0:
                if total[target] == 0.0:
                    touched[count] = target
                    count += 1
                product[target] = max(product[target] * factor1 * factor2, LEAST_PRODUCT)
                total[target] += x
        begin = end
    return count


@kernel
def keep_best(product, total, touched, count, indices, evidence):  # type: ignore[no-untyped-def]
    """Insert the touched targets into the list of the best, and forget them."""
    k = len(indices)
    for t in range(count):
        target = touched[t]
        value = np.float32(total[target] if total[target] < SMALL else -log(product[target]))
        product[target] = 1.0
        total[target] = 0.0
        place = k
        while place > 0 and (
            value > evidence[place - 1]
            or (value == evidence[place - 1] and (indices[place - 1] < 0 or target < indices[place - 1]))
        ):
            place -= 1
        if place == k or value <= 0:
            continue
        for c in range(k - 1, place, -1):
            indices[c] = indices[c - 1]
            evidence[c] = evidence[c - 1]
        indices[place] = target
        evidence[place] = value


@kernel
def proposals(
    indptr, edges, indptr2, edges2, belief_indptr, belief_targets, belief_weights, s_indptr, s_columns, s_values,
    default1, default2, num_relations2, open_rows, open_targets, budget, by_neighbour, row_begin, row_end, indices,
    evidence,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """The best targets of the rows [row_begin, row_end); `indices` come filled with -1, `evidence` with 0."""
    strengths = (s_indptr, s_columns, s_values, default1, default2)
    product = np.ones(len(indptr2) - 1)
    total = np.zeros(len(indptr2) - 1)
    touched = np.empty(len(indptr2) - 1, dtype=np.int32)
    for row in range(row_begin, row_end):
        if not open_rows[row]:
            continue
        begin, end = indptr[row], indptr[row + 1]
        fan_out = np.empty(end - begin, dtype=np.int64)
        largest = count_fan_out(indptr2, edges, begin, end, belief_indptr, belief_targets, fan_out)
        count = 0
        walked, facts, done = 0, 0, False
        low = 1  # facts with a fan-out in [low, 2·low): the same bit length
        while low <= largest and not done:
            j = begin
            while j < end and not done:
                first, fan = j, fan_out[j - begin]
                j += 1
                if fan < low or fan >= 2 * low:
                    continue
                while by_neighbour and j < end and edges[j, 0] == edges[first, 0]:
                    j += 1  # the facts about one neighbour have the same fan-out
                within = 0
                while (
                    within < j - first
                    and walked + fan <= budget
                    and (facts < ENOUGH_FACTS or walked < budget // ENOUGH_SHARE)
                ):
                    within += 1
                    facts += 1
                    walked += fan
                done = within < j - first
                for b in range(belief_indptr[edges[first, 0]], belief_indptr[edges[first, 0] + 1]):
                    count = follow_belief(
                        edges, first, first + within, belief_targets[b], np.float64(belief_weights[b]), indptr2, edges2,
                        num_relations2, strengths, open_targets, by_neighbour, product, total, touched, count,
                    )  # fmt: skip
            low *= 2
        keep_best(product, total, touched, count, indices[row - row_begin], evidence[row - row_begin])


@kernel
def changes_around(indptr, edges, shares, changes, moved, weights, begin, end, out):  # type: ignore[no-untyped-def]
    """How much of what the neighbours of every row say has changed."""
    for row in range(begin, end):
        total = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            n, r = edges[j, 0], edges[j, 1]
            changed = np.float64(moved[n]) + np.float64(changes[r]) * np.float64(weights[n])
            total += np.float64(shares[r]) * changed
        out[row - begin] = total
