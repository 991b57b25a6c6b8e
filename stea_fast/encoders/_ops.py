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
        if self._on_device is None:
            return _Product.apply(self, x)  # type: ignore[no-untyped-call]
        rows, columns, values = self._on_device
        # index_select: the gradient of x[…] is added up in an order that differs from run to run.
        gathered = values[:, None] * x.index_select(0, columns)
        return x.new_zeros(self.shape[0], x.shape[1]).index_add(0, rows, gathered)

    def product(self, x: torch.Tensor, *, transposed: bool) -> torch.Tensor:
        """A x, or Aᵀ x, on a CPU and without a gradient."""
        out = x.new_empty(self.shape[transposed], x.shape[1])
        self.fill(out, 0, x.contiguous(), 0, x.shape[1], transposed=transposed)
        return out

    def fill(
        self, out: torch.Tensor, out_start: int, x: torch.Tensor, x_start: int, width: int, *, transposed: bool
    ) -> None:
        """The product on a CPU, from some columns of x and into some of out."""
        side = self._backward if transposed else self._forward
        kernels.chosen().sparse_rows(side, x.numpy(), out.numpy(), x_start, out_start, width)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, x: torch.Tensor) -> torch.Tensor:
        ctx.matrix = matrix
        return matrix.product(x.detach(), transposed=False)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, ctx.matrix.product(grads[0], transposed=True)


def side_by_side(matrices: tuple[SparseMatrix, ...], parts: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """[N, Σ d]: the products of the matrices with their parts, without a copy of any."""
    if parts[0].device.type == "cpu":
        return _SideBySide.apply(matrices, *parts)  # type: ignore[no-untyped-call]
    return torch.cat([matrix @ part for matrix, part in zip(matrices, parts, strict=True)], dim=1)


class _SideBySide(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrices: tuple[SparseMatrix, ...], *parts: torch.Tensor) -> torch.Tensor:
        ctx.matrices = matrices
        ctx.starts = np.cumsum([0, *(part.shape[1] for part in parts)]).tolist()
        out = parts[0].new_empty(matrices[0].shape[0], ctx.starts[-1])
        for matrix, part, start in zip(matrices, parts, ctx.starts, strict=False):
            matrix.fill(out, start, part.detach().contiguous(), 0, part.shape[1], transposed=False)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        grad, results = grads[0].contiguous(), []
        for matrix, (start, end) in zip(ctx.matrices, pairwise(ctx.starts), strict=True):
            results.append(grad.new_empty(matrix.shape[1], end - start))
            matrix.fill(results[-1], 0, grad, start, end - start, transposed=True)
        return None, *results


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
    entries = pattern.indptr, pattern.columns, values
    kernels.chosen().sparse_rows(entries, x.contiguous().numpy(), out.numpy(), 0, 0, x.shape[1])
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


class _Dropout(torch.autograd.Function):
    """Draws are made again for the gradient instead of being stored."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, key: int, zeroed: int) -> torch.Tensor:
        ctx.arguments = key, zeroed
        return _dropped(x.detach(), key, zeroed)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return _dropped(grads[0], *ctx.arguments), None, None


def _dropped(x: torch.Tensor, key: int, zeroed: int) -> torch.Tensor:
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    kernels.chosen().dropout(x.contiguous().numpy(), out.numpy(), key, zeroed, LEVELS / (LEVELS - zeroed))
    return out


LEVELS = 65536  # of the share of zeroed elements


def dropout(x: torch.Tensor, rate: float, generator: torch.Generator) -> torch.Tensor:
    """x [n, d] with elements zeroed at `rate` (to 1/65536) and the others scaled up.

    The generator, which is of the host, draws a key for a hash of rows and columns: the same elements on every device.
    """
    zeroed = round(rate * LEVELS)
    if not 0 < zeroed < LEVELS:
        return x
    key = int(torch.empty((), dtype=torch.int64).random_(generator=generator))
    if x.device.type == "cpu":
        return _Dropout.apply(x, key, zeroed)  # type: ignore[no-untyped-call]
    return x * (hashed_draws(x.shape[0], x.shape[1], key, x.device) >= zeroed) * (LEVELS / (LEVELS - zeroed))


def hashed_draws(rows: int, columns: int, key: int, device: torch.device) -> torch.Tensor:
    """int32 [rows, columns] below `LEVELS`: the draws of csrc/kernels/dropout.h, by torch.

    Torch computes with signed numbers; their sums and products wrap around to the same bits as those of unsigned ones.
    """
    seeds = key + (torch.arange(rows, device=device) + 1) * _signed(0x9E3779B97F4A7C15, 64)
    seeds = (seeds ^ _shifted(seeds, 30, 64)) * _signed(0xBF58476D1CE4E5B9, 64)
    seeds = (seeds ^ _shifted(seeds, 27, 64)) * _signed(0x94D049BB133111EB, 64)
    seeds = seeds ^ _shifted(seeds, 31, 64)
    column = torch.arange(columns, device=device, dtype=torch.int32)
    words = seeds.to(torch.int32)[:, None] + (column // 16 * 8 + column % 8)
    words = (words ^ _shifted(words, 16, 32)) * 0x7FEB352D
    words = (words ^ _shifted(words, 15, 32)) * _signed(0x846CA68B, 32)
    words = words ^ _shifted(words, 16, 32)
    return torch.where(column % 16 >= 8, _shifted(words, 16, 32), words & (LEVELS - 1))


def _shifted(bits: torch.Tensor, by: int, width: int) -> torch.Tensor:
    """Bits shifted to the right as those of an unsigned number: zeros come in from the left."""
    return (bits >> by) & ((1 << (width - by)) - 1)


def _signed(number: int, width: int) -> int:
    """The signed number of the same bits, of which the first is set."""
    return number - (1 << width)
