"""The functions of a backend over tensors of one device: what `reference.py` defines, without a copy to the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from stea_fast._backends import tensor_pairs
from stea_fast._backends.device_data import DeviceAlignment, Sparse, Strengths
from stea_fast._backends.tensor_proposals import proposals
from stea_fast._backends.witnesses import by_neighbour
from stea_fast.data.device_graph import DeviceGraph
from stea_fast.types import Beliefs, RelationAlignment

if TYPE_CHECKING:
    from stea_fast._backends.cuda import DeviceCounts, Kernels


class TensorBackend:
    """Graphs are `DeviceGraph`s, and beliefs, candidates and results tensors of the kernels' device.

    Args:
        kernels: the kernels of the device.
        rows_per_block: compute the evidence of this many rows at a time.
    """

    pairs = tensor_pairs  # the kernels over a pair set

    def __init__(self, kernels: Kernels, rows_per_block: int | None = None) -> None:
        self.kernels, self.rows_per_block = kernels, rows_per_block

    def strengths(self, relations: RelationAlignment, kg1: DeviceGraph, kg2: DeviceGraph) -> Strengths:
        """Probability times inverse functionality; one result serves both directions."""
        return Strengths.of(DeviceAlignment.upload(relations, self.kernels.device), kg1, kg2)

    def evidence(
        self, source: DeviceGraph, target: DeviceGraph, candidates: Tensor, beliefs: Beliefs, strengths: Strengths,
        *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
    ) -> Tensor:  # fmt: skip
        """L(e, e') for every row e and candidate e': float32 [rows, k]."""
        table = strengths.forward if forward else strengths.backward
        first, last = rows
        step = self.rows_per_block or max(last - first, 1)
        parts = []
        for begin in range(first, last, step):
            end = min(begin + step, last)
            block = candidates[begin - first : end - first]
            parts.append(
                self.kernels.evidence(source, target, block, beliefs, table, rows=(begin, end), witnesses=witnesses)
            )
        return torch.cat(parts) if parts else candidates.new_empty(candidates.shape, dtype=torch.float32)

    def evidence_of_pairs(
        self, source: DeviceGraph, target: DeviceGraph, indptr: Tensor, columns: Tensor, beliefs: Beliefs,
        strengths: Strengths, *, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """float32 and int32 [pairs]: L(e, e') of sparse pairs, and the number of neighbour pairs that add to it."""
        given = source, target, (indptr, columns), beliefs, strengths.forward
        return self.kernels.evidence_and_witnesses(*given, rows=rows, witnesses=witnesses)

    def proposals(
        self, source: DeviceGraph, target: DeviceGraph, beliefs: Beliefs, strengths: Strengths, open_rows: Tensor,
        open_targets: Tensor, *, k: int, budget: int, forward: bool, rows: tuple[int, int], n_threads: int = 1,
        witnesses: str = "statement",
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The k targets of every row for which its neighbours' beliefs speak most: int32 and float32 [rows, k]."""
        table = strengths.forward if forward else strengths.backward
        return proposals(
            source, target, beliefs, table, open_rows, open_targets, k=k, budget=budget, rows=rows,
            strongest=by_neighbour(witnesses),
        )  # fmt: skip

    def changes_around(
        self, source: DeviceGraph, shares: Tensor, changes: Tensor, moved: Tensor, weights: Tensor,
        *, rows: tuple[int, int], n_threads: int = 1,
    ) -> Tensor:  # fmt: skip
        """How much of what the neighbours of every row say has changed: float32 [rows]."""
        begin, end = rows
        offsets, edges = source.indptr[begin : end + 1], source.edges
        if rows != (0, source.num_entities):
            edges = edges[int(offsets[0]) : int(offsets[-1])]
        edges = edges.long()
        changed = moved.double()[edges[:, 0]] + changes.double()[edges[:, 1]] * weights.double()[edges[:, 0]]
        return tensor_pairs.segment(shares.double()[edges[:, 1]] * changed, offsets - offsets[0], "sum").float()

    def relation_counts(
        self, source: DeviceGraph, target: DeviceGraph, beliefs: Beliefs, *, rows: tuple[int, int], n_threads: int = 1
    ) -> DeviceCounts:
        """num(r, r') and den(r) over the triples whose head is in the range of rows."""
        edges = (0, len(source.edges))
        if rows != (0, source.num_entities):
            edges = int(source.indptr[rows[0]]), int(source.indptr[rows[1]])
        return self.kernels.relation_counts(source, target, beliefs, edges=edges)

    def containment(self, counts: DeviceCounts, num_target_relations: int, smoothing: float, prior: float) -> Sparse:
        """[2R, 2R'] float32: the smoothed probability of every observed pair, completed by the inverses."""
        return containment(counts, num_target_relations, smoothing, prior)


def containment(counts: DeviceCounts, num_target_relations: int, smoothing: float, prior: float) -> Sparse:
    """As `counts.containment`, by keys: a sort of them takes the place of the exchange of runs in every row."""
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
