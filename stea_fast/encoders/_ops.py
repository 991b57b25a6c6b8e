"""Differentiable operations on sparse structure: compiled kernels on a CPU, torch's own elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from stea_fast._util.sparse import offsets, rows_of
from stea_fast.encoders import kernels
from stea_fast.encoders._graph import Entries
from stea_fast.encoders.kernels import bodies
from stea_fast.encoders.kernels.bodies import run_blocks


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Treat subnormal floats as zero on this thread: with them a training step can take twenty times as long."""
    before = torch.tensor([1e-310], dtype=torch.float64).mul(1.0).item() == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


class SparseMatrix:
    """A constant sparse matrix [rows, columns] for products with dense ones, differentiable in the dense one."""

    def __init__(self, entries: Entries, device: torch.device) -> None:
        indptr, columns, values, width = entries
        self.device = device
        self.shape = (len(indptr) - 1, width)
        rows = rows_of(indptr)
        order = np.argsort(columns, kind="stable")
        self._forward = (indptr, columns.astype(np.int32), values)
        self._backward = (offsets(columns, width), rows[order].astype(np.int32), values[order])
        self._on_device: tuple[torch.Tensor, ...] | None = None
        if device.type != "cpu":
            self._on_device = tuple(torch.from_numpy(array).to(device) for array in (rows, columns, values))

    def __matmul__(self, x: torch.Tensor) -> torch.Tensor:
        return _Product.apply(self, x)  # type: ignore[no-untyped-call]

    def product(self, x: torch.Tensor, *, transposed: bool) -> torch.Tensor:
        """A x, or Aᵀ x, without a gradient."""
        if self._on_device is not None:
            rows, columns, values = self._on_device
            into, out_of = (columns, rows) if transposed else (rows, columns)
            out = x.new_zeros(self.shape[transposed], x.shape[1])
            return out.index_add_(0, into, values[:, None] * x[out_of])
        out = x.new_empty(self.shape[transposed], x.shape[1])
        side = self._backward if transposed else self._forward
        kernels.chosen().sparse_rows(side, x.contiguous().numpy(), out.numpy())
        return out


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, x: torch.Tensor) -> torch.Tensor:
        ctx.matrix = matrix
        return matrix.product(x.detach(), transposed=False)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, ctx.matrix.product(grads[0], transposed=True)


class SymmetricPattern:
    """Entries of a square matrix with a symmetric pattern: the products Σ_j w_ij x_j, differentiable in w and x."""

    def __init__(self, entries: Entries, device: torch.device) -> None:
        self.indptr, self.columns = entries.indptr, entries.columns.astype(np.int32)
        rows = rows_of(self.indptr)
        self.reverse = np.lexsort((rows, self.columns))
        self.rows_on_device, self.columns_on_device, self.values = (
            torch.from_numpy(array).to(device) for array in (rows, entries.columns, entries.values)
        )
        self.blocks = bodies.row_blocks(self.indptr)

    def weighted_sum(self, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """[N, d] from weights [nnz] and x [N, d]."""
        if x.device.type == "cpu":
            return _WeightedSum.apply(self, weights, x)  # type: ignore[no-untyped-call]
        parts = weights[:, None] * x[self.columns_on_device]
        return torch.zeros_like(x).index_add(0, self.rows_on_device, parts)


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: SymmetricPattern, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(weights, x)
        return _spmm(pattern, weights.numpy(), x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
        pattern, (weights, x), grad = ctx.pattern, ctx.saved_tensors, grads[0].contiguous()
        d_weights = torch.empty_like(weights)
        arrays = pattern.indptr, pattern.columns, grad.numpy(), x.contiguous().numpy(), d_weights.numpy()
        run_blocks(lambda a, b: bodies.sddmm(*arrays, a, b), pattern.blocks)
        return None, d_weights, _spmm(pattern, weights.numpy()[pattern.reverse], grad)


def _spmm(pattern: SymmetricPattern, values: np.ndarray, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    kernels.chosen().sparse_rows((pattern.indptr, pattern.columns, values), x.contiguous().numpy(), out.numpy())
    return out


def joined_units(parts: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """[N, Σ d]: the rows of all parts [N, d] scaled to one length and side by side, so that the whole is a unit row."""
    if parts[0].device.type == "cpu":
        return _JoinedUnits.apply(*parts)  # type: ignore[no-untyped-call]
    return torch.cat([normalize(part, dim=1) for part in parts], dim=1) * len(parts) ** -0.5


class _JoinedUnits(torch.autograd.Function):
    """One pass over every part, where torch would make a dozen over matrices of this size."""

    @staticmethod
    def forward(ctx: Any, *parts: torch.Tensor) -> torch.Tensor:
        ctx.starts = np.cumsum([0, *(part.shape[1] for part in parts)]).tolist()
        out, norms = parts[0].new_empty(len(parts[0]), ctx.starts[-1]), parts[0].new_empty(len(parts), len(parts[0]))
        ctx.scale, filled = np.float32(len(parts) ** -0.5), out.numpy()
        for start, part, norm in zip(ctx.starts, parts, norms.numpy(), strict=False):
            arrays = part.detach().contiguous().numpy(), ctx.scale, filled, start, norm
            _over_rows(bodies.unit_rows, arrays, len(out))
        ctx.save_for_backward(out, norms)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        (out, norms), grad, results = ctx.saved_tensors, grads[0].contiguous().numpy(), []
        for number, (start, end) in enumerate(pairwise(ctx.starts)):
            results.append(out.new_empty(len(out), end - start))
            arrays = out.numpy(), ctx.scale, grad, start, norms[number].numpy(), results[-1].numpy()
            _over_rows(bodies.unit_rows_backward, arrays, len(out))
        return tuple(results)


def _over_rows(function: Any, arrays: tuple[Any, ...], size: int) -> None:
    """Run a kernel whose rows cost the same."""
    run_blocks(lambda begin, end: function(*arrays, begin, end), bodies.row_blocks(np.arange(size + 1)))


class _Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, draws: torch.Tensor, limit: int, scale: float) -> torch.Tensor:
        ctx.arguments = draws, limit, scale
        return _kept(x, draws, limit, scale)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return _kept(grads[0], *ctx.arguments), None, None, None


def _kept(x: torch.Tensor, draws: torch.Tensor, limit: int, scale: float) -> torch.Tensor:
    if x.device.type != "cpu":
        return x * (draws >= limit) * scale
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    arrays = x.detach().contiguous().numpy(), draws.numpy(), np.int16(limit), np.float32(scale), out.numpy()
    _over_rows(bodies.keep, arrays, len(x))
    return out


def dropout(x: torch.Tensor, rate: float, generator: torch.Generator) -> torch.Tensor:
    """x [n, d] with elements zeroed at `rate` (to 1/65536) and the others scaled up.

    One 64-bit random number decides on four elements: on a CPU they are drawn one after the other.
    """
    zeroed = round(rate * 65536)
    if not 0 < zeroed < 65536:
        return x
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device)
    words.random_(-(2**63), None, generator=generator)
    draws = words.view(torch.int16)[: x.numel()].view(x.shape)
    return _Keep.apply(x, draws, zeroed - 32768, 65536 / (65536 - zeroed))  # type: ignore[no-untyped-call]
