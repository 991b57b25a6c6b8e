"""Relation-count kernel compiled by Numba."""

from __future__ import annotations

import numpy as np

from stea_fast._backends.numba_rows import count_nodes, file_edge, find_hits, forget, kernel


@kernel
def product_of_all(weights, begin, end, begin2, end2):  # type: ignore[no-untyped-def]
    """Π over two rows of beliefs of (1 - w·w')."""
    product = 1.0
    for i in range(begin, end):
        for j in range(begin2, end2):
            product *= 1.0 - np.float64(weights[i]) * np.float64(weights[j])
    return product


@kernel
def file_triples(
    edges,
    begin,
    end,
    row,
    belief_indptr,
    belief_targets,
    belief_weights,
    num_relations,
    scale,
    den,
    head,
    following,
    locals_,
    beliefs,
):  # type: ignore[no-untyped-def]
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
def match_statements(
    row,
    indptr2,
    edges2,
    belief_indptr,
    belief_targets,
    belief_weights,
    head,
    following,
    locals_,
    beliefs,
    count,
    num_edges,
    column_of,
    columns,
):  # type: ignore[no-untyped-def]
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
