"""What the kernels are given: sparse rows, and layers of relational reflection (`csrc/kernels/reflection.h`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CsrArrays = tuple[np.ndarray, np.ndarray, np.ndarray]  # int64 [rows + 1], int32 [nnz], float32 [nnz]


class Edges(NamedTuple):
    """The distinct pairs (i, j) of neighbours by i, and the same edges by their set of relations."""

    indptr: np.ndarray  # int64 [N + 1]
    rows: np.ndarray  # int32 [E]
    columns: np.ndarray  # int32 [E]
    reverse: np.ndarray  # int32 [E], the place of (j, i)
    sets: np.ndarray  # int32 [E]
    set_indptr: np.ndarray  # int64 [sets + 1]
    set_edges: np.ndarray  # int32 [E]


class Layer(NamedTuple):
    """What a layer reads, and what it keeps for its gradient: float32 arrays.

    A row i that is not wanted has position[i] = −1; an empty `position` stands for all rows.
    """

    position: np.ndarray  # int32 [N] or empty
    z: np.ndarray  # [N, width]
    source: int  # first column of x
    unit: np.ndarray  # [sets, d], ρ
    k_y: np.ndarray  # [heads, d]
    on_y: np.ndarray  # [sets, heads], k_y·ρ
    dots: np.ndarray  # [E, heads], x_j·ρ
    weights: np.ndarray  # [E, heads], a_ij


class LayerGradient(NamedTuple):
    """What comes back to a layer, and where its gradients go."""

    k_unit: np.ndarray  # [heads, d]
    activation: str  # the one that made x
    grad: np.ndarray  # [rows, heads · d] of the weighted sums; that of i is in the row position[i], or i
    outer: np.ndarray  # [rows, width]: what else arrives at z
    outer_position: np.ndarray  # as `position`, for the rows of `outer`
    d_x: np.ndarray  # [N, heads · d], filled
    d_unit: np.ndarray  # [sets, d], added to
