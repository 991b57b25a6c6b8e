"""The kernels of the encoders in C++: `stea_fast._core`. Contracts in `csrc/kernels/*.h`."""

from __future__ import annotations

import numpy as np
import torch

import stea_fast._core as _core
from stea_fast._backends.native import int8_tier, tier
from stea_fast.encoders.kernels.layers import CsrArrays, Edges, Layer, LayerGradient


def multiplies_bytes() -> bool:
    """Whether `byte_negatives` is faster than products of single precision: the processor has instructions for it."""
    return int8_tier() is not None


def sparse_rows(entries: CsrArrays, x: np.ndarray, out: np.ndarray, x_start: int, out_start: int, width: int) -> None:
    """out[i] = Σ values[e] · x[columns[e]] over the entries e of row i; in `width` columns from the given ones on."""
    _core.sparse_rows(*entries, x, out, x_start, out_start, width, torch.get_num_threads(), tier())


def dropout(x: np.ndarray, out: np.ndarray, key: int, zeroed: int, scale: float) -> None:
    """out = x · scale where what the key draws for an element is at least `zeroed` of 65,536, otherwise 0."""
    _core.dropout(x, out, key, zeroed, scale, torch.get_num_threads(), tier())


def reflect_forward(edges: Edges, layer: Layer, target: int, on_unit: np.ndarray, activation: str) -> None:
    """Fill the columns of z from `target`, the inner products and the attention."""
    _core.reflect_forward(
        edges, layer.position, layer.z, layer.source, target, layer.unit, layer.k_y, layer.on_y, on_unit, activation,
        layer.dots, layer.weights, torch.get_num_threads(), tier(),
    )  # fmt: skip


def reflect_backward(edges: Edges, layer: Layer, given: LayerGradient) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill d_x and add to d_unit; returns the gradients of on_y, of on_unit, and of k_y through x."""
    return _core.reflect_backward(
        edges, layer.position, layer.z, layer.source, layer.unit, layer.k_y, given.k_unit, layer.on_y, layer.dots,
        layer.weights, given.activation, given.grad, given.outer, given.outer_position, given.d_x, given.d_unit,
        torch.get_num_threads(), tier(),
    )  # fmt: skip


def hard_negatives(
    products: np.ndarray, queries: np.ndarray, z: np.ndarray, norms: np.ndarray, base: np.ndarray, centre: np.ndarray,
    ends: np.ndarray, scale: float, cut: float, gradient: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Losses [b], Σ_j c_qj [b] and Σ_j c_qj z_j [b, d]; adds Σ_q c_qj (q − z_j) to the gradient of every z_j."""
    return _core.hard_negatives(
        products, queries, z, norms, base, centre, ends, scale, cut, gradient, torch.get_num_threads(), tier()
    )


def byte_negatives(
    queries: np.ndarray, z: np.ndarray, norms: np.ndarray, base: np.ndarray, centre: np.ndarray, ends: np.ndarray,
    scale: float, cut: float, gradient: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """As `hard_negatives` without its products: which entities are hard is found by numbers of 8 bits."""
    return _core.byte_negatives(
        queries, z, norms, base, centre, ends, scale, cut, gradient, torch.get_num_threads(), tier(), int8_tier() or ""
    )
