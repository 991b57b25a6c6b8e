"""Checked embeddings, and how similarities follow from inner products."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from stea_fast._util.array_ops import ops_of
from stea_fast._util.arrays import to_numpy
from stea_fast.types import Array, ArrayLike

METRICS = ("cosine", "ip", "l2")
ROWS_AT_ONCE = 128  # converted and squared in one go: they fit in a cache
TENSOR_ROWS_AT_ONCE = 2048  # the same for tensors: a device wants more at a time
LARGEST_NORM, SMALLEST_NORM = 1e15, 1e-15  # norms between these have inner products that single precision can hold
LARGEST_SCORE = 1e37  # scores are float32
LEAST_NORM = 2.0**-500  # the squares of smaller norms are lost in double precision: they count as 0
LEAST_QUANTUM = 2.0**-960  # far above the products of what counts as 0
LEAST_SINGLE = 2.0**-126  # below it single precision keeps some digits of a number, or none


class Embeddings:
    """One side: a matrix of finite numbers, NumPy or torch.

    Attributes:
        array: [n, d], as given (integers as float64).
        norms: float64 [n]; 0 for what is too small to be told from the zero vector.
        ops: the operations for this kind of array.
    """

    def __init__(self, array: Array, name: str) -> None:
        self.array, self.ops = array, ops_of(array)
        self.norms = self.ops.empty(len(array), 1)[:, 0]
        at_once = ROWS_AT_ONCE if isinstance(array, np.ndarray) else TENSOR_ROWS_AT_ONCE
        for begin in range(0, len(array), at_once):
            self.norms[begin : begin + at_once] = self._norms(slice(begin, begin + at_once), name)
        self.is_balanced = _are_balanced(self.norms)

    def of_rows(self, rows: np.ndarray) -> Embeddings:
        """Some of the rows, in a matrix of their own; nothing is computed again."""
        some = copy(self)
        some.array, some.norms = self.array[rows], self.norms[rows]
        some.is_balanced = self.is_balanced or _are_balanced(some.norms)
        return some

    @classmethod
    def numpy(cls, values: ArrayLike, name: str) -> Embeddings:
        """As a NumPy array; tensors are brought to the host."""
        array = to_numpy(values, name)
        _check(array.dtype.kind in "fiu", array.dtype, array.shape, name)
        supported = array.dtype in (np.float16, np.float32, np.float64)
        return cls(array if supported else array.astype(np.float64), name)

    @classmethod
    def torch(cls, tensor: Array, name: str) -> Embeddings:
        """As the tensor it is, on its own device."""
        kind = "b" if str(tensor.dtype) == "torch.bool" else "c" if tensor.is_complex() else "f"
        _check(kind == "f", tensor.dtype, tuple(tensor.shape), name)
        detached = tensor.detach()
        return cls(detached if tensor.is_floating_point() else detached.double(), name)

    def _norms(self, span: slice, name: str) -> Array:
        rows = self.doubles(span)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = (rows * rows).sum(1) ** 0.5
        unusable = self.ops.nonzero(~(norms < np.inf))
        if len(unusable):
            row = span.start + int(unusable[0])
            raise ValueError(f"{name}[{row}] holds NaN, infinite or too large values; all must be finite")
        return self.ops.where(norms < LEAST_NORM, 0.0 * norms, norms)

    def __len__(self) -> int:
        return len(self.array)

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.array.shape[1])

    @property
    def block_norms(self) -> Array:
        """float64 [n]: what a row of `block` must be multiplied with to be the given row."""
        return self.norms**0 if self.is_balanced else self.norms

    def block(self, begin: int, end: int) -> Array:
        """float32 [end - begin, d]: some rows; unit vectors where the norms are too far apart for float32."""
        rows = self.array[begin:end]
        if self.is_balanced:
            return rows if rows.dtype == np.float32 else self.ops.single(rows)
        return self.ops.single(self.ops.divide(self.ops.double(rows), self.norms[begin:end, None]))

    def doubles(self, rows: Array) -> Array:
        """float64 [m, d]: some rows."""
        return self.ops.double(self.array[rows])


def _are_balanced(norms: Array) -> bool:
    return bool(((norms == 0) | ((norms > SMALLEST_NORM) & (norms < LARGEST_NORM))).all())


def _check(is_number: bool, dtype: object, shape: tuple[int, ...], name: str) -> None:
    if not is_number:
        raise TypeError(f"{name} must hold numbers, got dtype {dtype}")
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"{name} must be a matrix with a row per entity, got shape {shape}")


def check_pair(side1: Embeddings, side2: Embeddings, metric: str) -> None:
    """What must hold of the two sides together."""
    if side1.width != side2.width:
        raise ValueError(f"emb1 and emb2 must have the same width, got {side1.width} and {side2.width}")
    largest = float(max(side1.norms.max(), side2.norms.max())) ** 2
    if metric != "cosine" and largest > LARGEST_SCORE:
        raise ValueError(f"emb1 and emb2 are too large for metric={metric!r}: scores of {largest:.1e} in float32")


@dataclass(frozen=True, eq=False)
class Scoring:
    """score(i, j) = ⟨i, j⟩·scale1[i]·scale2[j] − offset1[i] − offset2[j], all float64; and its meaning.

    Attributes:
        metric: cosine, inner product ("ip") or negative squared distance ("l2").
        means: the mean similarity of every row, and of every column, with its nearest: CSLS subtracts them.
    """

    metric: str
    scale1: Array
    scale2: Array
    offset1: Array
    offset2: Array
    means: tuple[Array, Array] | None = None

    @classmethod
    def of(cls, metric: str, side1: Embeddings, side2: Embeddings) -> Scoring:
        """The plain metric."""
        norms1, norms2 = side1.norms, side2.norms
        none1, none2 = 0.0 * norms1, 0.0 * norms2
        if metric == "cosine":  # the zero vector has the cosine 0 with everything
            return cls(
                metric, side1.ops.divide(none1 + 1.0, norms1), side2.ops.divide(none2 + 1.0, norms2), none1, none2
            )
        if metric == "ip":
            return cls(metric, none1 + 1.0, none2 + 1.0, none1, none2)
        return cls(metric, none1 + 2.0, none2 + 1.0, norms1**2, norms2**2)

    def with_csls(self, means1: Array, means2: Array) -> Scoring:
        """2·similarity − means1[i] − means2[j]."""
        return replace(
            self,
            scale1=2.0 * self.scale1,
            offset1=2.0 * self.offset1 + means1,
            offset2=2.0 * self.offset2 + means2,
            means=(means1, means2),
        )

    def swapped(self) -> Scoring:
        """Seen from the other side."""
        means = None if self.means is None else self.means[::-1]
        return Scoring(self.metric, self.scale2, self.scale1, self.offset2, self.offset1, means)

    def final(self, similarity: Array, rows: Array, columns: Array) -> Array:
        """Scores from similarities of the given rows and columns (indices that broadcast)."""
        if self.means is None:
            return similarity
        return 2.0 * similarity - self.means[0][rows] - self.means[1][columns]

    def magnitude(self, side1: Embeddings, side2: Embeddings) -> Array:
        """float64 [n]: how large the terms of a row's scores can be."""
        products = side1.norms * abs(self.scale1) * (side2.norms * abs(self.scale2)).max()
        return products + abs(self.offset1) + abs(self.offset2).max()

    def tolerance(self, side1: Embeddings, side2: Embeddings) -> Array:
        """float64 [n]: what single precision may be wrong by in the scores of each row, generously."""
        rounded = 2.0**-24 * self.magnitude(side1, side2)
        # What is lost of one side's numbers, or of a product, may have been multiplied by the other side's.
        largest1, largest2 = side1.norms * abs(self.scale1), (side2.norms * abs(self.scale2)).max()
        lost = LEAST_SINGLE * (1.0 + largest1) * (1.0 + largest2)
        return (16.0 + 4.0 * math.sqrt(side1.width)) * (rounded + lost)

    def quantum(self, side1: Embeddings, side2: Embeddings) -> Array:
        """float64 [n]: a power of two; what each row's scores are rounded to a multiple of.

        Far below what anyone can tell and far above the noise of double precision, so that scores that
        should be equal are, in whatever order their terms were added up.
        """
        ops = side1.ops
        magnitude = self.magnitude(side1, side2)
        exponent = ops.ceil(ops.log2(ops.where(magnitude > 0, magnitude, 1.0)))
        return ops.at_least(2.0 ** (exponent - 36.0), LEAST_QUANTUM)
