"""The few array operations on which NumPy and torch disagree."""

from __future__ import annotations

from typing import Any

import numpy as np


class NumpyOps:
    """For NumPy arrays."""

    def divide(self, a: Any, b: Any) -> Any:
        """a / b; 0 where b is 0."""
        return np.divide(a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b))), where=b > 0)

    def where(self, mask: Any, a: Any, b: float) -> Any:
        """`a` where the mask is true, else `b`."""
        return np.where(mask, a, b)

    def log2(self, values: Any) -> Any:
        """Elementwise."""
        return np.log2(values)

    def ceil(self, values: Any) -> Any:
        """Elementwise."""
        return np.ceil(values)

    def round(self, values: Any, quantum: Any) -> Any:
        """To the nearest multiple of the quantum."""
        return np.round(values / quantum) * quantum

    def arange(self, count: int) -> Any:
        """0, 1, …, count - 1."""
        return np.arange(count)

    def positions(self, values: np.ndarray) -> Any:
        """Integers to index with."""
        return values

    def nonzero(self, mask: Any) -> Any:
        """The positions at which a vector is true."""
        return np.flatnonzero(mask)

    def empty(self, rows: int, columns: int) -> Any:
        """float64 [rows, columns], not initialised."""
        return np.empty((rows, columns))

    def single(self, values: Any) -> Any:
        """Rounded to float32."""
        return values.astype(np.float32)

    def double(self, values: Any) -> Any:
        """As float64."""
        return values.astype(np.float64)

    def order(self, values: Any) -> Any:
        """What sorts every row in increasing order; ties keep their order."""
        return np.argsort(values, axis=1, kind="stable")

    def take(self, values: Any, order: Any) -> Any:
        """Every row in the given order."""
        return np.take_along_axis(values, order, axis=1)

    def pad(self, values: Any, count: int, value: float) -> Any:
        """With `count` more columns."""
        return np.pad(values, ((0, 0), (0, count)), constant_values=value)

    def join(self, left: Any, right: Any) -> Any:
        """The columns of both."""
        return np.concatenate([left, right], axis=1)

    def distinct(self, values: Any) -> tuple[Any, Any]:
        """The place of one row of every kind of equal rows, and for every row the number of its kind."""
        values = np.ascontiguousarray(values)
        as_bytes = values.view(np.dtype((np.void, values.itemsize * values.shape[1])))[:, 0]
        _, first, kind = np.unique(as_bytes, return_index=True, return_inverse=True)
        return first, kind


class TorchOps:
    """For tensors of one device."""

    def __init__(self, device: Any) -> None:
        import torch

        self.torch, self.device = torch, device

    def divide(self, a: Any, b: Any) -> Any:
        """a / b; 0 where b is 0."""
        return self.torch.where(b > 0, a / self.torch.where(b > 0, b, 1.0), 0.0)

    def where(self, mask: Any, a: Any, b: float) -> Any:
        """`a` where the mask is true, else `b`."""
        return self.torch.where(mask, a, b)

    def log2(self, values: Any) -> Any:
        """Elementwise."""
        return self.torch.log2(values)

    def ceil(self, values: Any) -> Any:
        """Elementwise."""
        return self.torch.ceil(values)

    def round(self, values: Any, quantum: Any) -> Any:
        """To the nearest multiple of the quantum."""
        return self.torch.round(values / quantum) * quantum

    def arange(self, count: int) -> Any:
        """0, 1, …, count - 1."""
        return self.torch.arange(count, device=self.device)

    def positions(self, values: np.ndarray) -> Any:
        """Integers to index with."""
        return self.torch.as_tensor(values, dtype=self.torch.int64, device=self.device)

    def nonzero(self, mask: Any) -> Any:
        """The positions at which a vector is true."""
        return self.torch.nonzero(mask)[:, 0]

    def empty(self, rows: int, columns: int) -> Any:
        """float64 [rows, columns], not initialised."""
        return self.torch.empty((rows, columns), dtype=self.torch.float64, device=self.device)

    def single(self, values: Any) -> Any:
        """Rounded to float32."""
        return values.to(self.torch.float32)

    def double(self, values: Any) -> Any:
        """As float64."""
        return values.to(self.torch.float64)

    def order(self, values: Any) -> Any:
        """What sorts every row in increasing order; ties keep their order."""
        return self.torch.argsort(values, dim=1, stable=True)

    def take(self, values: Any, order: Any) -> Any:
        """Every row in the given order."""
        return self.torch.take_along_dim(values, order, dim=1)

    def pad(self, values: Any, count: int, value: float) -> Any:
        """With `count` more columns."""
        return self.torch.nn.functional.pad(values, (0, count), value=value)

    def join(self, left: Any, right: Any) -> Any:
        """The columns of both."""
        return self.torch.cat([left, right], dim=1)

    def distinct(self, values: Any) -> tuple[Any, Any]:
        """The place of one row of every kind of equal rows, and for every row the number of its kind."""
        kinds, kind = self.torch.unique(values, dim=0, return_inverse=True)
        first = self.torch.empty(len(kinds), dtype=self.torch.int64, device=self.device)
        first[kind] = self.arange(len(kind))
        return first, kind


Ops = NumpyOps | TorchOps
