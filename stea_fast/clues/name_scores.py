"""How alike the names of entities are: a sparse set of scored pairs, and the candidates that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast._util.sparse import offsets
from stea_fast.types import PairScores, Ranking, TopK

LIKE = 0.5  # the similarity of names with a typing error or two; those of different entities are seldom as much alike
NAME_BETA = 15.0  # of similarities of names, which are cosines like those of encoders (`Schedule.beta`)


@dataclass(frozen=True, eq=False)
class NameScores:
    """The similarity of names for the pairs where there is any; 0 for all others.

    Attributes:
        keys: int64 [m], row · number of columns + column, in increasing order and without repetition.
        scores: float32 [m], above 0; those of names alone are at most 1.
        shape: the numbers of entities of both graphs.
    """

    keys: np.ndarray
    scores: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def of_rankings(cls, forward: Ranking, backward: Ranking) -> NameScores:
        """From the candidates of both directions; a pair that both list counts once."""
        shape = len(forward.indices), len(backward.indices)
        parts = []
        for side, ranking in enumerate((forward, backward)):
            indices = np.asarray(ranking.indices)
            own, place = np.nonzero(indices >= 0)
            other = indices[own, place].astype(np.int64)
            keys = own * shape[1] + other if side == 0 else other * shape[1] + own
            parts.append((keys, np.asarray(ranking.scores)[own, place]))
        keys, scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        together, first = np.unique(keys, return_index=True)
        return cls(together, scores[first].astype(np.float32), shape)

    def __call__(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """float64 [m]: the similarities of m pairs."""
        if not len(self.keys):
            return np.zeros(len(rows))
        wanted = np.asarray(rows, dtype=np.int64) * self.shape[1] + columns
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[places] == wanted, self.scores[places], 0.0).astype(np.float64)

    def without(self, sources: np.ndarray, targets: np.ndarray) -> NameScores:
        """As if these entities of either graph had no names."""
        rows, columns = np.divmod(self.keys, self.shape[1])
        kept = ~np.isin(rows, sources) & ~np.isin(columns, targets)
        return NameScores(self.keys[kept], self.scores[kept], self.shape)

    def candidates(self, k: int) -> TopK:
        """The k nearest by name in both directions; whatever is outside the lists has the similarity 0."""
        forward, backward = (_best(*side, self.scores, k) for side in self.sides)
        return TopK(forward, backward, engine="names", score=self)

    @property
    def can_start(self) -> bool:
        """Whether two names are alike, and no other name is as much like either of them."""
        alone = self.scores >= LIKE
        for own, _, size in self.sides:
            best = np.zeros(size, dtype=np.float32)
            np.maximum.at(best, own, self.scores)
            is_best = self.scores == best[own]
            alone &= is_best & (np.bincount(own[is_best], minlength=size)[own] == 1)
        return bool(alone.any())

    @property
    def sides(self) -> tuple[tuple[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray, int]]:
        """Of either side: int64 [m], the entity and the other of every pair, and how many entities there are."""
        rows, columns = np.divmod(self.keys, self.shape[1])
        return (rows, columns, self.shape[0]), (columns, rows, self.shape[1])


@dataclass(frozen=True, eq=False)
class SummedScores:
    """Scores of any pairs: the encoder's similarity and that of the names."""

    encoder: PairScores
    names: NameScores

    def __call__(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """float64 [m]: the scores of m pairs."""
        return np.asarray(self.encoder(rows, columns) + self.names(rows, columns))


def with_names(candidates: TopK, names: NameScores, k: int) -> TopK:
    """An encoder's candidates and those by name, each scored by the sum of both similarities.

    The partition sums are those of the sum: what names add is known for every pair that they list, and is 0 elsewhere.

    Args:
        candidates: what `topk` found, with scores of any pairs.
        names: the similarity of names.
        k: how many candidates by name an entity has.
    """
    assert candidates.score is not None, "as `topk` returns them"
    encoder, beta = candidates.score, candidates.beta
    score = SummedScores(encoder, names)
    similarity = np.asarray(encoder(*names.sides[0][:2]), dtype=np.float64)

    rankings, partitions = [], []
    for side, (own, other, size) in enumerate(names.sides):
        given = (candidates.forward, candidates.backward)[side]
        assert given is not None, "both directions"
        listed = _raised(given, names, side)
        rankings.append(_union(listed, _best(own, other, size, similarity + names.scores, k)))
        if candidates.log_partition is not None and beta is not None:
            gain = np.full(size, -np.inf)
            with np.errstate(divide="ignore"):  # of β = 0, which adds nothing
                np.logaddexp.at(gain, own, beta * similarity + np.log(np.expm1(beta * names.scores.astype(np.float64))))
            partitions.append(np.logaddexp(to_numpy(candidates.log_partition[side], "log_partition"), gain))
    log_partition = (partitions[0], partitions[1]) if partitions else None
    forward, backward = rankings
    return TopK(forward, backward, log_partition=log_partition, beta=beta, engine=candidates.engine, score=score)


def _best(own: np.ndarray, other: np.ndarray, size: int, scores: np.ndarray, k: int) -> Ranking:
    """The k best pairs of every entity."""
    order = np.lexsort((other, -scores, own))
    own, other, scores = own[order], other[order], scores[order]
    place = np.arange(len(own)) - offsets(own, size)[own]
    own, other, scores, place = (array[place < k] for array in (own, other, scores, place))
    indices, values = np.full((size, k), -1, dtype=np.int32), np.zeros((size, k), dtype=np.float32)
    indices[own, place], values[own, place] = other, scores
    return Ranking(indices, values)


def _raised(given: Ranking, names: NameScores, side: int) -> Ranking:
    """The same candidates with what their names add to their scores; in the order that they had."""
    indices, scores = to_numpy(given.indices, "indices"), to_numpy(given.scores, "scores").astype(np.float32)
    own, place = np.nonzero(indices >= 0)
    pairs = own.astype(np.int64), indices[own, place].astype(np.int64)
    scores[own, place] += names(*pairs[:: 1 if side == 0 else -1])
    return Ranking(indices, scores)


def _union(one: Ranking, other: Ranking) -> Ranking:
    """The candidates of both lists, each once and best first."""
    repeated = (other.indices[:, :, None] == one.indices[:, None, :]).any(axis=2)
    indices = np.concatenate([one.indices, np.where(repeated, -1, other.indices)], axis=1)
    scores = np.where(indices >= 0, np.concatenate([one.scores, other.scores], axis=1), -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")
    indices, scores = (np.take_along_axis(array, order, axis=1) for array in (indices, scores))
    return Ranking(indices.astype(np.int32), np.where(indices >= 0, scores, 0.0).astype(np.float32))
