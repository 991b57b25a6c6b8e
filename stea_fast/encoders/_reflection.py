"""Relational reflection with attention: the layers that Dual-AMN and RREA share.

y_ij = x_j − 2 (x_j·ρ_ij) ρ_ij, with ρ_ij the unit vector of the relations between i and j;
a_ij = softmax over the neighbours j of i of k_y·y_ij + k_ρ·ρ_ij (a part for x_i would cancel);
x_i' = φ(Σ_j a_ij y_ij).

A head is one input with its own attention; all heads share ρ. On a CPU no vector per edge is ever stored:
Σ a y = Σ a x_j − Σ 2 a (x_j·ρ) ρ, and the gradient is written out by hand over the same edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stea_fast._util.sparse import offsets
from stea_fast.encoders import kernels
from stea_fast.encoders._graph import JointGraph
from stea_fast.encoders.kernels.layers import Edges, Layer, LayerGradient


class Reflection:
    """The edges of a graph, ready for the layers.

    `reflection(x, unit, k, activation)` gives [N, (layers + 1) · heads · d], the input first:
    x [N, heads · d] before φ, unit [sets, d] unit vectors ρ, k [layers, heads, 2, d] with k_y and k_ρ,
    activation "tanh" or "relu". With `rows`, only these rows: the last layer is not made for any other.
    """

    def __init__(self, graph: JointGraph, device: torch.device) -> None:
        self.graph = graph
        self.device = device
        if device.type == "cpu":
            indices = graph.rows, graph.columns, graph.reverse, graph.sets, np.argsort(graph.sets, kind="stable")
            rows, columns, reverse, sets, set_edges = (array.astype(np.int32) for array in indices)
            set_indptr = offsets(graph.sets, len(graph.members.indptr) - 1)
            self.edges = Edges(graph.indptr, rows, columns, reverse, sets, set_indptr, set_edges)

    def __call__(
        self, x: torch.Tensor, unit: torch.Tensor, k: torch.Tensor, activation: str, rows: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.device.type == "cpu":
            return _Layers.apply(self, x, unit, k, activation, rows)  # type: ignore[no-untyped-call]
        z = plain(self.graph, x, unit, k, activation)
        return z if rows is None else z.index_select(0, rows)


def plain(graph: JointGraph, x: torch.Tensor, unit: torch.Tensor, k: torch.Tensor, activation: str) -> torch.Tensor:
    """The definition by gather and scatter, differentiated by torch: for other devices, and to compare with."""
    rows, columns, sets = (torch.from_numpy(a).to(x.device) for a in (graph.rows, graph.columns, graph.sets))
    heads, dim = k.shape[1], k.shape[3]
    rho = unit[sets][:, None]
    levels = [getattr(torch, activation)(x)]
    for k_y, k_unit in zip(k[:, :, 0], k[:, :, 1], strict=True):
        near = levels[-1].view(-1, heads, dim)[columns]
        y = near - 2 * (near * rho).sum(-1, keepdim=True) * rho
        weights = segment_softmax((y * k_y).sum(-1) + (rho * k_unit).sum(-1), rows, graph.num_entities)
        out = y.new_zeros(graph.num_entities, heads, dim).index_add(0, rows, weights[:, :, None] * y)
        levels.append(getattr(torch, activation)(out.reshape(len(x), -1)))
    return torch.cat(levels, dim=1)


def segment_softmax(logits: torch.Tensor, rows: torch.Tensor, size: int) -> torch.Tensor:
    """Softmax of logits [E, h] over the edges of the same row."""
    index = rows[:, None].expand_as(logits)
    highest = logits.new_full((size, logits.shape[1]), -torch.inf).scatter_reduce(0, index, logits.detach(), "amax")
    parts = (logits - highest[rows]).exp()
    # index_select: the gradient of total[rows] is added up in an order that differs from run to run.
    total = parts.new_zeros(size, logits.shape[1]).index_add(0, rows, parts)
    return parts / total.index_select(0, rows)


ALL_ROWS = np.empty(0, dtype=np.int32)  # as the positions of wanted rows


class _Layers(torch.autograd.Function):
    """All layers at once, so that their outputs are written where they are needed, side by side."""

    @staticmethod
    def forward(
        ctx: Any, structure: Reflection, x: torch.Tensor, unit: torch.Tensor, k: torch.Tensor, activation: str,
        rows: torch.Tensor | None,
    ) -> torch.Tensor:  # fmt: skip
        z = x.new_empty(len(x), (len(k) + 1) * x.shape[1])
        torch.tanh(x, out=z[:, : x.shape[1]]) if activation == "tanh" else torch.clamp_min(x, 0, out=z[:, : x.shape[1]])
        wanted = ALL_ROWS
        if rows is not None:
            wanted = np.full(len(x), -1, dtype=np.int32)
            wanted[rows.numpy()] = np.arange(len(rows), dtype=np.int32)
        ctx.layers = []
        for level in range(len(k)):
            position = wanted if level == len(k) - 1 else ALL_ROWS
            ctx.layers.append(_forward_layer(structure.edges, position, z, unit, k[level], level, activation))
        ctx.save_for_backward(z, unit, k)
        ctx.edges, ctx.activation, ctx.rows, ctx.wanted = structure.edges, activation, rows, wanted
        return z if rows is None else z.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        z, unit, k = ctx.saved_tensors
        width, outer = k.shape[1] * k.shape[3], grads[0].contiguous()
        last = slice(len(k) * width, (len(k) + 1) * width)
        made = z[:, last] if ctx.rows is None else z[:, last].index_select(0, ctx.rows)
        grad = _through(ctx.activation, made, outer[:, last]).contiguous()
        d_unit, d_k = torch.zeros_like(unit), []
        for level in reversed(range(len(k))):
            d_x = z.new_empty(len(z), width)
            given = LayerGradient(
                k[level, :, 1].contiguous().numpy(), ctx.activation, grad.numpy(), outer.numpy(),
                ctx.wanted, d_x.numpy(), d_unit.numpy(),
            )  # fmt: skip
            through = kernels.chosen().reflect_backward(ctx.edges, ctx.layers[level], given)
            d_on_y, d_on_unit, d_near = (torch.from_numpy(array) for array in through)
            d_k.append(torch.stack([d_near + d_on_y.T @ unit, d_on_unit.T @ unit], dim=1))
            grad = d_x
        return None, grad, d_unit, torch.stack(d_k[::-1]), None, None


def _through(activation: str, value: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """The gradient before φ, from φ's value and the gradient after it."""
    return torch.ops.aten.tanh_backward(grad, value) if activation == "tanh" else grad * (value > 0)


def _forward_layer(
    edges: Edges, position: np.ndarray, z: torch.Tensor, unit: torch.Tensor, k: torch.Tensor, level: int,
    activation: str,
) -> Layer:  # fmt: skip
    """Fill the columns after those of x; only the rows that have a position."""
    heads, _, dim = k.shape
    source, target = level * heads * dim, (level + 1) * heads * dim
    on_y, on_unit = ((unit @ k[:, part].T).numpy() for part in range(2))
    dots, weights = (np.empty((len(edges.columns), heads), dtype=np.float32) for _ in range(2))
    k_y = k[:, 0].contiguous().numpy()
    layer = Layer(position, z.numpy(), source, unit.contiguous().numpy(), k_y, on_y, dots, weights)
    kernels.chosen().reflect_forward(edges, layer, target, on_unit, activation)
    return layer
