# mypy: ignore-errors
"""Kernels of the encoders, compiled by Numba: plain arrays in, rows [begin, end) of the output filled.

Each kernel owns its output rows, so results do not depend on the number of threads. Sums may be reordered
(`reassoc`), or the inner products would not use vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import njit

from stea_fast._util import threads

BLOCKS_PER_THREAD = 8
ENTRIES_PER_BLOCK = 10_000  # below this a thread costs more than it brings


MATH = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: Any) -> Any:
    """Compile on first call, keep the result on disk, run without the GIL."""
    return njit(cache=True, nogil=True, fastmath=MATH, error_model="numpy")(function)


def searching(function: Any) -> Any:
    """As `kernel`, and comparisons take no care of NaN: only then is the search for a maximum vectorised."""
    return njit(cache=True, nogil=True, fastmath=MATH | {"nnan"}, error_model="numpy")(function)


def row_blocks(indptr: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of rows with about equal numbers of entries, several per thread where there is work for them."""
    cost = indptr + np.arange(len(indptr))
    count = max(1, min(BLOCKS_PER_THREAD * torch.get_num_threads(), int(cost[-1]) // ENTRIES_PER_BLOCK))
    return threads.row_blocks(cost, count)


def run_blocks(task: Callable[[int, int], object], blocks: list[tuple[int, int]]) -> None:
    """Run `task(begin, end)` for every range of rows, on as many threads as torch uses."""
    count = torch.get_num_threads()
    if count == 1 or len(blocks) == 1:
        for begin, end in blocks:
            task(begin, end)
    else:
        threads.run_blocks(task, blocks, count)


@kernel
def spmm(indptr, columns, values, x, out, begin, end):
    """out[i] = Σ values[e] · x[columns[e]] over the entries e of row i."""
    width = x.shape[1]
    for i in range(begin, end):
        row = out[i]
        row[:] = 0
        for e in range(indptr[i], indptr[i + 1]):
            value, other = values[e], x[columns[e]]
            for c in range(width):
                row[c] += value * other[c]


@kernel
def dot(a, b):
    """Inner product of two vectors."""
    total = np.float32(0)
    for c in range(len(a)):
        total += a[c] * b[c]
    return total


@kernel
def sddmm(indptr, columns, a, b, out, begin, end):
    """out[e] = a[i] · b[columns[e]] for the entries e of row i."""
    for i in range(begin, end):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = dot(a[i], b[columns[e]])


@kernel
def unit_rows(x, scale, out, start, norms, begin, end):
    """out[i, start …] = scale · x[i] / ‖x[i]‖, and the norms; a zero row stays zero."""
    for i in range(begin, end):
        row, target = x[i], out[i, start : start + x.shape[1]]
        norms[i] = max(np.sqrt(dot(row, row)), np.float32(1e-12))
        factor = scale / norms[i]
        for c in range(len(row)):
            target[c] = factor * row[c]


@kernel
def unit_rows_backward(out, scale, grad, start, norms, d_x, begin, end):
    """d_x = scale / ‖x‖ · (g − (y·g) y), y the unit row that is in `out` times scale."""
    width = d_x.shape[1]
    for i in range(begin, end):
        y, g, row = out[i, start : start + width], grad[i, start : start + width], d_x[i]
        factor = scale / norms[i]
        along = factor * dot(y, g) / (scale * scale)
        for c in range(width):
            row[c] = factor * g[c] - along * y[c]


@kernel
def dropout(x, out, key, zeroed, scale, begin, end):
    """Sixteen bits of a hash of the key, the row and the column decide on each element; see csrc/kernels/dropout.h."""
    half, mask = np.uint32(16), np.uint32(0xFFFF)
    for i in range(begin, end):
        bits = key + np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        seed = np.uint32((bits ^ (bits >> np.uint64(31))) & np.uint64(0xFFFFFFFF))
        for c in range(x.shape[1]):
            word = np.uint32(seed + np.uint32(c // 16 * 8 + c % 8))
            word = np.uint32((word ^ (word >> half)) * np.uint32(0x7FEB352D))
            word = np.uint32((word ^ (word >> np.uint32(15))) * np.uint32(0x846CA68B))
            word = word ^ (word >> half)
            draw = word >> half if c % 16 >= 8 else word & mask
            out[i, c] = x[i, c] * scale if draw >= zeroed else np.float32(0)


@kernel
def reflect_forward(
    indptr, columns, sets, position, z, source, unit, k_y, on_y, on_unit, dots, weights, target, begin, end
):
    """z[i, target + …] = Σ_j a_ij (x_j − 2 (x_j·ρ) ρ) for every head, before φ."""
    dim, heads = unit.shape[1], on_y.shape[1]
    for i in range(begin, end):
        if len(position) and position[i] < 0:
            continue
        row = z[i, target : target + heads * dim]
        row[:] = 0
        first, last = indptr[i], indptr[i + 1]
        for h in range(heads):
            highest = np.float32(-np.inf)
            for e in range(first, last):
                s = sets[e]
                x = z[columns[e], source + h * dim : source + (h + 1) * dim]
                product = dot(x, unit[s])
                logit = dot(x, k_y[h]) - 2 * product * on_y[s, h] + on_unit[s, h]
                dots[e, h], weights[e, h] = product, logit
                highest = max(highest, logit)
            total = np.float32(0)
            for e in range(first, last):
                weights[e, h] = np.exp(weights[e, h] - highest)
                total += weights[e, h]
            for e in range(first, last):
                weights[e, h] /= total
        for e in range(first, last):
            j, rho = columns[e], unit[sets[e]]
            for h in range(heads):
                a = weights[e, h]
                along = -2 * a * dots[e, h]
                x = z[j, source + h * dim : source + (h + 1) * dim]
                out = row[h * dim : (h + 1) * dim]
                for c in range(dim):
                    out[c] += a * x[c] + along * rho[c]


@kernel
def reflect_backward_edges(
    indptr, columns, sets, position, z, source, unit, on_y, dots, weights, grad, d_logits, d_dots, begin, end
):
    """Gradients of the logits and of the inner products, from grad [rows, heads · dim] of the weighted sums."""
    dim, heads = unit.shape[1], on_y.shape[1]
    for i in range(begin, end):
        place = position[i] if len(position) else i
        if place < 0:
            continue
        for h in range(heads):
            g = grad[place, h * dim : (h + 1) * dim]
            mean = np.float32(0)
            for e in range(indptr[i], indptr[i + 1]):
                start = source + h * dim
                along = dot(g, unit[sets[e]])
                d_weight = dot(g, z[columns[e], start : start + dim]) - 2 * dots[e, h] * along
                d_logits[e, h], d_dots[e, h] = d_weight, along
                mean += weights[e, h] * d_weight
            for e in range(indptr[i], indptr[i + 1]):
                a = weights[e, h]
                d_logit = a * (d_logits[e, h] - mean)
                d_logits[e, h] = d_logit
                d_dots[e, h] = -2 * (a * d_dots[e, h] + on_y[sets[e], h] * d_logit)


@kernel
def reflect_backward_entities(
    indptr, columns, reverse, sets, position, unit, k_y, weights, d_logits, d_dots, grad, d_near, d_x, begin, end
):
    """Adds the gradient of x_j to d_x[j], over the edges that lead to j: e = reverse[j's own edges]."""
    dim, heads = unit.shape[1], weights.shape[1]
    for j in range(begin, end):
        row = d_x[j]
        for own in range(indptr[j], indptr[j + 1]):
            e, i = reverse[own], columns[own]
            place = position[i] if len(position) else i
            if place < 0:
                continue
            rho = unit[sets[e]]
            for h in range(heads):
                a, along = weights[e, h], d_dots[e, h]
                d_near[j, h] += d_logits[e, h]
                out, g = row[h * dim : (h + 1) * dim], grad[place, h * dim : (h + 1) * dim]
                for c in range(dim):
                    out[c] += a * g[c] + along * rho[c]
        for h in range(heads):
            out, k, total = row[h * dim : (h + 1) * dim], k_y[h], d_near[j, h]
            for c in range(dim):
                out[c] += total * k[c]


@kernel
def reflect_backward_sets(
    set_indptr, set_edges, rows, columns, position, z, source, dots, weights, d_logits, d_dots, grad,
    k_y, k_unit, d_on_y, d_on_unit, d_unit, begin, end,
):  # fmt: skip
    """Adds the gradient of ρ to d_unit[s], over the edges whose set of relations is s."""
    dim, heads = d_unit.shape[1], weights.shape[1]
    for s in range(begin, end):
        out = d_unit[s]
        for at in range(set_indptr[s], set_indptr[s + 1]):
            e = set_edges[at]
            i, j = rows[e], columns[e]
            place = position[i] if len(position) else i
            if place < 0:
                continue
            for h in range(heads):
                d_on_unit[s, h] += d_logits[e, h]
                d_on_y[s, h] -= 2 * dots[e, h] * d_logits[e, h]
                through, along = -2 * weights[e, h] * dots[e, h], d_dots[e, h]
                g = grad[place, h * dim : (h + 1) * dim]
                x = z[j, source + h * dim : source + (h + 1) * dim]
                for c in range(dim):
                    out[c] += through * g[c] + along * x[c]
        for h in range(heads):
            for c in range(dim):
                out[c] += d_on_y[s, h] * k_y[h, c] + d_on_unit[s, h] * k_unit[h, c]


@searching
def negative_weights(products, norms, base, centre, ends, scale, least, cut, losses, begin, end):
    """Replaces the products of a query with all entities by ∂LSE/∂u; fills `losses` with LSE(scale · û).

    u_j = base + 2 products_j − norms_j; the entries of `ends` (the pair itself) are written so that u = 0, and
    get no gradient. `centre` is about the mean of 2 products − norms: without it the squares would cancel.
    Entries below e^−least of the largest count as zero, and those below e^−cut have no gradient.
    """
    n = products.shape[1]
    for q in range(begin, end):
        row = products[q]
        for side in range(2):
            row[ends[q, side]] = (norms[ends[q, side]] - base[q]) / 2
        total, squares, top = np.float32(0), np.float32(0), np.float32(-np.inf)
        for j in range(n):
            value = 2 * row[j] - norms[j] - centre[q]
            row[j] = value
            total += value
            squares += value * value
            top = value if value > top else top
        mean = np.float64(total) / n
        steep = scale / np.sqrt(np.float64(squares) / n - mean * mean)
        limit, factor, parts = np.float32(top - least / steep), np.float32(steep), np.float32(0)
        for j in range(n):
            part = np.exp(factor * (row[j] - top)) if row[j] >= limit else np.float32(0)
            row[j] = part
            parts += part
        losses[q] = steep * (top - mean) + np.log(parts)
        row[ends[q, 0]] = 0
        row[ends[q, 1]] = 0
        factor, smallest = np.float32(steep / parts), np.float32(np.exp(-cut))
        for j in range(n):
            row[j] = row[j] * factor if row[j] >= smallest else np.float32(0)


@kernel
def l1_margins(z, triplets, margin, values, begin, end):
    """values[t] = margin + ‖a − b‖₁ − ‖a − n‖₁ of triplet t = (a, b, n)."""
    for t in range(begin, end):
        a, b, n = z[triplets[t, 0]], z[triplets[t, 1]], z[triplets[t, 2]]
        total = np.float32(0)
        for c in range(z.shape[1]):
            total += abs(a[c] - b[c]) - abs(a[c] - n[c])
        values[t] = margin + total


@kernel
def l1_gradient(z, triplets, indptr, places, out, begin, end):
    """out[i] = gradient of the sum of the margins, over the places (3 · triplet + role) where i occurs."""
    for i in range(begin, end):
        row = out[i]
        row[:] = 0
        for position in range(indptr[i], indptr[i + 1]):
            t, role = places[position] // 3, places[position] % 3
            a, b, n = z[triplets[t, 0]], z[triplets[t, 1]], z[triplets[t, 2]]
            near, far = np.float32(role != 2), np.float32(role != 1)
            if role != 0:  # at b and n the signs are those of the anchor, reversed
                near, far = -near, -far
            for c in range(z.shape[1]):
                up, down = a[c] - b[c], a[c] - n[c]
                row[c] += near * (np.float32(up > 0) - np.float32(up < 0))
                row[c] -= far * (np.float32(down > 0) - np.float32(down < 0))
