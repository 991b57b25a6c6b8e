"""Selection of pseudo mappings over tensors: the strategies of `select.py` in torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from stea_fast._backends.cuda import Kernels

Ranking = tuple[Tensor, Tensor]  # int32 [n, k] best first, and float32 [n, k]
Selection = tuple[Tensor, Tensor]  # int64 [m, 2] and float32 [m]


def select(
    kernels: Kernels, strategy: str, forward: Ranking, backward: Ranking | None, threshold: float | None, seeds: Tensor
) -> Selection:
    """Select from refined probabilities by the name of the strategy; the names have been checked."""
    if strategy == "none":
        empty = seeds.new_empty((0, 2))
        return empty, empty.new_empty(0, dtype=torch.float32)
    if strategy != "uni" and backward is None:
        raise ValueError(f"select={strategy!r} needs candidates in both directions; only one was given")
    if strategy == "mutual":
        assert backward is not None
        return _without_seeds(mutual_pairs(kernels, forward, backward, threshold or 0.0), seeds)
    if threshold is None:
        raise ValueError(f"select={strategy!r} needs a threshold")
    parts = []
    if strategy in ("uni", "bi"):
        parts.append(above_threshold(forward, threshold))
    if strategy in ("uni_backward", "bi"):
        assert backward is not None
        pairs, probs = above_threshold(backward, threshold)
        parts.append((pairs.flip(1), probs))
    return _without_seeds(_union(parts), seeds)


def mutual_pairs(kernels: Kernels, forward: Ranking, backward: Ranking, above: float) -> Selection:
    """Pairs that are each other's best candidate, where √(p·p') is above a threshold."""
    partner, value = kernels.mutual_best(forward, backward)
    sources = torch.nonzero((partner >= 0) & (value > above))[:, 0]
    return torch.stack([sources, partner[sources].long()], dim=1), value[sources]


def above_threshold(ranking: Ranking, threshold: float) -> Selection:
    """Every row's best candidate, which stands first, where its score is above the threshold."""
    best, score = ranking[0][:, 0].long(), ranking[1][:, 0]
    rows = torch.nonzero((best >= 0) & (score > threshold))[:, 0]
    return torch.stack([rows, best[rows]], dim=1), score[rows]


def _union(parts: list[Selection]) -> Selection:
    """All pairs of the parts, each once with its largest value, in increasing order."""
    pairs, values = torch.cat([pairs for pairs, _ in parts]), torch.cat([values for _, values in parts])
    distinct, place = torch.unique(pairs, dim=0, return_inverse=True)
    largest = torch.full((len(distinct),), -torch.inf, dtype=values.dtype, device=values.device)
    return distinct, largest.scatter_reduce(0, place, values, "amax")


def _without_seeds(found: Selection, seeds: Tensor) -> Selection:
    pairs, values = found
    free = ~(torch.isin(pairs[:, 0], seeds[:, 0]) | torch.isin(pairs[:, 1], seeds[:, 1]))
    return pairs[free], values[free]
