"""What an encoder says before anything is refined: scored candidates, scores of all other pairs, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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

    keys: np.ndarray
    scores: np.ndarray
    score: PairScores
    beta: float
    log_partition: tuple[np.ndarray | None, np.ndarray | None]


@dataclass(frozen=True, eq=False)
class ListEnds:
    """What a pair outside the lists can score at most: as the last of the lists that it is not in.

    Attributes:
        lowest: the least score of every row and, where there are lists of columns, of every column; inf without any.
        least: the least of all, for rows and columns without lists.
    """

    lowest: tuple[np.ndarray, ...]
    least: float

    def __call__(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """float64 [m]: the bounds of m pairs."""
        bound = self.lowest[0][rows].astype(np.float64)
        if len(self.lowest) == 2:
            bound = np.minimum(bound, self.lowest[1][columns])
        return np.where(np.isfinite(bound), bound, self.least)


def prior_of(
    rankings: Sequence[tuple[np.ndarray, np.ndarray]],
    num_columns: int,
    beta: float,
    log_partition: Sequence[np.ndarray | None],
    score: PairScores | None,
) -> Prior:
    """From checked candidates of one or both directions; without `score`, others count as the last of their lists."""
    keys, scores = [], []
    for side, (indices, values) in enumerate(rankings):
        place = np.nonzero((indices >= 0) & np.isfinite(values))
        entity, other = place[0], indices[place].astype(np.int64)
        keys.append(entity * num_columns + other if side == 0 else other * num_columns + entity)
        scores.append(values[place].astype(np.float64))
    together, first = np.unique(np.concatenate(keys), return_index=True)
    rows, columns = (*log_partition, None)[:2]
    return Prior(together, np.concatenate(scores)[first], score or _ends(rankings), beta, (rows, columns))


def _ends(rankings: Sequence[tuple[np.ndarray, np.ndarray]]) -> ListEnds:
    lowest = tuple(np.min(values, axis=1, where=np.isfinite(values), initial=np.inf) for _, values in rankings)
    least = min(float(values.min()) for values in lowest)
    return ListEnds(lowest, least if np.isfinite(least) else 0.0)
