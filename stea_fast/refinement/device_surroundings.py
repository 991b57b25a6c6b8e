"""What a joint refinement looks at around the entities, as tensors of a device; see `Surroundings`."""

from __future__ import annotations

from functools import cached_property

import torch
from scipy.sparse import csr_array
from torch import Tensor

from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs, Sparse
from stea_fast.data.device_graph import DeviceGraph
from stea_fast.refinement.surroundings import Surroundings
from stea_fast.types import Beliefs, RelationAlignment


class DeviceSurroundings:
    """The same as `Surroundings`, whose graphs and beliefs of values are copied to a device once.

    Args:
        host: what to copy.
        device: where to.
    """

    def __init__(self, host: Surroundings, device: torch.device) -> None:
        self.host, self.device = host, device

    @cached_property
    def graphs(self) -> tuple[DeviceGraph, DeviceGraph]:
        """The graphs with their values."""
        first, second = (DeviceGraph.upload(kg, self.device) for kg in self.host.graphs)
        return first, second

    @cached_property
    def _fixed(self) -> list[DeviceBeliefs]:
        assert self.host.values is not None
        return [DeviceBeliefs.upload(held, self.device) for held in self.host.values.beliefs]

    def beliefs(self, side: int, held: Beliefs) -> Beliefs:
        """Beliefs about the entities of graph 0 or 1, and behind them those about its values."""
        if self.host.values is None:
            return held
        fixed = self._fixed[side]
        return Beliefs(
            torch.cat([held.indptr, held.indptr[-1] + fixed.indptr[1:]]),
            torch.cat([held.targets, fixed.targets]),
            torch.cat([held.weights, fixed.weights]),
        )

    def open(self, side: int, entities: Tensor) -> Tensor:
        """bool: which entities of graph 0 or 1 may get counterparts; values never."""
        extra = self.host.graphs[side].num_entities - len(entities)
        return torch.cat([entities, entities.new_zeros(extra)]) if extra else entities

    def relation_changes(self, before: RelationAlignment, now: RelationAlignment) -> tuple[Tensor, Tensor]:
        """float32 [2R1] and [2R2]: the largest change of a probability in which a relation has part."""
        assert isinstance(before, DeviceAlignment) and isinstance(now, DeviceAlignment)
        rows1, columns1 = _largest_changes(before.device12, now.device12)
        rows2, columns2 = _largest_changes(before.device21, now.device21)
        return torch.maximum(rows1, columns2), torch.maximum(columns1, rows2)

    def affinity(self, at_seeds: csr_array) -> Sparse:
        """What relations have in common at seeds and, of attributes, at values."""
        matrix = self.host.affinity(at_seeds)
        matrix.sort_indices()
        return Sparse.upload(matrix, self.device)

    def with_affinity(
        self, alignment: RelationAlignment, affinity: Sparse, statements1: Tensor, statements2: Tensor
    ) -> DeviceAlignment:
        """The alignment, with a prior for the pairs of relations that it has not seen; see `start.py`."""
        assert isinstance(alignment, DeviceAlignment)
        sub12, sub21 = alignment.device12, alignment.device21
        unseen = ~torch.isin(affinity.keys, torch.cat([sub12.keys, sub21.transposed_keys()]))
        keys, values = affinity.keys[unseen], affinity.values[unseen].double()
        r, r2 = keys // affinity.width, keys % affinity.width
        left1, left2 = (1.0 / (1.0 + dens.repeat(2)) for dens in (statements1, statements2))
        return DeviceAlignment(
            _sum(sub12, keys, (values * left1[r]).float()),
            _sum(sub21, r2 * sub21.width + r, (values * left2[r2]).float()),
            alignment.default,
        )

    def aligned(self, sub12: Sparse, sub21: Sparse) -> DeviceAlignment:
        """An alignment of two containments, as the kernels give them."""
        return DeviceAlignment(sub12, sub21)


def _largest_changes(before: Sparse, now: Sparse) -> tuple[Tensor, Tensor]:
    """float32 [height] and [width]: the largest difference of two matrices in every row, and in every column."""
    keys = torch.unique(torch.cat([before.keys, now.keys]))
    change = torch.zeros(len(keys), device=keys.device)
    change[torch.searchsorted(keys, now.keys)] = now.values
    places = torch.searchsorted(keys, before.keys)
    change[places] = change[places] - before.values
    sizes = (keys // now.width, now.height), (keys % now.width, now.width)
    rows, columns = (
        torch.zeros(size, device=keys.device).scatter_reduce(0, group, change.abs(), "amax") for group, size in sizes
    )
    return rows, columns


def _sum(matrix: Sparse, keys: Tensor, values: Tensor) -> Sparse:
    """With further entries, of which none is stored before."""
    kept = values > 0
    together, order = torch.sort(torch.cat([matrix.keys, keys[kept]]))
    return Sparse(together, torch.cat([matrix.values, values[kept]])[order], matrix.height, matrix.width)
