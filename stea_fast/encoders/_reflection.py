"""Relational reflection with attention: the layers that Dual-AMN and RREA share.

y_ij = x_j − 2 (x_j·ρ_ij) ρ_ij, with ρ_ij the unit vector of the relations between i and j;
a_ij = softmax over the neighbours j of i of k_y·y_ij + k_ρ·ρ_ij (a part for x_i would cancel);
x_i' = φ(Σ_j a_ij y_ij).

A head is one input with its own attention; all heads share ρ. On a CPU no vector per edge is ever stored:
Σ a y = Σ a x_j − Σ 2 a (x_j·ρ) ρ, and the gradient is written out by hand over the same edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from stea_fast._util.sparse import offsets
from stea_fast.encoders import _kernels
from stea_fast.encoders._graph import JointGraph
from stea_fast.encoders._ops import run_blocks


class Reflection:
    """The edges of a graph, ready for the layers.

    `reflection(x, unit, k, activation)` gives [N, (layers + 1) · heads · d], the input first:
    x [N, heads · d] after φ, unit [sets, d] unit vectors ρ, k [layers, heads, 2, d] with k_y and k_ρ,
    activation "tanh" or "relu". With `rows`, only these rows: the last layer is not made for any other.
    """

    def __init__(self, graph: JointGraph, device: torch.device) -> None:
        self.graph = graph
        self.device = device
        if device.type == "cpu":
            self.set_indptr = offsets(graph.sets, len(graph.members.indptr) - 1)
            self.set_edges = np.argsort(graph.sets, kind="stable")
            self.blocks = _kernels.row_blocks(graph.indptr)
            self.set_blocks = _kernels.row_blocks(self.set_indptr)
            self.all_rows = np.ones(graph.num_entities, dtype=bool)

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
    levels = [x]
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


class _Layer(NamedTuple):
    """What one layer keeps for its gradient: which rows it made, [sets, h] k_y·ρ, and [E, h] x_j·ρ and a_ij."""

    wanted: np.ndarray
    on_y: np.ndarray
    dots: np.ndarray
    weights: np.ndarray


class _Layers(torch.autograd.Function):
    """All layers at once, so that their outputs are written where they are needed, side by side."""

    @staticmethod
    def forward(
        ctx: Any, structure: Reflection, x: torch.Tensor, unit: torch.Tensor, k: torch.Tensor, activation: str,
        rows: torch.Tensor | None,
    ) -> torch.Tensor:  # fmt: skip
        z = x.new_empty(len(x), (len(k) + 1) * x.shape[1])
        z[:, : x.shape[1]] = x
        wanted = [structure.all_rows] * len(k)
        if rows is not None:
            wanted[-1] = np.zeros_like(structure.all_rows)
            wanted[-1][rows.numpy()] = True
        ctx.layers = []
        for level in range(len(k)):
            if level > 0:
                _activate(activation, z, level * x.shape[1], x.shape[1])
            ctx.layers.append(_forward_layer(structure, wanted[level], z, unit, k[level], level))
        out = z if rows is None else z.index_select(0, rows)
        _activate(activation, out, len(k) * x.shape[1], x.shape[1])
        ctx.save_for_backward(z, unit, k, out)
        ctx.structure, ctx.activation, ctx.rows = structure, activation, rows
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        z, unit, k, out = ctx.saved_tensors
        width = k.shape[1] * k.shape[3]
        last = slice(len(k) * width, (len(k) + 1) * width)
        d_z = _over_all_rows(grads[0][:, : last.start], ctx.rows, len(z))
        grad = _over_all_rows(_through(ctx.activation, out[:, last], grads[0][:, last]), ctx.rows, len(z))
        d_unit, d_k = torch.zeros_like(unit), []
        for level in reversed(range(len(k))):
            layer = ctx.layers[level]
            d_k.append(_backward_layer(ctx.structure, layer, z, unit, k[level], level * width, grad, d_z, d_unit))
            place = slice(level * width, (level + 1) * width)
            grad = _through(ctx.activation, z[:, place], d_z[:, place]) if level > 0 else d_z[:, place]
        return None, grad.contiguous(), d_unit, torch.stack(d_k[::-1]), None, None


def _activate(activation: str, z: torch.Tensor, start: int, width: int) -> None:
    getattr(torch, f"{activation}_")(z[:, start : start + width])


def _over_all_rows(grad: torch.Tensor, rows: torch.Tensor | None, size: int) -> torch.Tensor:
    """A gradient for every row that may be added to, from that of all rows or of some."""
    if rows is None:
        return grad.clone(memory_format=torch.contiguous_format)
    return grad.new_zeros(size, grad.shape[1]).index_copy_(0, rows, grad)


def _through(activation: str, value: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """The gradient before φ, from φ's value and the gradient after it."""
    return torch.ops.aten.tanh_backward(grad, value) if activation == "tanh" else grad * (value > 0)


