"""Propagation on a device: the formulas of `propagation.py` over tensors, which stay there.

The structure of a graph and the random numbers are made on the host and copied to the device. Sums are taken in the
order of the entries, row by row, so that two runs on a device have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array, hstack, vstack
from torch import Tensor

from stea_fast._util.progress import Step
from stea_fast.data.graph import KG
from stea_fast.encoders._propagated_graph import BATCH, HOPS, column_blocks, edges_of, placed, projection, structure
from stea_fast.encoders.kernels.propagated import FEATURES

GATHERED_BYTES = 1 << 28  # of vectors that are copied side by side before they are added up


def embed(
    kg: KG, seeds: np.ndarray, dim: int, relation_dim: int, seed: int, device: torch.device, step: Step
) -> Tensor:
    """float32 [n, 16 · relation_dim]: the triple view of one graph, from the random numbers of the host's path."""
    rng = np.random.default_rng(seed)
    anchors = _copied(projection(rng, len(seeds), dim), device)
    hops = _Hops.of(kg, seeds, anchors)
    depth = hops.relations.shape[1]
    strengths = hops.relations @ _copied(projection(rng, depth, relation_dim), device)
    out = torch.empty((kg.num_entities, relation_dim * FEATURES), device=device)
    squares = torch.zeros(kg.num_entities, dtype=torch.float64, device=device)
    view = _TripleView.of(kg, device)
    for begin in range(0, relation_dim, BATCH):
        chosen = strengths[:, begin : begin + BATCH]
        draws = [projection(rng, depth, FEATURES) for _ in range(chosen.shape[1])]
        features = hops.projected(anchors, _copied(np.concatenate(draws, axis=1), device))
        view.fill(out[:, begin * FEATURES :][:, : features.shape[1]], chosen, features, squares)
        step(1.0)
    out /= squares.sqrt().clamp_min(1e-12).float()[:, None]
    return out


class _Rows(NamedTuple):
    """A sparse matrix whose entries are on a device."""

    indptr: np.ndarray  # int64 [rows + 1], on the host: it says which entries are looked at together
    lengths: Tensor
    columns: Tensor
    values: Tensor

    @classmethod
    def of(cls, matrix: csr_array, device: torch.device) -> _Rows:
        indptr = matrix.indptr.astype(np.int64)
        lengths, columns = np.diff(indptr), matrix.indices.astype(np.int64)
        return cls(indptr, *(_copied(array, device) for array in (lengths, columns, matrix.data)))

    def divided(self, squares: Tensor) -> _Rows:
        """The rows divided by the roots of these squares; what is zero stays zero."""
        inverse = (1 / squares.sqrt().clamp_min(1e-12)).float()
        return self._replace(values=self.values * inverse.repeat_interleave(self.lengths))

    def __matmul__(self, x: Tensor) -> Tensor:
        out = x.new_empty((len(self.lengths), x.shape[1]))
        for rows, entries in _parts(self.indptr, x.shape[1]):
            gathered = self.values[entries, None] * x[self.columns[entries]]
            out[rows] = _sums(gathered, self.lengths[rows])
        return out


