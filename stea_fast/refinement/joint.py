"""Joint refinement: both sides compete for a pair at once, and neighbours propose pairs that no encoder thought of.

The candidates of both directions and the proposals are one sparse set of pairs. With the encoder's score s, the
evidence L and T = β·s + λ·L, a pair's probability is

    p(e, e') = √(p_row · p_column),   p_row = exp(T) / (Σ over the pairs of e of exp(T) + tail),  p_column likewise,

where the tail is the mass that the encoder gives to everything outside the set. As no two entities share a counterpart,
rows and columns are then balanced: each is divided by its sum, tail included, in turn (Sinkhorn's iteration). A pair
whose rivals are better off elsewhere gains; what an entity loses to better rivals goes to its tail. Every sweep aligns
the relations, lets the matched neighbours propose, and computes L anew, all from the p of the sweep before.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from stea_fast.refinement.beliefs import from_pairs
from stea_fast.refinement.config import Joint
from stea_fast.refinement.normalisation import checked_partition, choose_betas
from stea_fast.refinement.pair_set import PairScoreCache, PairSet, best_of_rows, distinct
from stea_fast.refinement.problem import Outcome, Problem
from stea_fast.refinement.start import affinity_at_seeds, with_affinity
from stea_fast.refinement.workplace import Workplace, on_host
from stea_fast.types import Beliefs, PairScores, RefinedRanking, RelationAlignment

logger = logging.getLogger("stea_fast")

MAX_BELIEFS_PER_ENTITY = 3  # more add noise, fewer lose the ones that are still open
MIN_BELIEF = 0.01
MAX_PAIRS_PER_SOURCE = 128  # hubs among the backward candidates have thousands
MAX_EDGES_PER_PROPOSAL = 20_000  # that the proposals of one entity may walk
UNKNOWN_TAIL = 0.1  # share of the encoder's mass outside the set, for balancing, where no partition sum is known
MAX_CHANGE_WHEN_SETTLED = 1e-3  # share of matched pairs that are new; no more than this ends the sweeps


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


def refine_jointly(problem: Problem, method: Joint) -> Outcome:
    """Refine both directions at once; where only one was given, its candidates are all that the encoder says."""
    place = on_host(problem)
    rankings = place.rankings(problem, method.k)
    partition, beta = problem.softmax_partition(method.beta)
    betas = choose_betas(rankings, problem.seeds, problem.holdout, beta)
    log_sums = [
        checked_partition(partition, forward, scores, beta)
        for forward, (_, scores), beta in zip((True, False), rankings, betas, strict=False)
    ]
    # One inverse temperature for both directions: rows and columns share their scores.
    prior = prior_of(rankings, problem.kg2.num_entities, float(np.mean(betas)), log_sums, problem.score)
    joint = JointRefinement(problem, method, prior, place)
    joint.run(method.sweeps)
    k = rankings[0][0].shape[1]
    refined = [joint.forward(k), joint.backward(k)][: len(rankings)]
    return Outcome(refined, joint.alignment, joint.beliefs, joint.sweeps, betas)


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
    return Prior(together, np.concatenate(scores)[first], score or _floor(rankings), beta, (rows, columns))


def _floor(rankings: Sequence[tuple[np.ndarray, np.ndarray]]) -> PairScores:
    """What a pair outside the lists can score at most."""
    lowest = [np.min(values, axis=1, where=np.isfinite(values), initial=np.inf) for _, values in rankings]
    least = min(float(values.min()) for values in lowest)
    least = least if np.isfinite(least) else 0.0

    def score(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        bound = lowest[0][i].astype(np.float64)
        if len(lowest) == 2:
            bound = np.minimum(bound, lowest[1][j])
        return np.where(np.isfinite(bound), bound, least)

    return score


class JointRefinement:
    """Sweeps over one sparse set of pairs.

    After `run`, `alignment` and `beliefs` are what the evidence rests on, and `sweeps` counts the sweeps made.
    """

    pairs: PairSet
    probs: np.ndarray  # float64 [pairs]
    sweeps = 0

    def __init__(self, problem: Problem, method: Joint, prior: Prior, place: Workplace) -> None:
        self.kg1, self.kg2, self.problem, self.method, self.prior = problem.kg1, problem.kg2, problem, method, prior
        self.place, self.kernels, self.threads = place, place.kernels, place.n_threads
        if not hasattr(self.kernels, "proposals"):
            raise ValueError("method='joint' runs on the CPU: leave the backend to be chosen, or use method='product'")
        self.shape = self.kg1.num_entities, self.kg2.num_entities
        seeds = problem.seeds
        self.open = tuple(_others(seeds[:, side], size) for side, size in enumerate(self.shape))
        self.seed_keys = np.sort(seeds[:, 0] * self.shape[1] + seeds[:, 1])
        self.scores = PairScoreCache(
            prior.keys, prior.scores, lambda keys: prior.score(*np.divmod(keys, self.shape[1]))
        )
        self._set_pairs(prior.keys)
        self.evidence, self.worth = np.zeros(len(self.pairs)), np.ones(len(self.pairs))
        # Not balanced: what the encoder's short lists leave out would be forced upon the rest.
        self._update_probabilities(balance=0)

    def run(self, sweeps: int) -> None:
        """Sweep until the matched pairs settle, at most this many times."""
        for self.sweeps in range(1, sweeps + 1):
            before = self._matched_keys()
            self._sweep()
            after = self._matched_keys()
            changed = 1.0 - len(np.intersect1d(before, after, assume_unique=True)) / max(len(after), 1)
            logger.debug("sweep %d of %d: %.1f %% of the matched pairs are new", self.sweeps, sweeps, 100 * changed)
            if changed <= MAX_CHANGE_WHEN_SETTLED:
                break

    def _sweep(self) -> None:
        before = self.pairs.keys, self.probs
        soft1, soft2 = self._beliefs()
        self.alignment = self._relations(soft1, soft2)
        strengths = self.kernels.strengths(self.alignment, self.kg1, self.kg2)
        if self.method.proposals:
            self._set_pairs(np.concatenate([self.prior.keys, *self._proposed(strengths)]))
        self.beliefs = soft1
        padded, places = self.pairs.padded_columns()
        evidence, witnesses = self.kernels.evidence_and_witnesses(
            self.kg1, self.kg2, padded, soft1, strengths, forward=True, rows=(0, self.shape[0]),
            n_threads=self.threads, witnesses=self.method.witnesses,
        )  # fmt: skip
        self.evidence = evidence[self.pairs.rows, places].astype(np.float64)
        self.worth = np.where(witnesses[self.pairs.rows, places] == 1, self.method.lone_witness, 1.0)
        self._update_probabilities(self.method.balance)
        self._damp(*before)

    def _relations(self, soft1: Beliefs, soft2: Beliefs) -> RelationAlignment:
        """The relation alignment of a sweep; in the first ones with what relations have in common at seeds."""
        alignment = self.place.relations(self.problem.relations, (soft1, soft2))
        if self.problem.relations is not None or self.sweeps > self.method.start_sweeps:
            return alignment
        graphs = (self.kg1, self.kg2), (self.kg2, self.kg1)
        counts = [
            self.kernels.relation_counts(*sides, held, rows=(0, sides[0].num_entities), n_threads=self.threads)
            for sides, held in zip(graphs, (soft1, soft2), strict=True)
        ]
        statements = (each.den * 2.0**-each.scale_bits for each in counts)
        return with_affinity(alignment, self.affinity, *statements)

    @cached_property
    def affinity(self) -> csr_array:
        """What the relations of both graphs have in common at seeds."""
        return affinity_at_seeds(self.kg1, self.kg2, self.problem.seeds)

    def _damp(self, keys: np.ndarray, probs: np.ndarray) -> None:
        """Keep a share of the probabilities that pairs had before: what two rivals hold in turn does not swing."""
        if not self.method.damping:
            return
        places = np.minimum(np.searchsorted(keys, self.pairs.keys), len(keys) - 1)
        before = np.where(keys[places] == self.pairs.keys, probs[places], 0.0)
        mixed = (1.0 - self.method.damping) * self.probs + self.method.damping * before
        self.probs = np.where(self.is_seed, 1.0, mixed)

    def _set_pairs(self, keys: np.ndarray) -> None:
        """Make these pairs the set: with the seeds, without other pairs of seeds, the best of rows with too many."""
        keys = distinct(keys)
        rows, columns = np.divmod(keys, self.shape[1])
        keys = keys[self.open[0][rows] & self.open[1][columns]]
        rows = keys // self.shape[1]
        if np.bincount(rows).max(initial=0) > MAX_PAIRS_PER_SOURCE:
            keys = np.sort(keys[best_of_rows(rows, self.scores(keys), MAX_PAIRS_PER_SOURCE, self.shape[0])])
        keys = distinct(np.concatenate([keys, self.seed_keys]))
        self.pairs = PairSet(keys, self.shape)
        self.is_seed = np.isin(keys, self.seed_keys, assume_unique=True)
        self.logits = self.prior.beta * self.scores(keys)

    def _update_probabilities(self, balance: int) -> None:
        """Compute T and p of every pair, with this many iterations of balancing."""
        self.total = self.logits + self.method.evidence_weight * self.worth * self.evidence
        sides = ((self.pairs.by_row, self.pairs.rows), (self.pairs.by_column, self.pairs.columns))
        log_prob, tails = np.zeros(len(self.pairs)), []
        for (grouping, group_of), log_all in zip(sides, self.prior.log_partition, strict=True):
            whole, listed = (grouping.log_sum_exp(values, group_of) for values in (self.total, self.logits))
            if log_all is None:
                log_tail = np.log(UNKNOWN_TAIL) + listed
            else:
                with np.errstate(divide="ignore"):
                    log_tail = log_all + np.log(1.0 - np.exp(np.minimum(listed - log_all, 0.0)))
                whole = np.logaddexp(whole, log_tail)
            empty = np.full_like(whole, -np.inf)
            tails.append(np.exp(np.subtract(log_tail, whole, where=np.isfinite(whole), out=empty)))
            log_prob += 0.5 * (self.total - whole[group_of])
        probs = np.exp(np.minimum(log_prob, 0.0))
        self.support = np.where(self.is_seed, 1.0, probs)
        self.probs = np.where(self.is_seed, 1.0, self.pairs.balanced(probs, tails, balance))

    def _matched(self) -> np.ndarray:
        """bool [pairs]: those that are the best of both their sides."""
        return self.pairs.mutual_best(np.where(self.is_seed, np.inf, self.probs))

    def _matched_keys(self) -> np.ndarray:
        return self.pairs.keys[self._matched()]

    def _beliefs(self) -> tuple[Beliefs, Beliefs]:
        """The few most probable pairs of every entity, seen from both sides."""
        kept = np.flatnonzero(self.probs > MIN_BELIEF)
        rows, columns, probs = self.pairs.rows[kept], self.pairs.columns[kept], self.probs[kept]
        sides = []
        for own, other, size in ((rows, columns, self.shape[0]), (columns, rows, self.shape[1])):
            best = best_of_rows(own, probs, MAX_BELIEFS_PER_ENTITY, size)
            sides.append(from_pairs(own[best], other[best], probs[best], size))
        return sides[0], sides[1]

    def _proposed(self, strengths: Any) -> list[np.ndarray]:
        """Keys of the pairs that matched neighbours propose, of either side."""
        matched = self._matched()
        rows, columns, probs = self.pairs.rows[matched], self.pairs.columns[matched], self.probs[matched]
        n1, n2 = self.shape
        common: dict[str, Any] = {
            "k": self.method.proposals,
            "budget": MAX_EDGES_PER_PROPOSAL,
            "n_threads": self.threads,
        }
        common["witnesses"] = self.method.witnesses
        forward, _ = self.kernels.proposals(
            self.kg1, self.kg2, from_pairs(rows, columns, probs, n1), strengths, *self.open, forward=True, rows=(0, n1),
            **common,
        )  # fmt: skip
        backward, _ = self.kernels.proposals(
            self.kg2, self.kg1, from_pairs(columns, rows, probs, n2), strengths, *self.open[::-1], forward=False,
            rows=(0, n2), **common,
        )  # fmt: skip
        (i, a), (j, b) = np.nonzero(forward >= 0), np.nonzero(backward >= 0)
        return [i * n2 + forward[i, a].astype(np.int64), backward[j, b].astype(np.int64) * n2 + j]

    def forward(self, k: int) -> RefinedRanking:
        """The k best candidates of every source entity by p."""
        return self._ranking(self.pairs.rows, self.pairs.columns, self.shape[0], k)

    def backward(self, k: int) -> RefinedRanking:
        """The k best candidates of every target entity by p."""
        return self._ranking(self.pairs.columns, self.pairs.rows, self.shape[1], k)

    def _ranking(self, own: np.ndarray, other: np.ndarray, size: int, k: int) -> RefinedRanking:
        best = best_of_rows(own, self.probs, k, size)
        indices = np.full((size, k), -1, dtype=np.int32)
        probs, evidence, support = np.zeros((3, size, k), dtype=np.float32)
        rows = own[best]
        places = np.arange(len(best)) - np.searchsorted(rows, rows)
        indices[rows, places], probs[rows, places] = other[best], self.probs[best]
        evidence[rows, places], support[rows, places] = self.evidence[best], self.support[best]
        return RefinedRanking(indices, probs, evidence, support)


def _others(entities: np.ndarray, size: int) -> np.ndarray:
    mask = np.ones(size, dtype=bool)
    mask[entities] = False
    return mask
