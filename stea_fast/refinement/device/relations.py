"""Relation alignment over tensors: `relations.py` in torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs, Sparse
from stea_fast.data.device_graph import DeviceGraph

if TYPE_CHECKING:
    from stea_fast._backends.cuda import DeviceCounts, Kernels


def align_relations(
    kernels: Kernels,
    graphs: tuple[DeviceGraph, DeviceGraph],
    beliefs: tuple[DeviceBeliefs, DeviceBeliefs],
    smoothing: float,
    prior: float,
) -> DeviceAlignment:
    """P(r ⊆ r') and P(r' ⊆ r) for all observed pairs of relations."""

    def one_side(source: DeviceGraph, target: DeviceGraph, held: DeviceBeliefs) -> Sparse:
        counts = kernels.relation_counts(source, target, held, edges=(0, len(source.edges)))
        return containment(counts, target.num_relations, smoothing, prior)

    return DeviceAlignment(one_side(*graphs, beliefs[0]), one_side(*graphs[::-1], beliefs[1]))


def containment(counts: DeviceCounts, num_target_relations: int, smoothing: float, prior: float) -> Sparse:
    """[2R, 2R'] float32: the smoothed probability of every observed pair, completed by the inverses."""
    num_relations, width = len(counts.den), 2 * num_target_relations
    r, r2 = counts.keys // width, counts.keys % width
    scale = 2.0**-counts.scale_bits
    denominator = (counts.den.double() * scale + smoothing).clamp(min=1e-300)
    probs = ((counts.num.double() * scale + smoothing * prior) / denominator[r]).clamp(max=1.0).float()
    # r ⊆ r' says the same as r⁻ ⊆ r'⁻.
    inverse: Tensor = (r + num_relations) * width + (r2 + num_target_relations) % width
    inverse, order = torch.sort(inverse)
    keys = torch.cat([counts.keys, inverse])
    return Sparse(keys, torch.cat([probs, probs[order]]), 2 * num_relations, width)
