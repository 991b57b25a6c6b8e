"""A shard of the joint refinement: a range of source rows with their pairs, and all that is heavy about them.

A shard also owns a range of targets: it computes what these propose and count, which needs no pairs. Which rows a shard
has depends on the graphs alone, so a result does not depend on where its shards are, or on how many workers have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from stea_fast import _backends
from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.made_once import MadeOnce
from stea_fast._util.sparse import first_of_each, rows_of
from stea_fast._util.threads import row_blocks
from stea_fast.clues.value_nodes import ValueNodes
from stea_fast.data.graph import KG
from stea_fast.refinement.columns import ColumnPairs, OfColumns, PairsByOwner, wholes_and_tails
from stea_fast.refinement.config import Joint
from stea_fast.refinement.pair_set import PairSet, from_keys
from stea_fast.refinement.prior import Prior
from stea_fast.refinement.proposing import Proposer
from stea_fast.refinement.surroundings import Surroundings
from stea_fast.types import Beliefs, RefinedRanking, RelationAlignment

EDGES_PER_SHARD = 1 << 18  # of the source graph: what proposals read of it fits a processor's cache
MOST_SHARDS = 32  # each has a number for every column
MAX_BELIEFS_PER_ENTITY = 3  # more add noise, fewer lose the ones that are still open
MIN_BELIEF = 0.01
MAX_PAIRS_PER_SOURCE = 128  # hubs among the backward candidates have thousands

_STRENGTHS = MadeOnce()  # the shards of a process share a table


class Part(NamedTuple):
    """The rows of a shard in the source graph, and its rows in the target graph: begin and end; values included."""

    sources: tuple[int, int]
    targets: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Task:
    """What all shards of a refinement know, beside the graphs.

    Attributes:
        method: the options.
        prior: what the encoder says.
        seeds: int64 [m, 2].
        shape: how many entities both graphs have, without values.
        ranges: the rows of every shard, begin and end, without values.
        backend: whose kernels are used.
        device: kernels and surroundings on a device, where all arrays are then; None on the host.
    """

    method: Joint
    prior: Prior
    seeds: Array
    shape: tuple[int, int]
    ranges: Sequence[tuple[int, int]]
    backend: str
    device: tuple[Any, Surroundings] | None = None

    @cached_property
    def open(self) -> tuple[Array, Array]:
        """bool [n1] and [n2]: the entities that are in no seed."""
        open1, open2 = map(ops_of(self.seeds).all_true, self.shape)
        open1[self.seeds[:, 0]], open2[self.seeds[:, 1]] = False, False
        return open1, open2


class State(NamedTuple):
    """What a shard carries from sweep to sweep, and what a ranking shows of it."""

    indptr: Array
    columns: Array
    scores: Array
    probs: Array
    matched: Array
    evidence: Array
    support: Array
    proposed: tuple[tuple[Array, ...], ...]


class Told(NamedTuple):
    """What the shards of a sweep propose by: the relations, and what either side is matched with; values included."""

    alignment: RelationAlignment
    matched1: Beliefs
    matched2: Beliefs


class Matched(NamedTuple):
    """The pairs that are the best of both their sides, and how many of them were so before."""

    rows: Array
    columns: Array
    probs: Array
    old: int


def parts_of(graphs: tuple[KG, KG]) -> list[Part]:
    """Shards of about equally many edges, by the source graph's size; a power of two is shared out evenly."""
    wanted = min(max(1, len(graphs[0].edges) // EDGES_PER_SHARD), MOST_SHARDS)
    count = 1 << (wanted - 1).bit_length()
    sides = []
    for kg in graphs:
        blocks = row_blocks(kg.indptr + np.arange(len(kg.indptr)), count)
        sides.append(blocks + [(kg.num_entities, kg.num_entities)] * (count - len(blocks)))
    return [Part(sources, targets) for sources, targets in zip(*sides, strict=True)]


def whole_part(graphs: tuple[KG, KG]) -> Part:
    """One shard of everything: what a device works on."""
    return Part((0, graphs[0].num_entities), (0, graphs[1].num_entities))


def entities_of(rows: tuple[int, int], count: int) -> tuple[int, int]:
    """The part of a range of nodes that are entities: values stand behind them."""
    begin, end = rows
    return min(begin, count), min(end, count)


class Shard:
    """The pairs of some rows. Its methods are the steps of a sweep, in this order; each is one call of a worker."""

    pairs: PairSet
    probs: Array  # float64 [pairs]
    support: Array  # float32 [pairs]
    evidence: Array  # float32 [pairs]
    matched: Array  # bool [pairs]
    before: PairSet  # of the sweep before
    old_probs: Array  # float64 [pairs of the sweep before]

    def __init__(self, part: Part, n_threads: int, kg1: KG, kg2: KG, values: ValueNodes | None, task: Task) -> None:
        self.part, self.n_threads, self.task, self.method = part, n_threads, task, task.method
        self.ops = ops_of(task.seeds)
        here = Surroundings((kg1, kg2), values)
        self.kernels: Any
        self.kernels, self.around = task.device or (_backends.resolve(task.backend), here)
        self.rows, self.targets = map(entities_of, part, task.shape)
        self.open_rows = task.open[0][slice(*self.rows)]
        ranges = self.rows, self.targets
        self.proposers = [Proposer(self.around, side, rows, task.open) for side, rows in enumerate(ranges)]
        self.candidates = self._candidates()

    def _candidates(self) -> PairSet:
        """What the encoder lists, without other pairs of seeds, and the seeds."""
        prior, seeds, num_columns = self.task.prior, self.task.seeds, self.task.shape[1]
        ops, bounds = self.ops, np.array(self.rows) * num_columns
        own = slice(*ops.places(prior.keys, ops.positions(bounds)).tolist())
        keys, scores = prior.keys[own], prior.scores[own]
        listed = self.task.open[0][keys // num_columns] & self.task.open[1][keys % num_columns]
        seeds = seeds[(seeds[:, 0] >= self.rows[0]) & (seeds[:, 0] < self.rows[1])]
        seed_keys = seeds[:, 0] * num_columns + seeds[:, 1]
        keys, first = first_of_each(ops.chain([keys[listed], seed_keys]))
        scores = ops.chain([scores[listed], prior.score(*seeds.T)])[first]
        is_part = len(self.task.ranges) > 1
        return from_keys(keys, scores, self.rows, num_columns, self.kernels.pairs, self.n_threads, is_part=is_part)

    def begin(self) -> tuple[OfColumns, OfColumns]:
        """Start with the candidates, of which nothing is evident; returns the sums of columns as `weigh` does."""
        self._set_pairs(self.candidates.bare())
        self.before = self.pairs
        self.matched = ~self.ops.all_true(len(self.pairs))
        self.evidence = self.ops.full(len(self.pairs), 0.0, "float32")
        return self._weighed(self.logits)

    def count(self, soft1: Beliefs, soft2: Beliefs) -> tuple[Any, Any]:
        """The relation counts of its rows and of its targets."""
        kg1, kg2 = self.around.graphs
        options = {"n_threads": self.n_threads}
        return (
            self.kernels.relation_counts(kg1, kg2, soft1, rows=self.part.sources, **options),
            self.kernels.relation_counts(kg2, kg1, soft2, rows=self.part.targets, **options),
        )

    def propose(self, told: Told) -> PairsByOwner:
        """Let matched neighbours propose pairs for its rows; returns what they propose for its targets."""
        options: dict[str, Any] = {
            "k": self.method.proposals,
            "least": self.method.least_proposal,
            "n_threads": self.n_threads,
            "witnesses": self.method.witnesses,
        }
        alignment, *matched = told
        strengths = self._strengths(alignment)
        self.proposed, backward = (
            proposer.propose(self.kernels, held, alignment, strengths, **options)
            for proposer, held in zip(self.proposers, matched, strict=True)
        )
        return self._by_owner(backward)

    def _by_owner(self, proposed: Array) -> PairsByOwner:
        """What its targets propose, int32 [targets, k], as pairs of every shard that has their rows."""
        flat = proposed.ravel()
        there = self.ops.nonzero(flat >= 0)
        rows, columns = flat[there], self.ops.int32(there // proposed.shape[1] + self.targets[0])
        pairs = []
        for begin, end in self.task.ranges:
            own = self.ops.nonzero((rows >= begin) & (rows < end))
            pairs.append((rows[own] - begin, columns[own]))
        return pairs

    def weigh(
        self, alignment: RelationAlignment, soft1: Beliefs, of_columns: tuple[Array, Array] | None = None
    ) -> tuple[OfColumns, OfColumns]:
        """Take in what was proposed, and compute the evidence of all pairs and T.

        Returns log Σ exp of T and of β·s for the columns of its pairs.
        """
        self.before, self.old_probs = self.pairs, self.probs
        if of_columns is not None:
            self.before = self.pairs.bare()
            self._set_pairs(self.candidates.united(self.proposed, of_columns, self.before, self.task.prior.score))
        self.evidence, witnesses = self.kernels.evidence_of_pairs(
            *self.around.graphs, self.pairs.indptr, self.pairs.columns, soft1, self._strengths(alignment),
            rows=self.rows, n_threads=self.n_threads, witnesses=self.method.witnesses,
        )  # fmt: skip
        weights = self.method.evidence_weight, self.method.lone_witness
        return self._weighed(self.pairs.totals(self.evidence, witnesses, self.logits, *weights))

    def _weighed(self, total: Array) -> tuple[OfColumns, OfColumns]:
        self.total = total
        (rows, columns), (listed_rows, listed) = self.pairs.log_sums(total), self.pairs.log_sums(self.logits)
        log_all = self.task.prior.log_partition[0]
        of_rows = None if log_all is None else log_all[slice(*self.rows)]
        self.row_wholes, self.row_tails = wholes_and_tails(rows, listed_rows, of_rows)
        return self._of_columns(columns), self._of_columns(listed)

    def _of_columns(self, values: Array) -> OfColumns:
        return OfColumns(self.pairs.occurring, values)

    def judge(self, column_wholes: Array) -> None:
        """Compute the probabilities, given the logarithms of all that a column has."""
        sums = self.row_wholes, column_wholes[self.pairs.occurring]
        self.unscaled = self.pairs.joint_probabilities(self.total, sums)
        del self.total
        self.support = self.ops.single(self.unscaled)
        self.support[self.of_seeds] = 1.0
        self.row_factors = self.ops.full(len(self.pairs.indptr) - 1, 1.0)

    def scale(self, column_factors: Array) -> Array:
        """Balance the rows, given the factors of the columns; returns the sums of the columns that it has pairs of."""
        factors = column_factors[self.pairs.occurring]
        self.row_factors, sums = self.pairs.scale_rows(self.unscaled, self.row_tails, factors)
        return sums

    def finish(self, column_factors: Array, damping: float) -> tuple[Beliefs, ColumnPairs, OfColumns]:
        """The probabilities of the sweep, with a share of those that pairs had before.

        Returns the beliefs of its rows, and the best pairs and the largest value of its columns.
        """
        scaled = self.pairs.scaled(self.unscaled, self.row_factors, column_factors[self.pairs.occurring])
        del self.unscaled
        self.places = self.pairs.positions_in(self.before)
        if damping:  # what two rivals hold in turn does not swing
            scaled = self.pairs.damped(scaled, self.old_probs, self.places, damping)
        scaled[self.of_seeds] = 1.0
        self.probs = scaled
        (begin, best), (_, of_columns) = self.pairs.best(self.probs, MAX_BELIEFS_PER_ENTITY, MIN_BELIEF)
        held = Beliefs(begin, self.pairs.columns[best], self.ops.single(self.probs[best]))
        largest = self._of_columns(self.pairs.largest_of_columns(self.probs))
        return held, self._column_pairs(of_columns), largest

    def match(self, largest_of_columns: Array) -> Matched:
        """Its pairs that are the best of both their sides, given the largest value of every column.

        Seeds are among them: a seed's row and its column hold nothing but seeds.
        """
        largest = largest_of_columns[self.pairs.occurring]
        before, self.matched = self.matched, self.pairs.mutual_best(self.probs, largest)
        matched = self.ops.nonzero(self.matched)
        now = self.places[matched]
        old = int(before[now[now >= 0]].sum())
        rows, columns, probs = (part[matched] for part in (self.pairs.rows, self.pairs.columns, self.probs))
        return Matched(rows, columns, probs, old)

    def _column_pairs(self, positions: Array, *others: Array) -> ColumnPairs:
        rows, columns = self.pairs.rows[positions], self.pairs.columns[positions]
        return ColumnPairs(rows, columns, self.probs[positions], tuple(other[positions] for other in others))

    def forward(self, k: int) -> RefinedRanking:
        """The k best candidates of its rows by p."""
        indptr, best = self.pairs.best(self.probs, k)[0]
        values = self.probs[best], self.evidence[best], self.support[best]
        return ranking(indptr, self.pairs.columns[best], values, k)

    def backward(self, k: int) -> ColumnPairs:
        """The k best of its pairs of every column by p, with evidence and support."""
        return self._column_pairs(self.pairs.best(self.probs, k)[1][1], self.evidence, self.support)

    def state(self) -> State:
        """What it would take to go on elsewhere after a sweep."""
        pairs = self.pairs
        carried = self.probs, self.matched, self.evidence, self.support
        proposed = tuple(proposer.state() for proposer in self.proposers)
        return State(pairs.indptr, pairs.columns, pairs.scores, *carried, proposed)

    def restore(self, told: Told | None, state: State) -> None:
        """Go on from what another shard of the same rows had, which was told this in the sweep before."""
        indptr, columns, scores, self.probs, self.matched, self.evidence, self.support, proposed = state
        ranges = self.rows, self.targets
        self.proposers = [Proposer(self.around, side, rows, self.task.open) for side, rows in enumerate(ranges)]
        if told is not None:
            for proposer, own, matched in zip(self.proposers, proposed, told[1:], strict=True):
                proposer.restore(own, matched, told.alignment)
        self._use(self.candidates.like(indptr, columns, scores))

    def _set_pairs(self, pairs: PairSet) -> None:
        """Make these pairs the set: of rows with too many the best, by the encoder's scores."""
        self._use(pairs.with_best_of(self.open_rows, MAX_PAIRS_PER_SOURCE))

    def _use(self, pairs: PairSet) -> None:
        self.pairs = pairs
        self.of_seeds = pairs.places_of_rows(self.ops.nonzero(~self.open_rows))  # a seed's row holds nothing else
        self.logits = self.task.prior.beta * pairs.scores

    def _strengths(self, alignment: RelationAlignment) -> Any:
        return _STRENGTHS.of(alignment, lambda: self.kernels.strengths(alignment, *self.around.graphs))


def ranking(indptr: Array, ids: Array, values: tuple[Array, ...], k: int) -> RefinedRanking:
    """Rows of at most k candidates, best first, as a table; `values` are probabilities, evidence and support."""
    ops, rows = ops_of(indptr), rows_of(indptr)
    places = rows, ops.arange(len(rows)) - indptr[rows]
    shape = len(indptr) - 1, k
    indices = ops.full(shape, -1, "int32")
    probs, evidence, support = ops.full((3, *shape), 0.0, "float32")
    indices[places] = ids
    for table, value in zip((probs, evidence, support), values, strict=True):
        table[places] = ops.single(value)
    return RefinedRanking(indices, probs, evidence, support)