class _Hops(NamedTuple):
    """As `_Hops` of `propagation.py`."""

    first: _Rows
    whole: _Rows
    relations: Tensor

    @classmethod
    def of(cls, kg: KG, seeds: np.ndarray, anchors: Tensor) -> _Hops:
        adjacency, heads, tails = structure(kg)
        n, device, there = kg.num_entities, anchors.device, placed(seeds, kg.num_entities)
        reaching = vstack([adjacency @ there, heads @ there], format="csr")
        onward = hstack([adjacency, tails], format="csr")
        near, again, beyond = (_Rows.of(matrix, device) for matrix in (reaching, heads, onward))
        far = torch.zeros(reaching.shape[0], dtype=torch.float64, device=device)
        for block in column_blocks(anchors.shape[1]):
            far += (near @ anchors[:, block]).square().sum(1)
        near, second = near.divided(far), far.new_zeros(n)
        levels = [anchors.new_zeros((2 * kg.num_relations, anchors.shape[1])) for _ in range(HOPS + 1)]
        for block in column_blocks(anchors.shape[1]):
            reached = near @ anchors[:, block]
            levels[1][:, block], levels[2][:, block] = reached[n:], again @ reached[:n]
            second += (beyond @ reached).square().sum(1)
        reached_by = _copied(np.bincount(seeds, minlength=n) > 0, device).double() + (far[:n] > 0) + (second > 0)
        whole = _side_by_side((there, reaching[:n], onward), (None, near, beyond.divided(second)), device)
        relations = _unit_rows(torch.cat([_unit_rows(level) for level in levels], dim=1))
        return cls(near, whole.divided(reached_by), relations)

    def projected(self, anchors: Tensor, projections: Tensor) -> Tensor:
        """e P: float32 [n, d] from P [3 · dim, d]."""
        parts = [anchors @ part for part in torch.split(projections, anchors.shape[1])]
        return self.whole @ torch.cat([*parts[:HOPS], self.first @ parts[HOPS]])


class _TripleView(NamedTuple):
    """The edges of a graph: of every entity its neighbours and the relations that lead to them."""

    indptr: np.ndarray
    lengths: Tensor
    neighbours: Tensor
    relations: Tensor

    @classmethod
    def of(cls, kg: KG, device: torch.device) -> _TripleView:
        rows, neighbours, relations = (array.astype(np.int64) for array in edges_of(kg))
        indptr = np.searchsorted(rows, np.arange(kg.num_entities + 1))
        return cls(indptr, *(_copied(array, device) for array in (np.diff(indptr), neighbours, relations)))

    def fill(self, out: Tensor, strengths: Tensor, x: Tensor, squares: Tensor) -> None:
        """out[i, 16k + c] = Σ strengths[relation, k] · x[neighbour, 16k + c] over the edges of i; adds the squares."""
        shape = -1, strengths.shape[1], FEATURES
        for rows, edges in _parts(self.indptr, x.shape[1]):
            weights = strengths[self.relations[edges]]
            gathered = (weights[:, :, None] * x[self.neighbours[edges]].view(shape)).view(-1, x.shape[1])
            made = _sums(gathered, self.lengths[rows])
            out[rows] = made
            squares[rows] += made.double().square().sum(1)


def _parts(indptr: np.ndarray, width: int) -> Iterator[tuple[slice, slice]]:
    """Ranges of rows, and of their entries, whose vectors of this width are about as large as may be gathered."""
    at_once = max(1, GATHERED_BYTES // (4 * width))
    ends = np.searchsorted(indptr, np.arange(0, indptr[-1] + at_once, at_once), side="right") - 1
    bounds = np.unique(np.append(ends, [0, len(indptr) - 1]))
    for begin, end in pairwise(bounds.tolist()):
        yield slice(begin, end), slice(int(indptr[begin]), int(indptr[end]))


def _sums(entries: Tensor, lengths: Tensor) -> Tensor:
    """The sum of every row's entries, in their order."""
    return torch.segment_reduce(entries, "sum", lengths=lengths, axis=0, unsafe=True)


def _side_by_side(matrices: tuple[csr_array, ...], on_device: tuple[_Rows | None, ...], device: torch.device) -> _Rows:
    """The matrices side by side, with the values that their first rows have on the device where these were changed."""
    values, numbered, begin = [], [], 0
    for matrix, changed in zip(matrices, on_device, strict=True):
        values.append(_copied(matrix.data, device) if changed is None else changed.values[: matrix.nnz])
        places = np.arange(begin, begin + matrix.nnz)
        numbered.append(csr_array((places, matrix.indices, matrix.indptr), shape=matrix.shape))
        begin += matrix.nnz
    whole = _Rows.of(hstack(numbered, format="csr"), device)
    return whole._replace(values=torch.cat(values)[whole.values])


def _unit_rows(matrix: Tensor) -> Tensor:
    """Every row divided by its norm; a zero row stays zero."""
    return matrix / torch.linalg.vector_norm(matrix, dim=1, keepdim=True).clamp_min(1e-12)


def _copied(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
