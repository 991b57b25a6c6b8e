"""The best candidate of every row of a ranking, for arrays and tensors."""

from __future__ import annotations

from typing import Literal

import numpy as np

from stea_fast._util.array_ops import Array, ops_of


def best_candidates(
    indices: Array, scores: Array, *, ties: Literal["first", "lowest"] = "first"
) -> tuple[Array, Array]:
    """Every row's best candidate, int64 [n] with -1 for none, and its score, -inf for none.

    Args:
        indices: [n, k], -1 = none.
        scores: [n, k], in any order.
        ties: which of equally good candidates: the one listed first, or the one with the lowest id.
    """
    ops = ops_of(indices)
    masked = ops.where(indices >= 0, scores, -np.inf)
    if ties == "first":
        position = ops.first_largest(masked)
    else:
        best = masked == ops.largest(masked)[:, None]
        position = ops.first_largest(ops.where(best & (indices >= 0), -ops.double(indices), -np.inf))
    rows = ops.arange(len(indices))
    return ops.int64(indices[rows, position]), masked[rows, position]


def mutual_rows(best: Array, best_back: Array) -> Array:
    """int64 [m]: the rows that are the best candidate of their best candidate, in increasing order."""
    ops = ops_of(best)
    rows = ops.nonzero(best >= 0)
    return rows[best_back[best[rows]] == rows]
