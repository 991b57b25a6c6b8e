"""Distances of many pairs of rows, and quadratic forms of all rows, without a vector per pair or per row being kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array

from stea_fast.encoders import kernels
from stea_fast.encoders.kernels.layers import CsrArrays

PAIRS = 4096  # whose difference vectors are made at a time


def squared_distances(z: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """[m] ‖z_l − z_r‖² for pairs [m, 2] of rows of z [N, d]."""
    if z.device.type == "cpu":
        return _SquaredDistances.apply(z, pairs)  # type: ignore[no-untyped-call]
    return plain(z, pairs)


def plain(z: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """The definition, differentiated by torch: for other devices, and for some pairs at a time."""
    # index_select: the gradient of z[…] is added up in an order that differs from run to run.
    return (z.index_select(0, pairs[:, 0]) - z.index_select(0, pairs[:, 1])).square().sum(1)


class _SquaredDistances(torch.autograd.Function):
    """The gradient is 2 L z, with the Laplacian matrix L of the pairs weighted by what comes back to them."""

    @staticmethod
    def forward(ctx: Any, z: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(z, pairs)
        # Filled and not joined: small results between the large differences would keep their memory from being reused.
        out = z.new_empty(len(pairs))
        for some, filled in zip(torch.split(pairs, PAIRS), torch.split(out, PAIRS), strict=True):
            filled.copy_(plain(z, some))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        z, pairs = ctx.saved_tensors
        out = torch.empty_like(z, memory_format=torch.contiguous_format)
        entries = _laplacian(pairs.numpy(), 2 * grads[0].numpy(), len(z))
        kernels.chosen().sparse_rows(entries, z.contiguous().numpy(), out.numpy(), 0, 0, z.shape[1])
        return out, None


def _laplacian(pairs: np.ndarray, weights: np.ndarray, size: int) -> CsrArrays:
    """CSR of Σ w (e_l − e_r)(e_l − e_r)ᵀ over the pairs that have a weight."""
    there = weights != 0
    (left, right), w = pairs[there].T, weights[there]
    places = np.concatenate([left, right, left, right]), np.concatenate([left, right, right, left])
    rows = coo_array((np.concatenate([w, w, -w, -w]), places), shape=(size, size)).tocsr()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float32)


def quadratic_forms(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """[N] x_i W x_i for the rows of x [N, d] and W [d, d]."""
    return _QuadraticForms.apply(x, weight)  # type: ignore[no-untyped-call]


class _QuadraticForms(torch.autograd.Function):
    """Only x is kept: torch would keep x W as well."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return (x @ weight).mul_(x).sum(1)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (x, weight), grad = ctx.saved_tensors, grads[0][:, None]
        d_weight = x.T @ (grad * x)
        return (x @ (weight + weight.T)).mul_(grad), d_weight
