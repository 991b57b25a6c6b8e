"""One name for what NumPy and torch call differently, so that a stage is written once for arrays and tensors.

A function over arrays asks `ops_of(array)` for the operations and calls the array's own operators for all else:
arithmetic, comparison, indexing, `.sum(1)`, `.any(1)`, `.mean()` and `.T` are the same in both. Tensors stay on their
device; only `scalars` brings numbers to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from stea_fast._util.arrays import is_torch
from stea_fast._util.ops_base import Array as Array
from stea_fast._util.ops_base import Ops as Ops


class NumpyOps(Ops):
    """For NumPy arrays."""

    lib = np

    def cast(self, values: Array, dtype: Any) -> Array:
        return values.astype(dtype)

    def divide(self, a: Array, b: Array) -> Array:
        return np.divide(a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b))), where=b > 0)

    def at_least(self, values: Array, bound: float) -> Array:
        return np.maximum(values, bound)

    def at_most(self, values: Array, bound: float) -> Array:
        return np.minimum(values, bound)

    def largest(self, values: Array) -> Array:
        return values.max(axis=-1, initial=-np.inf)

    def smallest(self, values: Array) -> Array:
        return values.min(axis=-1)

    def first_largest(self, values: Array) -> Array:
        return values.argmax(axis=1)

    def some_largest(self, values: Array, count: int) -> Array:
        return np.argpartition(-values, count - 1, axis=1)[:, :count]

    def sums_of_runs(self, values: Array, counts: Array) -> Array:
        out = np.zeros((len(counts), values.shape[1]), dtype=values.dtype)
        if len(values):  # `reduceat` would give an empty run the first row of the next
            out[counts > 0] = np.add.reduceat(values, self.offsets(counts)[:-1][counts > 0], axis=0)
        return out

    def arange(self, count: int) -> Array:
        return np.arange(count)

    def all_true(self, size: int) -> Array:
        return np.ones(size, dtype=bool)

    def full(self, shape: int | tuple[int, ...], value: float, dtype: str = "float64") -> Array:
        return np.full(shape, value, dtype=dtype)

    def put(self, values: Array, mask: Array, others: Array) -> None:
        np.copyto(values, others, where=mask)

    def log_add(self, a: Array, b: Array) -> Array:
        return np.logaddexp(a, b)

    def places(self, ordered: Array, values: Array) -> Array:
        return np.searchsorted(ordered, values)

    def number(self, value: float) -> Any:
        return np.float64(value)

    def scalars(self, *values: Any) -> tuple[float, ...]:
        return tuple(map(float, values))

    def positions(self, values: np.ndarray) -> Array:
        return values

    def nonzero(self, mask: Array) -> Array:
        return np.flatnonzero(mask)

    def empty(self, rows: int, columns: int) -> Array:
        return np.empty((rows, columns))

    def copy(self, values: Array) -> Array:
        return values.copy()

    def contiguous(self, values: Array) -> Array:
        return np.ascontiguousarray(values)

    def is_number(self, values: Array, *, integer: bool = False) -> bool:
        return values.dtype.kind in ("iu" if integer else "iuf")

    def order(self, values: Array) -> Array:
        return np.argsort(values, axis=-1, kind="stable")

    def lexsort(self, keys: Sequence[Array]) -> Array:
        return np.lexsort(tuple(keys))

    def sort(self, values: Array) -> Array:
        return np.sort(values, axis=-1)

    def take(self, values: Array, order: Array) -> Array:
        return np.take_along_axis(values, order, axis=1)

    def repeat(self, values: Array, counts: Array) -> Array:
        return np.repeat(values, counts)

    def offsets(self, counts: Array) -> Array:
        indptr = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=indptr[1:])
        return indptr

    def histogram(self, groups: Array, count: int) -> Array:
        return np.bincount(groups, minlength=count)

    def pad(self, values: Array, count: int, value: float) -> Array:
        return np.pad(values, ((0, 0), (0, count)), constant_values=value)

    def distinct(self, values: Array) -> tuple[Array, Array]:
        values = np.ascontiguousarray(values)
        as_bytes = values.view(np.dtype((np.void, values.itemsize * values.shape[1])))[:, 0]
        _, first, kind = np.unique(as_bytes, return_index=True, return_inverse=True)
        return first, kind


NUMPY = NumpyOps()


def ops_of(array: Array) -> Ops:
    """The operations for this kind of array; for a tensor, those of its device."""
    return _ops_on(array.device) if is_torch(array) else NUMPY


@cache
def _ops_on(device: Any) -> Ops:
    from stea_fast._util.torch_ops import TorchOps

    return TorchOps(device)
