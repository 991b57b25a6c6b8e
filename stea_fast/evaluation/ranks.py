"""The rank of the true target of every test link. Rankings on a GPU are judged there: only numbers come to the host."""

from __future__ import annotations

import numpy as np

from stea_fast._util import validate
from stea_fast._util.array_ops import ops_of
from stea_fast._util.arrays import is_torch, like, where_it_is
from stea_fast.types import Array, HasScores


def pessimistic_ranks(ranking: HasScores, links: np.ndarray, pool: str) -> Array:
    """float64 [n]: rank of every link's target in its source's row, inf where it is missing.

    A NumPy array, or a tensor where the ranking lies on a GPU.
    """
    indices, scores = where_it_is(ranking.indices, "indices"), where_it_is(ranking.scores, "scores")
    indices = indices if is_torch(indices) else validate.integers(indices, "indices")
    if indices.ndim != 2 or scores.shape != indices.shape:
        shapes = tuple(indices.shape), tuple(scores.shape)
        raise ValueError(f"indices and scores must both have shape [n, k], got {shapes[0]} and {shapes[1]}")
    ops, (sources, targets) = ops_of(indices), like(indices, links).T
    rows, values = indices[sources], ops.double(scores[sources])
    is_true = rows == targets[:, None]
    competes = rows >= 0
    if not bool(ops.is_finite(values[competes]).all()):
        raise ValueError("scores must be finite where there is a candidate")
    if pool == "test":
        competes &= ops.is_in(rows, targets)
    truth = ops.largest(ops.where(is_true, values, -np.inf))
    ahead = (competes & ~is_true & (values >= truth[:, None])).sum(1)
    return ops.where(is_true.any(1), 1.0 + ops.double(ahead), np.inf)


def share_within(ranks: Array, k: int) -> float:
    """The share of ranks up to k; NaN if there are none."""
    return mean_of(ops_of(ranks).double(ranks <= k))


def mean_rank(ranks: Array) -> float:
    """The mean of the finite ranks; NaN if there are none."""
    return mean_of(ranks[ops_of(ranks).is_finite(ranks)])


def mean_of(values: Array) -> float:
    """The mean; NaN of nothing."""
    return float(values.mean()) if len(values) else float("nan")
