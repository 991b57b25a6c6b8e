"""The array operations over tensors of one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stea_fast._util.ops_base import Ops


class TorchOps(Ops):
    """For tensors of one device."""

    lib = torch

    def __init__(self, device: Any) -> None:
        self.device = torch.device(device)

    def cast(self, values: Tensor, dtype: Any) -> Tensor:
        return values.to(dtype)

    def divide(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.where(b > 0, a / torch.where(b > 0, b, 1.0), 0.0)

    def at_least(self, values: Tensor, bound: float) -> Tensor:
        return values.clamp(min=bound)

    def at_most(self, values: Tensor, bound: float) -> Tensor:
        return values.clamp(max=bound)

    def largest(self, values: Tensor) -> Tensor:
        return values.amax(dim=-1) if values.shape[-1] else values.new_full(values.shape[:-1], -torch.inf)

    def smallest(self, values: Tensor) -> Tensor:
        return values.amin(dim=-1)

    def first_largest(self, values: Tensor) -> Tensor:
        # `argmax` leaves open which of equal values it returns, and knows no truth values.
        k = values.shape[1]
        values = values.int() if values.dtype == torch.bool else values
        return torch.where(values == values.amax(dim=1, keepdim=True), self.arange(k), k - 1).amin(dim=1)

    def some_largest(self, values: Tensor, count: int) -> Tensor:
        return values.topk(count, dim=1).indices

    def sums_of_runs(self, values: Tensor, counts: Tensor) -> Tensor:
        return torch.segment_reduce(values, "sum", lengths=counts, axis=0, unsafe=True)

    def arange(self, count: int) -> Tensor:
        return torch.arange(count, device=self.device)

    def all_true(self, size: int) -> Tensor:
        return torch.ones(size, dtype=torch.bool, device=self.device)

    def full(self, shape: int | tuple[int, ...], value: float, dtype: str = "float64") -> Tensor:
        size = (shape,) if isinstance(shape, int) else shape
        return torch.full(size, value, dtype=getattr(torch, dtype), device=self.device)

    def put(self, values: Tensor, mask: Tensor, others: Tensor) -> None:
        values.copy_(torch.where(mask, others, values))

    def log_add(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.logaddexp(a, b)

    def places(self, ordered: Tensor, values: Tensor) -> Tensor:
        return torch.searchsorted(ordered, values)

    def number(self, value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64, device=self.device)

    def scalars(self, *values: Tensor) -> tuple[float, ...]:
        return tuple(torch.stack(values).tolist())  # one copy for all of them

    def positions(self, values: np.ndarray) -> Tensor:
        return torch.as_tensor(values, dtype=torch.int64, device=self.device)

    def nonzero(self, mask: Tensor) -> Tensor:
        return torch.nonzero(mask)[:, 0]

    def empty(self, rows: int, columns: int) -> Tensor:
        return torch.empty((rows, columns), dtype=torch.float64, device=self.device)

    def copy(self, values: Tensor) -> Tensor:
        return values.clone()

    def contiguous(self, values: Tensor) -> Tensor:
        return values.contiguous()

    def is_number(self, values: Tensor, *, integer: bool = False) -> bool:
        unusual = values.dtype.is_complex or values.dtype == torch.bool
        return not (unusual or (integer and values.dtype.is_floating_point))

    def order(self, values: Tensor) -> Tensor:
        return torch.argsort(values, dim=-1, stable=True)

    def lexsort(self, keys: Sequence[Tensor]) -> Tensor:
        order = self.order(keys[0])
        for key in keys[1:]:
            order = order[self.order(key[order])]
        return order

    def sort(self, values: Tensor) -> Tensor:
        return torch.sort(values, dim=-1).values

    def take(self, values: Tensor, order: Tensor) -> Tensor:
        return torch.take_along_dim(values, order, dim=1)

    def repeat(self, values: Tensor, counts: Tensor) -> Tensor:
        return torch.repeat_interleave(values, counts)

    def offsets(self, counts: Tensor) -> Tensor:
        indptr = torch.zeros(len(counts) + 1, dtype=torch.int64, device=self.device)
        torch.cumsum(counts, dim=0, out=indptr[1:])
        return indptr

    def histogram(self, groups: Tensor, count: int) -> Tensor:
        return torch.bincount(groups, minlength=count)

    def pad(self, values: Tensor, count: int, value: float) -> Tensor:
        return torch.nn.functional.pad(values, (0, count), value=value)

    def distinct(self, values: Tensor) -> tuple[Tensor, Tensor]:
        kinds, kind = torch.unique(values, dim=0, return_inverse=True)
        first = torch.empty(len(kinds), dtype=torch.int64, device=self.device)
        first[kind] = self.arange(len(kind))
        return first, kind
