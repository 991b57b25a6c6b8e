"""The loss of Dual-AMN: every entity is a negative, and the hardest ones carry the gradient.

For a pair (l, r), D the squared Euclidean distance, p = D(l, r), and j over ALL N entities of both graphs:
u_j = (p − D(l, j) + γ)·(1 − [j=l] − [j=r]), and v_j with D(r, j); û = (u − mean u) / std u with the mean and the
(population) deviation held constant; loss = mean over pairs of LSE_j(λ û_j + 10) + LSE_j(λ v̂_j + 10).

The masked entries stay in the sum as (0 − mean) / std: they are what ends the push once a pair is learnt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stea_fast.encoders import kernels

OFFSET = 10.0  # of the logits; no gradient depends on it
ROWS = 512  # queries per block: what is stored of the 2B × N products at a time
CUT = 8.0  # entries below e⁻⁸ of the largest of their row have no gradient: 1 % of it in the first epochs, then .2 %
MANY = 4096  # entities from which on 8-bit numbers are worth their making


def hard_negative_loss(
    z: torch.Tensor, left: torch.Tensor, right: torch.Tensor, gamma: float, scale: float
) -> torch.Tensor:
    """The loss for embeddings z [N, d] and pairs left, right [B] of joint ids."""
    if z.device.type == "cpu":
        return _HardNegatives.apply(z, left, right, gamma, scale)  # type: ignore[no-untyped-call]
    return plain(z, left, right, gamma, scale, CUT)


def sampled(pairs: torch.Tensor, drawn: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The entities that were drawn or belong to the pairs [B, 2], and the places of the pairs among them.

    The loss of their embeddings is the loss with the drawn entities as negatives; without the ends of the pairs the
    masked entries would be missing from it.
    """
    pool = torch.unique(torch.cat([drawn, pairs.flatten()]))
    return pool, torch.searchsorted(pool, pairs)


def plain(
    z: torch.Tensor, left: torch.Tensor, right: torch.Tensor, gamma: float, scale: float, cut: float = float("inf")
) -> torch.Tensor:
    """The definition with all negatives, differentiated by torch: for other devices, and to compare with.

    Entries below e^-cut of the largest of their row have no gradient.
    """
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
        logits = scale * normed
        logits = torch.where(logits < logits.amax(1, keepdim=True) - cut, logits.detach(), logits)
        total = total + torch.logsumexp(logits + OFFSET, dim=1)
    return total.mean()


class _HardNegatives(torch.autograd.Function):
    """Sums over all entities; the gradient over those that have one. It is made while the products are at hand."""

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
        ends = torch.stack([ids, partners], dim=1).int()
        gradient = torch.zeros_like(z)
        arrays = [tensor.numpy() for tensor in (queries, z, norms, base, centre, ends)]
        if len(z) >= MANY and kernels.chosen().multiplies_bytes():
            found = kernels.chosen().byte_negatives(*arrays, scale, CUT, gradient.numpy())
        else:
            found = _by_blocks(arrays, scale, gradient.numpy())
        losses, pushes, pulled = (torch.from_numpy(array) for array in found)
        # p gives 2C (q − o) at q and −2C (q − o) at o, C = Σ ∂LSE/∂u; D(q, j) gives −2 Σ c (q − z_j) at q.
        push = pushes[:, None]
        own = pulled - push * others + push.roll(len(left), 0) * (queries - others)
        ctx.gradient, ctx.factor = gradient.index_add_(0, ids, own), 2 / len(left)
        return losses.sum() / len(left) + 2 * OFFSET

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gradient, ctx.gradient = ctx.gradient, None  # [N, d], scaled where it is: only one backward pass is possible
        return gradient.mul_(grads[0] * ctx.factor), None, None, None, None


def _by_blocks(arrays: list[np.ndarray], scale: float, gradient: np.ndarray) -> tuple[np.ndarray, ...]:
    """From products of single precision, of some queries at a time."""
    queries, z, norms, *rest = arrays
    keys, parts = torch.from_numpy(z).T, []
    memory = np.empty((min(ROWS, len(queries)), len(z)), dtype=np.float32)  # new memory for each block costs a fifth
    for begin in range(0, len(queries), ROWS):
        block, *others = (array[begin : begin + ROWS] for array in (queries, *rest))
        products = memory[: len(block)]
        torch.mm(torch.from_numpy(block), keys, out=torch.from_numpy(products))
        parts.append(kernels.chosen().hard_negatives(products, block, z, norms, *others, scale, CUT, gradient))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