def _forward_layer(
    structure: Reflection, wanted: np.ndarray, z: torch.Tensor, unit: torch.Tensor, k: torch.Tensor, level: int
) -> _Layer:
    """Fill the columns of z for the level after `level`, before φ."""
    graph, (heads, _, dim) = structure.graph, k.shape
    source, target = level * heads * dim, (level + 1) * heads * dim
    near = torch.stack([x @ k[h, 0] for h, x in enumerate(z[:, source:target].chunk(heads, 1))], dim=1).numpy()
    on_y, on_unit = (unit @ k[:, 0].T).numpy(), (unit @ k[:, 1].T).numpy()
    dots, weights = (np.empty((len(graph.rows), heads), dtype=np.float32) for _ in range(2))
    values, units = z.numpy(), unit.numpy()
    run_blocks(
        lambda begin, end: _kernels.reflect_forward(
            graph.indptr, graph.columns, graph.sets, wanted, values, source, units, near, on_y, on_unit,
            dots, weights, target, begin, end,
        ),
        structure.blocks,
    )  # fmt: skip
    return _Layer(wanted, on_y, dots, weights)


def _backward_layer(
    structure: Reflection, layer: _Layer, z: torch.Tensor, unit: torch.Tensor, k: torch.Tensor, source: int,
    grad: torch.Tensor, d_z: torch.Tensor, d_unit: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Adds to the gradients of x (columns of d_z from `source`) and of ρ; returns that of k [h, 2, d]."""
    graph, (heads, _, dim), (wanted, on_y, dots, weights) = structure.graph, k.shape, layer
    values, units, g = z.numpy(), unit.numpy(), grad.contiguous().numpy()
    k_y, k_unit = k[:, 0].contiguous().numpy(), k[:, 1].contiguous().numpy()
    d_logits, d_dots = np.empty_like(dots), np.empty_like(dots)
    d_near, d_values, d_units = np.zeros((len(z), heads), dtype=np.float32), d_z.numpy(), d_unit.numpy()
    d_on_y, d_on_unit = np.zeros_like(on_y), np.zeros_like(on_y)
    run_blocks(
        lambda begin, end: _kernels.reflect_backward_edges(
            graph.indptr, graph.columns, graph.sets, wanted, values, source, units, on_y, dots, weights, g,
            d_logits, d_dots, begin, end,
        ),
        structure.blocks,
    )  # fmt: skip
    run_blocks(
        lambda begin, end: _kernels.reflect_backward_entities(
            graph.indptr, graph.columns, graph.reverse, graph.sets, wanted, units, k_y, weights, d_logits, d_dots, g,
            d_near, d_values, source, begin, end,
        ),
        structure.blocks,
    )  # fmt: skip
    run_blocks(
        lambda begin, end: _kernels.reflect_backward_sets(
            structure.set_indptr, structure.set_edges, graph.rows, graph.columns, wanted, values, source, dots, weights,
            d_logits, d_dots, g, k_y, k_unit, d_on_y, d_on_unit, d_units, begin, end,
        ),
        structure.set_blocks,
    )  # fmt: skip
    parts = z[:, source : source + heads * dim].chunk(heads, 1)
    through_x = torch.stack([x.T @ torch.from_numpy(d_near[:, h]) for h, x in enumerate(parts)])
    through_unit = [torch.from_numpy(d).T @ unit for d in (d_on_y, d_on_unit)]
    return torch.stack([through_x + through_unit[0], through_unit[1]], dim=1)
