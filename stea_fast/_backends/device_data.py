"""What lies on the device beside the graphs: beliefs, and sparse matrices over pairs of relations."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from stea_fast.data.device_graph import DeviceGraph
from stea_fast.types import Beliefs, RelationAlignment

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MIX, _SPREAD, _LOW = 0x9E3779B1, 0x85EBCA6B, 0xFFFFFFFF  # as in csrc/kernels/cuda/search.cuh


class DeviceBeliefs(NamedTuple):
    """`Beliefs` as tensors: int64 [n + 1], int32 [nnz], float32 [nnz]."""

    indptr: Tensor
    targets: Tensor
    weights: Tensor

    @classmethod
    def upload(cls, beliefs: Beliefs, device: torch.device) -> DeviceBeliefs:
        """Copy beliefs to a device."""
        return cls(
            *(torch.tensor(array, device=device) for array in (beliefs.indptr, beliefs.targets, beliefs.weights))
        )

    def download(self) -> Beliefs:
        """Copy them back."""
        return Beliefs(*(part.cpu().numpy() for part in self))


def transposed(beliefs: DeviceBeliefs | Beliefs, num_targets: int) -> DeviceBeliefs:
    """Who believes in every target: row n' holds the entities n with w(n, n'), in increasing order."""
    indptr, targets, weights = beliefs
    targets, order = torch.sort(targets.long(), stable=True)
    entities = torch.searchsorted(indptr, order, right=True) - 1
    return DeviceBeliefs(indptr_of(targets, num_targets), entities.int(), weights[order])


class Sparse(NamedTuple):
    """A sparse matrix: keys row * width + column, increasing, and values.

    Attributes:
        keys: int64 [nnz]
        values: float32 [nnz]
    """

    keys: Tensor
    values: Tensor
    height: int
    width: int

    @classmethod
    def upload(cls, matrix: csr_array, device: torch.device) -> Sparse:
        """Copy a CSR matrix with sorted columns."""
        height, width = matrix.shape
        rows = np.repeat(np.arange(height, dtype=np.int64), np.diff(matrix.indptr))
        keys = torch.tensor(rows * width + matrix.indices, device=device)
        return cls(keys, torch.tensor(matrix.data, device=device), height, width)

    def download(self) -> csr_array:
        """Copy it back."""
        from scipy.sparse import csr_array

        rows, columns = np.divmod(self.keys.cpu().numpy(), self.width)
        return csr_array((self.values.cpu().numpy(), (rows, columns)), shape=(self.height, self.width))

    def transposed_keys(self) -> Tensor:
        """The key of every value in the transposed matrix."""
        return self.keys % self.width * self.height + self.keys // self.width


class DeviceAlignment(RelationAlignment):
    """A relation alignment on a device; its matrices come to the host when they are looked at."""

    def __init__(self, sub12: Sparse, sub21: Sparse, default: float = 0.0) -> None:
        self.device12, self.device21, self.default = sub12, sub21, default

    @property
    def shape(self) -> tuple[int, int]:
        """(2R1, 2R2), without a look at the matrices."""
        return self.device12.height, self.device12.width

    @cached_property
    def sub12(self) -> csr_array:  # type: ignore[override]
        """[2R1, 2R2], P(r ⊆ r')."""
        return self.device12.download()

    @cached_property
    def sub21(self) -> csr_array:  # type: ignore[override]
        """[2R2, 2R1], P(r' ⊆ r)."""
        return self.device21.download()

    @classmethod
    def upload(cls, relations: RelationAlignment, device: torch.device) -> DeviceAlignment:
        """Copy an alignment to a device, unless it is there."""
        if isinstance(relations, DeviceAlignment) and relations.device12.keys.device == device:
            return relations
        return cls(Sparse.upload(relations.sub12, device), Sparse.upload(relations.sub21, device), relations.default)


class StrengthRows(NamedTuple):
    """Strengths of pairs of relations: as sorted rows, and as a table by a hash, see csrc/kernels/cuda/views.h.

    Attributes:
        indptr, columns: int64 [2R + 1] and int32 [nnz] of the stored pairs
        values: float32 [nnz, 2]
        source_default, target_default: float32 [2R] and [2R'], strengths of pairs that are not stored
        starts: int32 [buckets + 1], where the pairs of a bucket begin
        pairs: int32 [nnz, 4], by bucket: both relations, and the bits of both strengths
    """

    indptr: Tensor
    columns: Tensor
    values: Tensor
    source_default: Tensor
    target_default: Tensor
    starts: Tensor
    pairs: Tensor

    @property
    def table(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What the evidence kernel takes."""
        return self.starts, self.pairs, self.source_default, self.target_default


class Strengths(NamedTuple):
    """Strengths of pairs of relations, seen from either graph."""

    forward: StrengthRows
    backward: StrengthRows

    @classmethod
    def of(cls, relations: DeviceAlignment, graph1: DeviceGraph, graph2: DeviceGraph) -> Strengths:
        """Probability times inverse functionality, in float32 as in every backend."""
        fun1, fun2 = graph1.inverse_functionality, graph2.inverse_functionality
        sub12, sub21 = relations.device12, relations.device21
        keys21 = sub21.transposed_keys()
        keys = torch.unique(torch.cat([sub12.keys, keys21]))
        r, r2 = keys // len(fun2), keys % len(fun2)
        values = torch.zeros((len(keys), 2), dtype=torch.float32, device=keys.device)
        values[torch.searchsorted(keys, keys21), 0] = sub21.values
        values[torch.searchsorted(keys, sub12.keys), 1] = sub12.values
        values *= torch.stack([fun1[r], fun2[r2]], dim=1)
        default = np.float32(relations.default).item()
        flipped, order = torch.sort(r2 * len(fun1) + r)
        return cls(
            _rows(keys, values, len(fun1), len(fun2), default * fun1, default * fun2),
            _rows(flipped, values[order].flip(1), len(fun2), len(fun1), default * fun2, default * fun1),
        )


def _rows(
    keys: Tensor, values: Tensor, height: int, width: int, source_default: Tensor, target_default: Tensor
) -> StrengthRows:
    columns = (keys % width).int()
    starts, pairs = _by_bucket(keys // width, columns, values)
    indptr = indptr_of(keys, height, width)
    return StrengthRows(indptr, columns, values.contiguous(), source_default, target_default, starts, pairs)


def _by_bucket(rows: Tensor, columns: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs in the order of their buckets, of which there are at least two for each, a power of two."""
    bits = max(2 * len(rows) - 1, 1).bit_length()
    mixed = (rows * _MIX + columns) & _LOW
    bucket, order = torch.sort(((mixed * _SPREAD) & _LOW) >> (32 - bits), stable=True)
    relations = torch.stack([rows.int(), columns], dim=1)
    pairs = torch.cat([relations, values.contiguous().view(torch.int32)], dim=1)
    return indptr_of(bucket, 1 << bits).int(), pairs[order]


def indptr_of(keys: Tensor, num_rows: int, width: int = 1) -> Tensor:
    """int64 [num_rows + 1]: where the rows begin in increasing keys row * width + column."""
    return torch.searchsorted(keys, torch.arange(num_rows + 1, device=keys.device) * width)
