"""The loss of Dual-AMN: every entity is a negative, and the hardest ones carry the gradient.

For a pair (l, r), D the squared Euclidean distance, p = D(l, r), and j over ALL N entities of both graphs:
u_j = (p − D(l, j) + γ)·(1 − [j=l] − [j=r]), and v_j with D(r, j); û = (u − mean u) / std u with the mean and the
(population) deviation held constant; loss = mean over pairs of LSE_j(λ û_j + 10) + LSE_j(λ v̂_j + 10).

The masked entries stay in the sum as (0 − mean) / std: they are what ends the push once a pair is learnt.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from stea_fast.encoders import _kernels
from stea_fast.encoders._ops import run_blocks

OFFSET = 10.0  # of the logits; no gradient depends on it
ROWS = 512  # queries per block: what is stored of the 2B × N products at a time
CUT = 20.0  # entries below e⁻²⁰ of the largest of their row count as zero: all N together less than 1e-4 of it
DROPPED = 2e-5  # share of a block's weights, in the columns of least weight, that is left out of the gradient


def hard_negative_loss(
    z: torch.Tensor, left: torch.Tensor, right: torch.Tensor, gamma: float, scale: float
) -> torch.Tensor:
    """The loss for embeddings z [N, d] and pairs left, right [B] of joint ids."""
    if z.device.type == "cpu":
        return _HardNegatives.apply(z, left, right, gamma, scale)  # type: ignore[no-untyped-call]
    return plain(z, left, right, gamma, scale)


def sampled(pairs: torch.Tensor, drawn: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The entities that were drawn or belong to the pairs [B, 2], and the places of the pairs among them.

    The loss of their embeddings is the loss with the drawn entities as negatives; without the ends of the pairs the
    masked entries would be missing from it.
    """
    pool = torch.unique(torch.cat([drawn, pairs.flatten()]))
    return pool, torch.searchsorted(pool, pairs)


def plain(z: torch.Tensor, left: torch.Tensor, right: torch.Tensor, gamma: float, scale: float) -> torch.Tensor:
    """The definition with all negatives, differentiated by torch: for other devices, and to compare with."""
    a, b = z[left], z[right]
    norms = z.square().sum(1)
    positive = (a - b).square().sum(1, keepdim=True)
    mask = torch.ones(len(left), len(z), device=z.device)
    row = torch.arange(len(left), device=z.device)
    mask[row, left] -= 1
    mask[row, right] -= 1
    total = z.new_zeros(len(left))
    for query in (a, b):
        distance = query.square().sum(1, keepdim=True) + norms - 2 * query @ z.T
        u = (positive - distance + gamma) * mask
        normed = (u - u.mean(1, keepdim=True).detach()) / u.std(1, keepdim=True, correction=0).detach()
        total = total + torch.logsumexp(scale * normed + OFFSET, dim=1)
    return total.mean()


class _Memory(NamedTuple):
    """What the blocks of queries use one after the other: new memory for each would cost a fifth of the time."""

    products: torch.Tensor
    chosen: torch.Tensor
    near: torch.Tensor
    back: torch.Tensor

    @classmethod
    def like(cls, z: torch.Tensor, rows: int) -> _Memory:
        """For blocks of so many rows; pages that are never written take no memory."""
        return cls(z.new_empty(rows, len(z)), z.new_empty(rows * len(z)), torch.empty_like(z), torch.empty_like(z))


class _HardNegatives(torch.autograd.Function):
    """Exact sums; the gradient over the columns that have one. It is made while the products are at hand."""

    @staticmethod
    def forward(
        ctx: Any, z: torch.Tensor, left: torch.Tensor, right: torch.Tensor, gamma: float, scale: float
    ) -> torch.Tensor:
        ids = torch.cat([left, right])  # the queries: all left ends, then all right ends
        partners = ids.roll(len(left))
        queries, others = z[ids], z[partners]
        norms = torch.linalg.vector_norm(z, dim=1).square_()  # without a second matrix of the size of z
        base = (queries - others).square().sum(1) + gamma - norms[ids]
        centre = 2 * queries @ z.mean(0) - norms.mean()
        ends = torch.stack([ids, partners], dim=1)
        losses, pushes, pulled = torch.empty_like(base), torch.empty_like(base), torch.empty_like(queries)
        gradient = torch.zeros_like(z)
        memory = _Memory.like(z, min(ROWS, len(ids)))
        for begin in range(0, len(ids), ROWS):
            rows = slice(begin, begin + ROWS)
            products = torch.mm(queries[rows], z.T, out=memory.products[: len(ids[rows])])
            _weigh(products, norms, base[rows], centre[rows], ends[rows], scale, losses[rows])
            pushes[rows], pulled[rows] = _spread(products, queries[rows], z, gradient, memory)
        # p gives 2C (q − o) at q and −2C (q − o) at o, C = Σ ∂LSE/∂u; D(q, j) gives −2 Σ c (q − z_j) at q.
        push = pushes[:, None]
        own = pulled - push * others + push.roll(len(left), 0) * (queries - others)
        ctx.gradient = gradient.index_add_(0, ids, own).mul_(2 / len(left))
        return losses.sum() / len(left) + 2 * OFFSET

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gradient, ctx.gradient = ctx.gradient, None  # [N, d], scaled where it is: only one backward pass is possible
        return gradient.mul_(grads[0]), None, None, None, None


def _weigh(
    products: torch.Tensor, norms: torch.Tensor, base: torch.Tensor, centre: torch.Tensor, ends: torch.Tensor,
    scale: float, losses: torch.Tensor,
) -> None:  # fmt: skip
    """Replace the products [b, N] of queries with z by ∂LSE/∂u; fill the losses [b]."""
    arrays = [tensor.numpy() for tensor in (products, norms, base, centre, ends)]
    filled = losses.numpy()
    run_blocks(
        lambda begin, end: _kernels.negative_weights(*arrays, scale, CUT, filled, begin, end),
        _kernels.row_blocks(np.arange(len(products) + 1) * products.shape[1]),
    )


def _spread(
    weights: torch.Tensor, queries: torch.Tensor, z: torch.Tensor, gradient: torch.Tensor, memory: _Memory
) -> tuple[torch.Tensor, torch.Tensor]:
    """Σ_j c_qj [b] and Σ_j c_qj z_j [b, d]; adds Σ_q c_qj (q − z_j) to the gradient of every z_j."""
    heavy = weights.sum(0)
    ordered, order = heavy.sort(descending=True)
    counted = int((ordered.cumsum(0) < (1 - DROPPED) * ordered.sum()).sum()) + 1
    columns = order[:counted].sort()[0]
    shape = len(weights), counted
    chosen = torch.index_select(weights, 1, columns, out=memory.chosen[: shape[0] * shape[1]].view(shape))
    near = torch.index_select(z, 0, columns, out=memory.near[:counted])
    back = torch.mm(chosen.T, queries, out=memory.back[:counted])
    gradient.index_add_(0, columns, back.addcmul_(heavy[columns, None], near, value=-1))
    return chosen.sum(1), chosen @ near
