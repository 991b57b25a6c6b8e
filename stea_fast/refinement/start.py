"""A start that cannot die: relations that meet at seeds are taken to be alike before anything else is known of them.

From few seeds no statement may lie between two of them; then no pair of relations has been seen together, nothing is
evidence, and nothing spreads. But relations that occur at both ends of the same seeds are likelier to correspond than
others. With c(r, r') the number of times that r and r' can be paired off at seeds,

    c(r, r') = Σ over seeds (e, e') of min(edges r at e, edges r' at e'),

the prior of an unseen pair is P(r ⊆ r') = c²/((n(r) + 1)·(n(r') + 1)) / (1 + den(r)), where n counts the edges of a
relation at seeds, and den the statements of r by which it could have been seen: the more there are, the less is
left of the prior. Counts of a relation and of its inverse are added up.

A seed with hundreds of relations on both sides says of none of them which other one it is, and would cost memory by the
square of their number: seeds at which most relations meet are left out of c first, as `_telling` says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from stea_fast._util.sparse import concatenated_runs, offsets, rows_of
from stea_fast.data.graph import KG
from stea_fast.types import RelationAlignment


class Counts(NamedTuple):
    """The relations of some entities as sparse rows, each with the number of its edges there."""

    indptr: np.ndarray
    relations: np.ndarray
    edges: np.ndarray


# Far beyond what real graphs have: 3,080 pairs at one seed and 190,080 in all are the most of ContEA and DBP15K.
MOST_PAIRS_AT_A_SEED = 1 << 16
MOST_PAIRS = 1 << 22
_BLOCK = 1 << 20  # pairs that are collected before equal ones are added up


def affinity_at_seeds(kg1: KG, kg2: KG, seeds: np.ndarray) -> csr_array:
    """float32 [2R1, 2R2]: c²/((n(r) + 1)·(n(r') + 1)) for the relations of both graphs that meet at seeds."""
    first, second = (_edges_at(kg, seeds[:, side]) for side, kg in enumerate((kg1, kg2)))
    sizes = 2 * kg1.num_relations, 2 * kg2.num_relations
    together = _met_together(first, second, sizes)
    totals = [_totals(at, size) + 1.0 for at, size in zip((first, second), sizes, strict=True)]
    shares = together.data.astype(np.float64) ** 2
    shares /= totals[0][rows_of(together.indptr)] * totals[1][together.indices]
    return csr_array((shares.astype(np.float32), together.indices, together.indptr), shape=sizes)


def _met_together(first: Counts, second: Counts, sizes: tuple[int, int]) -> csr_array:
    """int64 [2R1, 2R2]: c(r, r'), with the inverses that say the same of each other."""
    total = csr_array(sizes, dtype=np.int64)
    num_pairs = np.diff(first.indptr) * np.diff(second.indptr)
    seeds = _telling(num_pairs)
    blocks = np.cumsum(num_pairs[seeds]) // _BLOCK
    for block in np.split(seeds, np.flatnonzero(np.diff(blocks)) + 1):
        total = total + _paired_off(first, second, block, sizes)
        if total.nnz >= MOST_PAIRS // 2:  # what is left are the seeds with most relations
            break
    return csr_array(total + _inverted(total))


def _telling(num_pairs: np.ndarray) -> np.ndarray:
    """The seeds that say most first: fewest pairs of relations; without those that hardly say anything."""
    order = np.argsort(num_pairs, kind="stable")
    return order[num_pairs[order] <= MOST_PAIRS_AT_A_SEED]


def _paired_off(first: Counts, second: Counts, seeds: np.ndarray, sizes: tuple[int, int]) -> csr_array:
    """int64 [2R1, 2R2]: what relations of both sides have in common at some seeds."""
    here, there = (np.diff(side.indptr)[seeds] for side in (first, second))
    own = concatenated_runs(first.indptr[seeds], here)
    lengths = np.repeat(there, here)  # every relation of one side meets all of the other's
    others = concatenated_runs(np.repeat(second.indptr[seeds], here), lengths)
    own = np.repeat(own, lengths)
    r, r2 = first.relations[own], second.relations[others]
    least = np.minimum(first.edges[own], second.edges[others])
    return csr_array(coo_array((least, (r, r2)), shape=sizes))


def _inverted(together: csr_array) -> csr_array:
    """What pairs of relations have in common, as what their inverses have in common."""
    pairs = together.tocoo()
    places = (np.asarray((side + size // 2) % size) for side, size in zip(pairs.coords, pairs.shape, strict=True))
    return csr_array(coo_array((pairs.data, tuple(places)), shape=pairs.shape))


def _totals(at: Counts, size: int) -> np.ndarray:
    """float64 [2R]: the edges of every relation and of its inverse at the entities."""
    edges = np.bincount(at.relations, at.edges, minlength=size)
    return edges + np.roll(edges, size // 2)


def _edges_at(kg: KG, entities: np.ndarray) -> Counts:
    """The relations of every entity, and how many edges of each it has."""
    degrees = kg.degrees[entities]
    relations = kg.relations[concatenated_runs(kg.indptr[entities], degrees)]
    width = 2 * kg.num_relations
    keys, edges = np.unique(np.repeat(np.arange(len(entities)), degrees) * width + relations, return_counts=True)
    return Counts(offsets(keys // width, len(entities)), keys % width, edges)


def with_affinity(
    relations: RelationAlignment, affinity: csr_array, statements1: np.ndarray, statements2: np.ndarray
) -> RelationAlignment:
    """The same alignment, with the prior for every pair of relations that it has not seen.

    Args:
        relations: what is estimated from beliefs.
        affinity: of `affinity_at_seeds`.
        statements1, statements2: float64 [R1] and [R2], den(r): statements whose both ends have a counterpart.
    """
    seen = relations.sub12.astype(bool) + relations.sub21.T.tocsr().astype(bool)
    unseen = (affinity - affinity.multiply(seen)).tocsr()
    unseen.eliminate_zeros()
    left1, left2 = (1.0 / (1.0 + np.concatenate([dens, dens])) for dens in (statements1, statements2))
    prior12, prior21 = _scaled(unseen, left1), _scaled(unseen.T.tocsr(), left2)
    return RelationAlignment.trusted(_sum(relations.sub12, prior12), _sum(relations.sub21, prior21), relations.default)


def _scaled(matrix: csr_array, of_rows: np.ndarray) -> csr_array:
    """The rows times a number each."""
    return csr_array((matrix.data * of_rows[rows_of(matrix.indptr)], matrix.indices, matrix.indptr), shape=matrix.shape)


def _sum(matrix: csr_array, prior: csr_array) -> csr_array:
    """Of matrices that share no entry: float32 with sorted columns, as the kernels take it."""
    result = (matrix + prior).tocsr().astype(np.float32)
    result.eliminate_zeros()
    result.sort_indices()
    return result
