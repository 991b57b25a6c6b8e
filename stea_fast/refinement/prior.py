"""What an encoder says before anything is refined: scored candidates, scores of all other pairs, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.sparse import first_of_each
from stea_fast.types import PairScores


@dataclass(frozen=True, eq=False)
class Prior:
    """What the encoder says.

    Attributes:
        keys, scores: of the candidates of both directions, row · number of columns + column, without repetition.
        score: scores of any other pairs.
        beta: inverse temperature.
        log_partition: log Σ exp(β·score) of all targets of every row, and of all sources of every column; each None
            if the given candidates have all the mass.
    """

    keys: Array
    scores: Array
    score: PairScores
    beta: float
    log_partition: tuple[Array | None, Array | None]


@dataclass(frozen=True, eq=False)
class ListEnds:
    """What a pair outside the lists can score at most: as the last of the lists that it is not in.

    Attributes:
        lowest: the least score of every row and, where there are lists of columns, of every column; inf without any.
        least: the least of all, for rows and columns without lists.
    """

    lowest: tuple[Array, ...]
    least: float

    def __call__(self, rows: Array, columns: Array) -> Array:
        """float64 [m]: the bounds of m pairs."""
        ops = ops_of(rows)
        bound = ops.double(self.lowest[0][rows])
        if len(self.lowest) == 2:
            bound = ops.lib.minimum(bound, ops.double(self.lowest[1][columns]))
        return ops.where(ops.is_finite(bound), bound, self.least)


def prior_of(
    rankings: Sequence[tuple[Array, Array]],
    num_columns: int,
    beta: float,
    log_partition: Sequence[Array | None],
    score: PairScores | None,
) -> Prior:
    """From checked candidates of one or both directions; without `score`, others count as the last of their lists."""
    keys, scores = [], []
    for side, (indices, values) in enumerate(rankings):
        ops = ops_of(indices)
        listed = (indices >= 0) & ops.is_finite(values)
        entity, other = ops.repeat(ops.arange(len(listed)), listed.sum(1)), ops.int64(indices[listed])
        keys.append(entity * num_columns + other if side == 0 else other * num_columns + entity)
        scores.append(ops.double(values[listed]))
    together, first = first_of_each(ops.chain(keys))
    rows, columns = (*log_partition, None)[:2]
    return Prior(together, ops.chain(scores)[first], score or _ends(rankings), beta, (rows, columns))


def _ends(rankings: Sequence[tuple[Array, Array]]) -> ListEnds:
    lowest = tuple(_least(values) for _, values in rankings)
    least = min(float(values.min()) for values in lowest)
    return ListEnds(lowest, least if np.isfinite(least) else 0.0)


def _least(values: Array) -> Array:
    """The least finite value of every row; inf where there is none."""
    ops = ops_of(values)
    return -ops.largest(ops.where(ops.is_finite(values), -values, -np.inf))
