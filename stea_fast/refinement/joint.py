"""Joint refinement: both sides compete for a pair at once, and neighbours propose pairs that no encoder thought of.

The candidates of both directions and the proposals are one sparse set of pairs. With the encoder's score s, the
evidence L and T = β·s + λ·L, a pair's probability is

    p(e, e') = √(p_row · p_column),   p_row = exp(T) / (Σ over the pairs of e of exp(T) + tail),  p_column likewise,

where the tail is the mass that the encoder gives to everything outside the set. As no two entities share a counterpart,
rows and columns are then balanced: each is divided by its sum, tail included, in turn (Sinkhorn's iteration). A pair
whose rivals are better off elsewhere gains; what an entity loses to better rivals goes to its tail. Every sweep aligns
the relations, lets the matched neighbours propose, and computes L anew, all from the p of the sweep before.

The pairs are in shards of rows (`shard.py`), which an executor holds. What concerns columns, relations and beliefs
is put together here, in the order of the shards.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from stea_fast._backends.counts import merge
from stea_fast._executors.base import Session, WorkersReplaced
from stea_fast._util.array_ops import ops_of
from stea_fast._util.devices import explained_shortage
from stea_fast._util.progress import Repeatable, steps, uncounted
from stea_fast.refinement import columns
from stea_fast.refinement.beliefs import from_pairs
from stea_fast.refinement.columns import OfColumns
from stea_fast.refinement.config import Joint
from stea_fast.refinement.normalisation import checked_partition, choose_betas
from stea_fast.refinement.prior import Prior, prior_of
from stea_fast.refinement.problem import Outcome, Problem
from stea_fast.refinement.relations import contained
from stea_fast.refinement.shard import (
    MAX_BELIEFS_PER_ENTITY,
    Matched,
    Shard,
    State,
    Task,
    Told,
    entities_of,
    parts_of,
    ranking,
    whole_part,
)
from stea_fast.refinement.shard_in_files import ShardInFiles
from stea_fast.refinement.start import affinity_at_seeds
from stea_fast.refinement.workplace import Workplace, shard_place
from stea_fast.types import Beliefs, RefinedRanking, RelationAlignment

logger = logging.getLogger("stea_fast")
Result = TypeVar("Result")

MAX_CHANGE_WHEN_SETTLED = 1e-3  # share of matched pairs that are new; no more than this ends the sweeps


def refine_jointly(problem: Problem, method: Joint) -> Outcome:
    """Refine both directions at once; where only one was given, its candidates are all that the encoder says."""
    place = shard_place(problem)
    rankings = place.rankings(problem, method.k)
    seeds = place.placed(problem.seeds)
    partition, beta = problem.softmax_partition(method.beta)
    betas = choose_betas(rankings, seeds, place.placed(problem.holdout), beta)
    log_sums = [
        checked_partition(partition, forward, scores, beta, place.device)
        for forward, (_, scores), beta in zip((True, False), rankings, betas, strict=False)
    ]
    # One inverse temperature for both directions: rows and columns share their scores.
    score = place.scorer(problem.score)
    prior = prior_of(rankings, problem.kg2.num_entities, float(np.mean(betas)), log_sums, score)
    what = f"a joint refinement of {problem.kg1.num_entities:,} x {problem.kg2.num_entities:,} entities"
    with explained_shortage(place.device, what), JointRefinement(problem, method, prior, place) as joint:
        joint.run(method.sweeps)
        refined = joint.rankings(rankings[0][0].shape[1])[: len(rankings)]
        alignment = joint.alignment if problem.relations is None else problem.relations
        return Outcome(refined, alignment, joint.beliefs, joint.sweeps, betas)


class Held(NamedTuple):
    """What the driver knows after a sweep, and the next one begins with.

    Attributes:
        soft: the beliefs of the entities of both graphs.
        matched: the beliefs of either side in what is matched, with the probabilities.
        told: what the shards were told to propose by in that sweep; None before the first.
        states: those of all shards; None where no shard can be lost.
    """

    soft: tuple[Beliefs, Beliefs]
    matched: tuple[Beliefs, Beliefs]
    told: Told | None
    states: list[State] | None


class JointRefinement:
    """Sweeps over one sparse set of pairs, whose shards are with an executor.

    After `run`, `alignment` and `beliefs` are what the evidence rests on, and `sweeps` counts the sweeps made.
    """

    held: Held
    alignment: RelationAlignment
    beliefs: Beliefs
    sweeps = 0
    counted = Repeatable(uncounted)

    def __init__(self, problem: Problem, method: Joint, prior: Prior, place: Workplace) -> None:
        self.problem, self.method, self.prior = problem, method, prior
        self.around, self.kernels = place.around, place.kernels
        self.shape = problem.kg1.num_entities, problem.kg2.num_entities
        self.given = copy.copy(problem.relations)  # shards remember what they made of an alignment: of this graph pair
        there = None if place.device is None else (self.kernels, self.around)
        self.executor = place.executor
        around = problem.surroundings
        self.parts = parts_of(around.graphs) if there is None else [whole_part(around.graphs)]
        ranges = [entities_of(part.sources, self.shape[0]) for part in self.parts]
        task = Task(method, prior, place.placed(problem.seeds), self.shape, ranges, place.backend, there)
        kind = ShardInFiles if problem.execution.pairs_in_files and there is None else Shard
        self.shards: Session = self.executor.session(kind, self.parts, *around.plain, around.values, task)
        try:
            self._reliably(self._start)
        except BaseException:
            self.shards.close()
            raise

    def __enter__(self) -> JointRefinement:
        return self

    def __exit__(self, *error: object) -> None:
        self.shards.close()

    def _start(self) -> float:
        # Not balanced: what the encoder's short lists leave out would be forced upon the rest.
        return self._judged(self.shards.map("begin"), None, balance=0, damping=0.0)

    def run(self, sweeps: int) -> None:
        """Sweep until the matched pairs settle, at most this many times."""
        total = float(sweeps * len(self.parts))
        what = f"up to {sweeps} sweeps over {self.shape[0]:,} x {self.shape[1]:,} in {len(self.parts)} parts"
        with steps(self.problem.execution.progress, total, what) as step:
            self.counted = Repeatable(step)
            for self.sweeps in range(1, sweeps + 1):
                changed = self._reliably(self._sweep)
                self.counted.keep()
                logger.debug("sweep %d of %d: %.1f %% of the matched pairs are new", self.sweeps, sweeps, 100 * changed)
                if changed <= MAX_CHANGE_WHEN_SETTLED:
                    break
            step(total - self.sweeps * len(self.parts))

    def _sweep(self) -> float:
        """One sweep; returns the share of the matched pairs that were not matched before."""
        soft1, soft2 = map(self.around.beliefs, (0, 1), self.held.soft)
        self.alignment = self._relations(soft1, soft2)
        self.beliefs = soft1
        proposed = told = None
        if self.method.proposals:
            told = Told(self.alignment, *map(self.around.beliefs, (0, 1), self.held.matched))
            proposed = columns.by_owner(self.shards.map("propose", told, done=self._half))
        done = self._half if told else self.counted
        sums = self.shards.map("weigh", self.alignment, soft1, each=proposed, done=done)
        return self._judged(sums, told, self.method.balance, self.method.damping)

    def _half(self, parts: int) -> None:
        """Proposals and evidence are most of a sweep."""
        self.counted(parts / 2)

    def _relations(self, soft1: Beliefs, soft2: Beliefs) -> RelationAlignment:
        """The relation alignment of a sweep; in the first ones with what relations have in common at seeds."""
        if self.given is not None:
            return self.given
        counts = [merge(side) for side in zip(*self.shards.map("count", soft1, soft2), strict=True)]
        alignment = self.around.aligned(*contained(self.kernels, self.around.graphs, counts))
        if self.sweeps > self.method.start_sweeps:
            return alignment
        statements = (ops_of(each.den).double(each.den) * 2.0**-each.scale_bits for each in counts)
        return self.around.with_affinity(alignment, self.affinity, *statements)

    @cached_property
    def affinity(self) -> Any:
        """What the relations of both graphs have in common at seeds, and attributes at values."""
        around = self.problem.surroundings
        return self.around.affinity(affinity_at_seeds(*around.graphs, self.problem.seeds))

    def _judged(
        self, sums: list[tuple[OfColumns, OfColumns]], told: Told | None, balance: int, damping: float
    ) -> float:
        """Probabilities from the column sums of T and of β·s; returns the share of matched pairs that are new."""
        whole, listed = (columns.log_sum(parts, self.shape[1]) for parts in zip(*sums, strict=True))
        whole, tails = columns.wholes_and_tails(whole, listed, self.prior.log_partition[1])
        self.shards.map("judge", whole)
        factors = ops_of(tails).full(self.shape[1], 1.0)
        occurring = [of_columns.columns for of_columns, _ in sums]  # said once, since the balancing has many steps
        for _ in range(balance):
            factors = columns.factors(occurring, self.shards.map("scale", factors), tails)
        soft, best, largest = zip(*self.shards.map("finish", factors, damping), strict=True)
        matched = self.shards.map("match", columns.largest(largest, self.shape[1]))
        states = self.shards.map("state") if self.executor.can_lose_workers else None
        count = sum(len(part.rows) for part in matched)
        old = sum(part.old for part in matched)
        self.held = Held((_stacked(soft), self._of_columns(best)), self._matched(matched), told, states)
        return 1.0 - old / max(count, 1)

    def _of_columns(self, parts: tuple[columns.ColumnPairs, ...]) -> Beliefs:
        indptr, best = columns.best_pairs(parts, MAX_BELIEFS_PER_ENTITY, self.shape[1], self.kernels.pairs)
        return Beliefs(indptr, best.rows, ops_of(best.values).single(best.values))

    def _matched(self, parts: list[Matched]) -> tuple[Beliefs, Beliefs]:
        rows, targets, probs = (columns.chained([part[i] for part in parts]) for i in range(3))
        n1, n2 = self.shape
        return from_pairs(rows, targets, probs, n1), from_pairs(targets, rows, probs, n2)

    def rankings(self, k: int) -> list[RefinedRanking]:
        """The k best candidates of every source entity by p, and of every target entity."""
        return [self._reliably(lambda: self._forward(k)), self._reliably(lambda: self._backward(k))]

    def _forward(self, k: int) -> RefinedRanking:
        parts = self.shards.map("forward", k)
        tables = ([getattr(part, name) for part in parts] for name in ("indices", "probs", "evidence", "support"))
        return RefinedRanking(*map(columns.chained, tables))

    def _backward(self, k: int) -> RefinedRanking:
        indptr, best = columns.best_pairs(self.shards.map("backward", k), k, self.shape[1], self.kernels.pairs)
        return ranking(indptr, best.rows, (best.values, *best.others), k)

    def _reliably(self, step: Callable[[], Result]) -> Result:
        """A step in which all shards take part; if workers are lost, from the end of the sweep before once more."""
        try:
            return step()
        except WorkersReplaced as lost:  # the session counts the losses, and puts an end to them
            logger.warning("%s; the sweep begins anew", lost)
            self.counted.take_back()
        if hasattr(self, "held"):
            self._reliably(self._restore)
        return self._reliably(step)

    def _restore(self) -> None:
        self.shards.map("restore", self.held.told, each=self.held.states)


def _stacked(parts: tuple[Beliefs, ...]) -> Beliefs:
    """The beliefs of one range of rows after the other."""
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *(part.indptr[-1] for part in parts)])
    indptr = [part.indptr[:-1] + begin for part, begin in zip(parts, begins, strict=False)]
    return Beliefs(
        np.concatenate([*indptr, begins[-1:]]),
        np.concatenate([part.targets for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )
