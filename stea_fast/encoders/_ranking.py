"""The margin ranking loss by L1 distance that RREA and GCN-Align share."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stea_fast._util.sparse import offsets
from stea_fast.encoders.kernels import bodies
from stea_fast.encoders.kernels.bodies import run_blocks


def l1_ranking_loss(z: torch.Tensor, triplets: torch.Tensor, margin: float) -> torch.Tensor:
    """Σ relu(margin + ‖a − b‖₁ − ‖a − n‖₁) over triplets [t, 3] of anchor, positive and negative rows of z [N, d]."""
    if z.device.type == "cpu":
        return _L1Ranking.apply(z, triplets, margin)  # type: ignore[no-untyped-call]
    return plain(z, triplets, margin)


def plain(z: torch.Tensor, triplets: torch.Tensor, margin: float) -> torch.Tensor:
    """The definition, differentiated by torch: for other devices, and to compare with."""
    a, b, n = (z[column] for column in triplets.T)
    return (margin + (a - b).abs().sum(1) - (a - n).abs().sum(1)).relu().sum()


class _L1Ranking(torch.autograd.Function):
    """Signs are added up entity by entity: no vector per triplet is stored."""

    @staticmethod
    def forward(ctx: Any, z: torch.Tensor, triplets: torch.Tensor, margin: float) -> torch.Tensor:
        values = z.new_empty(len(triplets))
        arrays = z.contiguous().numpy(), triplets.contiguous().numpy(), margin, values.numpy()
        blocks = bodies.row_blocks(np.arange(len(triplets) + 1))
        run_blocks(lambda begin, end: bodies.l1_margins(*arrays, begin, end), blocks)
        ctx.save_for_backward(z, triplets[values > 0])
        return values.relu().sum()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        z, active = ctx.saved_tensors
        entities = active.numpy().reshape(-1)
        indptr = offsets(entities, len(z))
        out = torch.empty_like(z, memory_format=torch.contiguous_format)
        arrays = z.contiguous().numpy(), active.numpy(), indptr, np.argsort(entities, kind="stable"), out.numpy()
        blocks = bodies.row_blocks(indptr)
        run_blocks(lambda begin, end: bodies.l1_gradient(*arrays, begin, end), blocks)
        return out.mul_(grads[0]), None, None
