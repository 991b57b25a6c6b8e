"""Both graphs of a pair as one: the entities and relations of the second are numbered after those of the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stea_fast._util.sparse import concatenated_runs, offsets, offsets_of_counts
from stea_fast.data.graph import KG


class Entries(NamedTuple):
    """A sparse matrix as CSR: int64 [rows + 1], int64 [nnz], float32 [nnz]; the number of columns."""

    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    width: int


@dataclass(frozen=True, eq=False)
class JointGraph:
    """Distinct ordered pairs (i, j) of neighbours and the relations between them, over one id space.

    Attributes:
        num_entities: N = n1 + n2.
        num_first: n1.
        num_relations: R = R1 + R2; relation r has the rows r and, inverted, r + R.
        indptr: int64 [N + 1], start of every entity's pairs.
        rows, columns: int64 [E], i and j of every pair.
        reverse: int64 [E], the place of (j, i).
        sets: int64 [E], which distinct set of relation rows connects i to j.
        members: mean over the relation rows of every set, [sets, 2R].
        relation_mean: mean over the distinct relation rows at every entity, [N, 2R].
    """

    num_entities: int
    num_first: int
    num_relations: int
    indptr: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    reverse: np.ndarray
    sets: np.ndarray
    members: Entries
    relation_mean: Entries

    @classmethod
    def join(cls, kg1: KG, kg2: KG) -> JointGraph:
        """Join two graphs that share no id."""
        n, num_relations = kg1.num_entities + kg2.num_entities, kg1.num_relations + kg2.num_relations
        heads, tails, relations = joint_edges(kg1, kg2)
        keys = heads * n + tails
        first = np.concatenate([[True], keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, dtype=bool)
        rows, columns = heads[first], tails[first]
        sets, members = _relation_sets(relations, np.flatnonzero(first), 2 * num_relations)
        # In the mean a head of r has the row of its inverse and a tail has r: the reverse of the edges.
        inverted = (relations + num_relations) % max(2 * num_relations, 1)
        return cls(
            n, kg1.num_entities, num_relations, offsets(rows, n), rows, columns,
            np.lexsort((rows, columns)), sets, members, mean_of_distinct(heads, inverted, n, 2 * num_relations),
        )  # fmt: skip

    def neighbor_mean(self) -> Entries:
        """Mean over every entity and its neighbours, [N, N]."""
        own = np.arange(self.num_entities)
        return mean_of_distinct(
            np.concatenate([self.rows, own]), np.concatenate([self.columns, own]), len(own), len(own)
        )


def joint_edges(kg1: KG, kg2: KG) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64 [2T] each: entity, neighbour and relation row of all edges, ordered by all three."""
    total = kg1.num_relations + kg2.num_relations
    parts = []
    for kg, entity_shift, relation_shift in ((kg1, 0, 0), (kg2, kg1.num_entities, kg1.num_relations)):
        relations = kg.relations.astype(np.int64)
        inverse = relations >= kg.num_relations
        relations += relation_shift + np.where(inverse, total - kg.num_relations, 0)
        heads = np.repeat(np.arange(kg.num_entities), kg.degrees)
        parts.append((heads + entity_shift, kg.neighbors + np.int64(entity_shift), relations))
    heads, tails, relations = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return heads, tails, relations


def joint_triples(kg1: KG, kg2: KG) -> np.ndarray:
    """int64 [T, 3]: the triples of both graphs in joint ids."""
    shift = np.array([kg1.num_entities, kg1.num_relations, kg1.num_entities])
    second = kg2.triples.astype(np.int64) + shift
    return np.concatenate([kg1.triples.astype(np.int64), second])


def mean_of_distinct(rows: np.ndarray, columns: np.ndarray, height: int, width: int) -> Entries:
    """The matrix that averages, in every row, over its distinct columns."""
    rows, columns = np.divmod(np.unique(rows * width + columns), max(width, 1))
    indptr = offsets(rows, height)
    values = (1.0 / np.maximum(np.diff(indptr), 1)).astype(np.float32)[rows]
    return Entries(indptr, columns, values, width)


def _relation_sets(relations: np.ndarray, starts: np.ndarray, width: int) -> tuple[np.ndarray, Entries]:
    """Number the distinct sets of relations among the runs of edges that begin at `starts`.

    A set is recognised by the sum of 64-bit random numbers of its members; that two of a million sets
    collide has a probability of 3e-8.
    """
    if len(starts) == 0:
        return starts, Entries(np.zeros(1, dtype=np.int64), starts, np.zeros(0, dtype=np.float32), width)
    codes = np.random.default_rng(0).integers(0, 2**64, size=width, dtype=np.uint64)
    _, firsts, sets = np.unique(np.add.reduceat(codes[relations], starts), return_index=True, return_inverse=True)
    lengths = np.diff(np.append(starts, len(relations)))[firsts]
    indptr, places = offsets_of_counts(lengths), concatenated_runs(starts[firsts], lengths)
    values = np.repeat((1.0 / lengths).astype(np.float32), lengths)
    return sets.reshape(-1), Entries(indptr, relations[places], values, width)
