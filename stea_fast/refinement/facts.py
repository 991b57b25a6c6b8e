"""The facts behind pairs of entities: of one pair as of hundreds of thousands.

A fact behind (e, e') is an edge r(e, n) and an edge r'(e', n') whose ends are believed to be the same. They are found
as in a database: edges of e, joined with the beliefs about n, joined with the edges of e' by n'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from stea_fast._backends.factors import minus_log
from stea_fast._backends.witnesses import by_neighbour
from stea_fast._util.sparse import concatenated_runs, entries_at, offsets, run_starts
from stea_fast.data.graph import KG
from stea_fast.types import Beliefs, RelationAlignment

ROWS_PER_BLOCK = 2_000_000  # beliefs about neighbours that are looked at together; bounds the memory


@dataclass(frozen=True, eq=False)
class FactTable:
    """The facts behind many pairs, as arrays of one length: those of a pair side by side, strongest first.

    `Refinement.facts` makes it.

    Attributes:
        indptr: The start of every pair's facts, int64 [pairs + 1].
        totals: The evidence L of every pair, float64 [pairs]: the sum over all its facts, whether listed here or not.
        relation: The relation r of the first graph, int32 [facts]; ids from R on are inverse relations.
        neighbor: The neighbour n that it leads to, int32 [facts].
        relation2: The relation r' of the second graph, int32 [facts].
        neighbor2: The neighbour n' that it leads to, int32 [facts].
        weight: The belief w(n, n') that the neighbours are the same, float64 [facts].
        evidence: What each fact adds to the evidence of its pair, float64 [facts].

    Example:
        >>> import stea_fast as sf
        >>> kg1, kg2 = sf.KG([[0, 0, 1]]), sf.KG([[1, 0, 0]])
        >>> out = sf.refine(([[1], [0]], [[0.9], [0.8]]), kg1, kg2, seeds=[[0, 1]])
        >>> facts = out.facts([[0, 1], [1, 0]])
        >>> facts.indptr.tolist(), facts.neighbor.tolist(), facts.neighbor2.tolist()
        ([0, 1, 2], [1, 0], [0, 1])
    """

    indptr: np.ndarray
    totals: np.ndarray
    relation: np.ndarray
    neighbor: np.ndarray
    relation2: np.ndarray
    neighbor2: np.ndarray
    weight: np.ndarray
    evidence: np.ndarray


@dataclass(frozen=True, eq=False)
class _Joined:
    """Facts before they are in order: the pair and the two edges of each."""

    pair: np.ndarray
    edge: np.ndarray
    edge2: np.ndarray
    weight: np.ndarray
    evidence: np.ndarray

    def __getitem__(self, chosen: np.ndarray) -> _Joined:
        return _Joined(*(getattr(self, field.name)[chosen] for field in fields(self)))


def facts_of_pairs(
    kg1: KG,
    kg2: KG,
    pairs: np.ndarray,
    beliefs: Beliefs,
    relations: RelationAlignment,
    witnesses: str,
    most: int | None = None,
) -> FactTable:
    """The facts behind pairs, int64 [m, 2], under the given beliefs (rows of kg1) and relation alignment.

    With `witnesses="neighbour"` there is one fact for every pair of neighbours, the strongest. `most` keeps this many
    facts of a pair; None keeps all.
    """
    one_each = by_neighbour(witnesses)
    kept, totals = [], np.zeros(len(pairs))
    for block in _blocks(kg1, pairs[:, 0], beliefs):
        joined = _weighed(_joined(kg1, kg2, pairs, block, beliefs), kg1, kg2, relations)
        if one_each:
            joined = _strongest_of_neighbours(joined, kg1, kg2)
        np.add.at(totals, joined.pair, joined.evidence)
        joined = joined[np.lexsort((joined.edge2, joined.edge, -joined.evidence, joined.pair))]
        place = np.arange(len(joined.pair)) - np.searchsorted(joined.pair, joined.pair)
        kept.append(joined if most is None else joined[place < most])
    pair, edge, edge2, weight, evidence = (
        np.concatenate([getattr(part, field.name) for part in kept]) for field in fields(_Joined)
    )
    return FactTable(
        offsets(pair, len(pairs)), totals, kg1.relations[edge], kg1.neighbors[edge], kg2.relations[edge2],
        kg2.neighbors[edge2], weight, evidence,
    )  # fmt: skip


def _blocks(kg1: KG, sources: np.ndarray, beliefs: Beliefs) -> Iterator[np.ndarray]:
    """Places of pairs, block by block; at least one block, which may be empty."""
    of_neighbours = np.concatenate([[0], np.cumsum(np.diff(beliefs.indptr)[kg1.neighbors])])
    rows = of_neighbours[kg1.indptr[sources + 1]] - of_neighbours[kg1.indptr[sources]]
    block = np.cumsum(rows) // ROWS_PER_BLOCK
    yield from np.split(np.arange(len(sources)), np.flatnonzero(np.diff(block)) + 1)


def _joined(kg1: KG, kg2: KG, pairs: np.ndarray, block: np.ndarray, beliefs: Beliefs) -> _Joined:
    """All pairs of edges whose ends are believed to be the same, without their evidence."""
    sources, targets = pairs[block].T
    place, edge = _runs(kg1.indptr, sources)
    row, belief = _runs(beliefs.indptr, kg1.neighbors[edge].astype(np.int64))
    place, edge, believed = place[row], edge[row], beliefs.targets[belief].astype(np.int64)
    place2, edge2 = _runs(kg2.indptr, targets)
    keys = place2 * kg2.num_entities + kg2.neighbors[edge2]  # in order, because the edges of an entity are
    wanted = place * kg2.num_entities + believed
    first, last = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    match = np.repeat(np.arange(len(wanted)), last - first)
    meets = edge2[concatenated_runs(first, last - first)]
    weight = beliefs.weights[belief[match]].astype(np.float64)
    return _Joined(block[place[match]], edge[match], meets, weight, np.zeros(len(match)))


def _runs(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every entry of these rows: the place of its row among them, and its own place."""
    starts, lengths = indptr[rows], indptr[rows + 1] - indptr[rows]
    return np.repeat(np.arange(len(rows)), lengths), concatenated_runs(starts, lengths)


def _weighed(facts: _Joined, kg1: KG, kg2: KG, relations: RelationAlignment) -> _Joined:
    """The facts that add to the evidence, with what they add."""
    r, r2 = kg1.relations[facts.edge], kg2.relations[facts.edge2]
    sub12, sub21 = entries_at(relations.sub12, r, r2), entries_at(relations.sub21, r2, r)
    absent = (sub12 == 0) & (sub21 == 0)
    default = np.float32(relations.default)
    from1 = (np.where(absent, default, sub21) * kg1.inverse_functionality[r]).astype(np.float64)
    from2 = (np.where(absent, default, sub12) * kg2.inverse_functionality[r2]).astype(np.float64)
    evidence = minus_log(from1 * facts.weight) + minus_log(from2 * facts.weight)
    counted = evidence > 0
    kept = facts[counted]
    return _Joined(kept.pair, kept.edge, kept.edge2, kept.weight, evidence[counted])


def _strongest_of_neighbours(facts: _Joined, kg1: KG, kg2: KG) -> _Joined:
    """Of the facts about one pair of neighbours the first of the strongest."""
    neighbor, neighbor2 = kg1.neighbors[facts.edge], kg2.neighbors[facts.edge2]
    order = np.lexsort((facts.edge2, facts.edge, -facts.evidence, neighbor2, neighbor, facts.pair))
    witnesses = np.stack([facts.pair, neighbor, neighbor2], axis=1)[order]
    return facts[order[run_starts(witnesses)]]
