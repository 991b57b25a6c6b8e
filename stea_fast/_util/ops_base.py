"""What array operations there are; `numpy` and `torch` each have a class that offers them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any  # a NumPy array or a tensor; one function call sees only one of the two


class Ops(ABC):
    """The operations: those that both libraries have under one name, and the names of the others."""

    lib: Any  # the module numpy or torch

    def where(self, mask: Array, a: Any, b: Any) -> Array:
        """`a` where the mask is true, else `b`."""
        return self.lib.where(mask, a, b)

    def exp(self, values: Array) -> Array:
        """Elementwise."""
        return self.lib.exp(values)

    def expm1(self, values: Array) -> Array:
        """exp(x) - 1, elementwise."""
        return self.lib.expm1(values)

    def log(self, values: Array) -> Array:
        """Elementwise."""
        return self.lib.log(values)

    def log2(self, values: Array) -> Array:
        """Elementwise."""
        return self.lib.log2(values)

    def sqrt(self, values: Array) -> Array:
        """Elementwise."""
        return self.lib.sqrt(values)

    def ceil(self, values: Array) -> Array:
        """Elementwise."""
        return self.lib.ceil(values)

    def round(self, values: Array, quantum: Any) -> Array:
        """To the nearest multiple of the quantum."""
        return self.lib.round(values / quantum) * quantum

    def is_finite(self, values: Array) -> Array:
        """Elementwise."""
        return self.lib.isfinite(values)

    def is_minus_inf(self, values: Array) -> Array:
        """Elementwise."""
        return self.lib.isneginf(values)

    def is_in(self, values: Array, others: Array) -> Array:
        """Which of the values are among the others."""
        return self.lib.isin(values, others)

    def nan_to_zero(self, values: Array) -> Array:
        """0 instead of NaN; infinite values become the largest finite ones."""
        return self.lib.nan_to_num(values, nan=0.0)

    def columns(self, *parts: Array) -> Array:
        """Vectors side by side, as the columns of a matrix."""
        return self.lib.stack(parts, 1)

    def chain(self, parts: Sequence[Array]) -> Array:
        """Arrays one after the other, along the first axis."""
        return self.lib.concatenate(parts, 0)

    def join(self, left: Array, right: Array) -> Array:
        """The columns of both."""
        return self.lib.concatenate((left, right), 1)

    def single(self, values: Array) -> Array:
        """Rounded to float32."""
        return self.cast(values, self.lib.float32)

    def double(self, values: Array) -> Array:
        """As float64."""
        return self.cast(values, self.lib.float64)

    def int32(self, values: Array) -> Array:
        """As int32."""
        return self.cast(values, self.lib.int32)

    def int64(self, values: Array) -> Array:
        """As int64."""
        return self.cast(values, self.lib.int64)

    @abstractmethod
    def cast(self, values: Array, dtype: Any) -> Array:
        """As a type of the library."""

    @abstractmethod
    def divide(self, a: Array, b: Array) -> Array:
        """a / b; 0 where b is 0."""

    @abstractmethod
    def at_least(self, values: Array, bound: float) -> Array:
        """Values below the bound are raised to it."""

    @abstractmethod
    def at_most(self, values: Array, bound: float) -> Array:
        """Values above the bound are lowered to it."""

    @abstractmethod
    def largest(self, values: Array) -> Array:
        """The maximum along the last axis, of floats; -inf where that is empty."""

    @abstractmethod
    def smallest(self, values: Array) -> Array:
        """The minimum along the last axis."""

    @abstractmethod
    def first_largest(self, values: Array) -> Array:
        """int64 [n]: the place of every row's maximum, the first of equal ones; of truth values, the first true."""

    @abstractmethod
    def some_largest(self, values: Array, count: int) -> Array:
        """int64 [n, count]: the places of the largest values of every row, in any order."""

    @abstractmethod
    def sums_of_runs(self, values: Array, counts: Array) -> Array:
        """[runs, d]: the sums of the first `counts[0]` rows of a matrix, of the next `counts[1]` and so on."""

    @abstractmethod
    def arange(self, count: int) -> Array:
        """0, 1, …, count - 1."""

    @abstractmethod
    def all_true(self, size: int) -> Array:
        """bool [size]."""

    @abstractmethod
    def full(self, shape: int | tuple[int, ...], value: float, dtype: str = "float64") -> Array:
        """An array of one value; the type by its name, which both libraries share."""

    @abstractmethod
    def put(self, values: Array, mask: Array, others: Array) -> None:
        """Overwrite the values where the mask is true."""

    @abstractmethod
    def log_add(self, a: Array, b: Array) -> Array:
        """log(exp(a) + exp(b)), elementwise."""

    @abstractmethod
    def places(self, ordered: Array, values: Array) -> Array:
        """Where the values would stand in an ordered vector, before equal ones."""

    @abstractmethod
    def number(self, value: float) -> Any:
        """A float64 that can be computed with beside arrays, without waiting for them."""

    @abstractmethod
    def scalars(self, *values: Any) -> tuple[float, ...]:
        """Arrays of one number each, as Python floats."""

    @abstractmethod
    def positions(self, values: np.ndarray) -> Array:
        """Integers to index with."""

    @abstractmethod
    def nonzero(self, mask: Array) -> Array:
        """The positions at which a vector is true."""

    @abstractmethod
    def empty(self, rows: int, columns: int) -> Array:
        """float64 [rows, columns], not initialised."""

    @abstractmethod
    def copy(self, values: Array) -> Array:
        """A copy to write into."""

    @abstractmethod
    def contiguous(self, values: Array) -> Array:
        """In row-major order, copied only where it is not."""

    @abstractmethod
    def is_number(self, values: Array, *, integer: bool = False) -> bool:
        """Whether the array holds real numbers (integers): no truth values, complex numbers or objects."""

    @abstractmethod
    def order(self, values: Array) -> Array:
        """What sorts along the last axis in increasing order; ties keep their order."""

    @abstractmethod
    def lexsort(self, keys: Sequence[Array]) -> Array:
        """What sorts by several keys, the last of which counts most; ties keep their order."""

    @abstractmethod
    def sort(self, values: Array) -> Array:
        """In increasing order along the last axis."""

    @abstractmethod
    def take(self, values: Array, order: Array) -> Array:
        """Every row in the given order."""

    @abstractmethod
    def repeat(self, values: Array, counts: Array) -> Array:
        """Every value as often as its count says."""

    @abstractmethod
    def offsets(self, counts: Array) -> Array:
        """int64 [n + 1]: 0, and the sum of the first 1, 2, … n counts."""

    @abstractmethod
    def histogram(self, groups: Array, count: int) -> Array:
        """int64 [count]: how often each of 0, …, count - 1 occurs."""

    @abstractmethod
    def pad(self, values: Array, count: int, value: float) -> Array:
        """With `count` more columns."""

    @abstractmethod
    def distinct(self, values: Array) -> tuple[Array, Array]:
        """The place of one row of every kind of equal rows, and for every row the number of its kind."""
