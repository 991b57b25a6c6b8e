"""The kernels of the encoders by Numba, in blocks of rows on as many threads as torch uses. As `native`."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array

from stea_fast.encoders.kernels import bodies
from stea_fast.encoders.kernels.bodies import row_blocks, run_blocks
from stea_fast.encoders.kernels.layers import CsrArrays, Edges, Layer, LayerGradient

LEAST = 20.0  # entries below e⁻²⁰ of the largest of their row count as zero: all N together less than 1e-4 of it


def multiplies_bytes() -> bool:
    """No: there is no `byte_negatives` here."""
    return False


def sparse_rows(entries: CsrArrays, x: np.ndarray, out: np.ndarray, x_start: int, out_start: int, width: int) -> None:
    """out[i] = Σ values[e] · x[columns[e]] over the entries e of row i; in `width` columns from the given ones on."""
    dense, filled = x[:, x_start : x_start + width], out[:, out_start : out_start + width]
    run_blocks(lambda begin, end: bodies.spmm(*entries, dense, filled, begin, end), row_blocks(entries[0]))


def dropout(x: np.ndarray, out: np.ndarray, key: int, zeroed: int, scale: float) -> None:
    """out = x · scale where what the key draws for an element is at least `zeroed` of 65,536, otherwise 0."""
    arrays = x, out, np.uint64(key), np.uint32(zeroed), np.float32(scale)
    run_blocks(lambda begin, end: bodies.dropout(*arrays, begin, end), row_blocks(np.arange(len(x) + 1)))


def reflect_forward(edges: Edges, layer: Layer, target: int, on_unit: np.ndarray, activation: str) -> None:
    """Fill the columns of z from `target`, the inner products and the attention."""
    run_blocks(
        lambda begin, end: bodies.reflect_forward(
            edges.indptr, edges.columns, edges.sets, layer.position, layer.z, layer.source, layer.unit, layer.k_y,
            layer.on_y, on_unit, layer.dots, layer.weights, target, begin, end,
        ),
        row_blocks(edges.indptr),
    )  # fmt: skip
    made = torch.from_numpy(layer.z)[:, target : target + layer.k_y.size]
    getattr(torch, f"{activation}_")(made)


def reflect_backward(edges: Edges, layer: Layer, given: LayerGradient) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill d_x and add to d_unit; returns the gradients of on_y, of on_unit, and of k_y through x."""
    d_logits, d_dots = np.empty_like(layer.dots), np.empty_like(layer.dots)
    d_near = np.zeros((len(layer.z), layer.dots.shape[1]), dtype=np.float32)
    d_on_y, d_on_unit = np.zeros_like(layer.on_y), np.zeros_like(layer.on_y)
    position, own = layer.position, slice(layer.source, layer.source + layer.k_y.size)
    given.d_x[:] = _over_all_rows(given.outer[:, own], given.outer_position)
    run_blocks(
        lambda begin, end: bodies.reflect_backward_edges(
            edges.indptr, edges.columns, edges.sets, position, layer.z, layer.source, layer.unit, layer.on_y,
            layer.dots, layer.weights, given.grad, d_logits, d_dots, begin, end,
        ),
        row_blocks(edges.indptr),
    )  # fmt: skip
    run_blocks(
        lambda begin, end: bodies.reflect_backward_entities(
            edges.indptr, edges.columns, edges.reverse, edges.sets, position, layer.unit, layer.k_y, layer.weights,
            d_logits, d_dots, given.grad, d_near, given.d_x, begin, end,
        ),
        row_blocks(edges.indptr),
    )  # fmt: skip
    run_blocks(
        lambda begin, end: bodies.reflect_backward_sets(
            edges.set_indptr, edges.set_edges, edges.rows, edges.columns, position, layer.z, layer.source, layer.dots,
            layer.weights, d_logits, d_dots, given.grad, layer.k_y, given.k_unit, d_on_y, d_on_unit, given.d_unit,
            begin, end,
        ),
        row_blocks(edges.set_indptr),
    )  # fmt: skip
    x = layer.z[:, own].reshape(len(layer.z), *layer.k_y.shape)
    _before_activation(given.activation, given.d_x, layer.z[:, own])
    return d_on_y, d_on_unit, np.einsum("nhd,nh->hd", x, d_near)


def _over_all_rows(rows: np.ndarray, position: np.ndarray) -> np.ndarray:
    """A row for every entity: its own, or zero where it has none."""
    return np.where(position[:, None] >= 0, rows[position], np.float32(0)) if len(position) else rows


def _before_activation(activation: str, grad: np.ndarray, value: np.ndarray) -> None:
    """Turn the gradient after φ into that before it, φ's value given."""
    if activation == "tanh":
        grad *= 1 - value * value
    else:
        grad *= value > 0


def hard_negatives(
    products: np.ndarray, queries: np.ndarray, z: np.ndarray, norms: np.ndarray, base: np.ndarray, centre: np.ndarray,
    ends: np.ndarray, scale: float, cut: float, gradient: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Losses [b], Σ_j c_qj [b] and Σ_j c_qj z_j [b, d]; adds Σ_q c_qj (q − z_j) to the gradient of every z_j."""
    losses, pulled = np.empty(len(queries), dtype=np.float32), np.empty_like(queries)
    run_blocks(
        lambda begin, end: bodies.negative_weights(
            products, norms, base, centre, ends, scale, LEAST, cut, losses, begin, end
        ),
        row_blocks(np.arange(len(products) + 1) * products.shape[1]),
    )
    weights = csr_array(products)
    sparse_rows((weights.indptr, weights.indices, weights.data), z, pulled, 0, 0, z.shape[1])
    pushers = csr_array(weights.T)
    pushed = np.flatnonzero(np.diff(pushers.indptr))
    towards = np.empty((len(pushed), z.shape[1]), dtype=np.float32)
    starts = np.append(pushers.indptr[pushed], pushers.indptr[-1])
    sparse_rows((starts, pushers.indices, pushers.data), queries, towards, 0, 0, z.shape[1])
    gradient[pushed] += towards - pushers.sum(axis=1)[pushed, None] * z[pushed]
    return losses, weights.sum(axis=1), pulled
