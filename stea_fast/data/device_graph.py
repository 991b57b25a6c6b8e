"""The copy of a graph that lies on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class HostGraph(Protocol):
    """What is read of a `KG`, and the copy of it that `KG.to` has made, if any."""

    num_entities: int
    num_relations: int
    indptr: np.ndarray
    edges: np.ndarray
    device_graph: DeviceGraph | None

    @property
    def inverse_functionality(self) -> np.ndarray:
        """float32 [2R]."""

    @property
    def num_triples(self) -> int:
        """Number of distinct triples."""


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """The arrays of a KG that kernels read.

    Attributes:
        indptr: int64 [num_entities + 1]
        edges: int32 [num_edges, 2], (neighbor, relation)
        inverse_functionality: float32 [2R]
    """

    indptr: Tensor
    edges: Tensor
    inverse_functionality: Tensor
    num_entities: int
    num_relations: int
    num_triples: int

    @classmethod
    def upload(cls, kg: HostGraph, device: torch.device) -> DeviceGraph:
        """Copy a graph to a device, unless `KG.to` has done so."""
        held = kg.device_graph
        if held is not None and held.indptr.device == device:
            return held

        def copy(array: np.ndarray) -> Tensor:
            return torch.tensor(array, device=device)

        sizes = kg.num_entities, kg.num_relations, kg.num_triples
        return cls(copy(kg.indptr), copy(kg.edges), copy(kg.inverse_functionality), *sizes)
