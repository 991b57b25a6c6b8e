"""What a joint refinement looks at around the entities: their neighbours, and their values where there are any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from stea_fast._util.sparse import reduce_groups
from stea_fast.clues.value_nodes import ValueNodes
from stea_fast.data.graph import KG
from stea_fast.refinement.start import with_affinity
from stea_fast.types import Beliefs, RelationAlignment


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The graphs as kernels see them: entities, and behind them values with beliefs that never change.

    Without values everything is as it was given. With them, whatever is said of entities is completed by what holds of
    values: their beliefs, no candidates, and that nobody may propose them.

    Attributes:
        plain: The graphs of entities.
        values: Values as nodes; None where there are none.
    """

    plain: tuple[KG, KG]
    values: ValueNodes | None = None

    @property
    def graphs(self) -> tuple[KG, KG]:
        """The graphs with their values."""
        return self.plain if self.values is None else self.values.graphs

    def beliefs(self, side: int, held: Beliefs) -> Beliefs:
        """Beliefs about the entities of graph 0 or 1, and behind them those about its values."""
        if self.values is None:
            return held
        fixed = self.values.beliefs[side]
        return Beliefs(
            np.concatenate([held.indptr, held.indptr[-1] + fixed.indptr[1:]]),
            np.concatenate([held.targets, fixed.targets]),
            np.concatenate([held.weights, fixed.weights]),
        )

    def offsets(self, indptr: np.ndarray) -> np.ndarray:
        """Where the pairs of every source begin; values have none."""
        extra = self.graphs[0].num_entities - self.plain[0].num_entities
        return np.concatenate([indptr, np.full(extra, indptr[-1])]) if extra else indptr

    def open(self, side: int, entities: np.ndarray) -> np.ndarray:
        """bool: which entities of graph 0 or 1 may get counterparts; values never."""
        extra = self.graphs[side].num_entities - len(entities)
        return np.concatenate([entities, np.zeros(extra, dtype=bool)]) if extra else entities

    def affinity(self, at_seeds: csr_array) -> csr_array:
        """What relations have in common at seeds and, of attributes, at values."""
        return at_seeds if self.values is None else csr_array(at_seeds.maximum(self.values.affinity))

    def relation_changes(self, before: RelationAlignment, now: RelationAlignment) -> tuple[np.ndarray, np.ndarray]:
        """float32 [2R1] and [2R2]: the largest change of a probability in which a relation has part."""
        return relation_changes(before, now)

    def with_affinity(
        self, alignment: RelationAlignment, affinity: csr_array, *statements: np.ndarray
    ) -> RelationAlignment:
        """The alignment, with a prior for the pairs of relations that it has not seen; see `start.py`."""
        return with_affinity(alignment, affinity, *statements)

    def aligned(self, sub12: csr_array, sub21: csr_array) -> RelationAlignment:
        """An alignment of two containments, as the kernels give them."""
        return RelationAlignment.trusted(sub12, sub21)

    def relations(self, alignment: RelationAlignment) -> RelationAlignment:
        """The alignment of relations alone."""
        return alignment if self.values is None else _part(alignment, [slice(0, kg.num_relations) for kg in self.plain])

    def attributes(self, alignment: RelationAlignment) -> RelationAlignment | None:
        """The alignment of attributes alone; None where there are no values."""
        return None if self.values is None else _part(alignment, [slice(kg.num_relations, None) for kg in self.plain])


def _part(alignment: RelationAlignment, parts: list[slice]) -> RelationAlignment:
    """Some relations of either side, with their inverses."""
    chosen = []
    for size, part in zip(alignment.shape, parts, strict=True):
        ids = np.arange(size // 2)[part]
        chosen.append(np.concatenate([ids, ids + size // 2]))
    sub12 = alignment.sub12[chosen[0]][:, chosen[1]].tocsr()
    sub21 = alignment.sub21[chosen[1]][:, chosen[0]].tocsr()
    for matrix in (sub12, sub21):
        matrix.sort_indices()
    return RelationAlignment.trusted(sub12, sub21, alignment.default)


def relation_changes(before: RelationAlignment, now: RelationAlignment) -> tuple[np.ndarray, np.ndarray]:
    """float32 [2R1] and [2R2]: the largest change of a probability in which a relation has part."""
    forward, backward = abs(now.sub12 - before.sub12), abs(now.sub21 - before.sub21)
    (rows, columns), (other_columns, other_rows) = _largest(forward), _largest(backward)
    return np.maximum(rows, other_rows), np.maximum(columns, other_columns)


def _largest(matrix: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """The largest number of every row and of every column; none is negative, and what is not stored is 0."""
    of_columns = np.zeros(matrix.shape[1], dtype=matrix.dtype)
    np.maximum.at(of_columns, matrix.indices, matrix.data)
    return reduce_groups(np.maximum, matrix.data, matrix.indptr, 0.0), of_columns
