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
from stea_fast.refinement.pair_set import PairSet, from_keys, padded
from stea_fast.refinement.problem import Outcome, Problem
from stea_fast.refinement.proposing import Proposer
from stea_fast.refinement.relations import contained, counted
from stea_fast.refinement.start import affinity_at_seeds, with_affinity
from stea_fast.refinement.workplace import Workplace, on_host
from stea_fast.types import Beliefs, PairScores, RefinedRanking, RelationAlignment

logger = logging.getLogger("stea_fast")

MAX_BELIEFS_PER_ENTITY = 3  # more add noise, fewer lose the ones that are still open
MIN_BELIEF = 0.01
MAX_PAIRS_PER_SOURCE = 128  # hubs among the backward candidates have thousands
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
        self.problem, self.method, self.prior = problem, method, prior
        self.around = problem.surroundings
        self.kg1, self.kg2 = self.around.graphs  # as the kernels see them
        self.place, self.kernels, self.threads = place, place.kernels, place.n_threads
        if not hasattr(self.kernels, "proposals"):
            raise ValueError("method='joint' runs on the CPU: leave the backend to be chosen, or use method='product'")
        self.shape = problem.kg1.num_entities, problem.kg2.num_entities
        self.open = tuple(_others(problem.seeds[:, side], size) for side, size in enumerate(self.shape))
        self.proposers = [Proposer(self.around, side, (0, size), self.open) for side, size in enumerate(self.shape)]
        self.candidates = self._candidates()
        self._set_pairs(self.candidates)
        self.evidence, self.witnesses = np.zeros(len(self.pairs), np.float32), np.zeros(len(self.pairs), np.int32)
        # Not balanced: what the encoder's short lists leave out would be forced upon the rest.
        self._update_probabilities(balance=0)
        self.matched = self._matched()

    def _candidates(self) -> PairSet:
        """What the encoder lists, without other pairs of seeds, and the seeds."""
        keys, scores, num_columns = self.prior.keys, self.prior.scores, self.shape[1]
        rows, columns = np.divmod(keys, num_columns)
        listed = self.open[0][rows] & self.open[1][columns]
        seeds = self.problem.seeds
        seed_keys = seeds[:, 0] * num_columns + seeds[:, 1]
        keys, first = np.unique(np.concatenate([keys[listed], seed_keys]), return_index=True)
        scores = np.concatenate([scores[listed], self.prior.score(*seeds.T)])[first]
        return from_keys(keys, scores, self.shape, self.kernels.pairs, self.threads)

    def run(self, sweeps: int) -> None:
        """Sweep until the matched pairs settle, at most this many times."""
        for self.sweeps in range(1, sweeps + 1):
            changed = self._sweep()
            logger.debug("sweep %d of %d: %.1f %% of the matched pairs are new", self.sweeps, sweeps, 100 * changed)
            if changed <= MAX_CHANGE_WHEN_SETTLED:
                break

    def _sweep(self) -> float:
        """One sweep; returns the share of the matched pairs that were not matched before."""
        before, probs, matched = self.pairs, self.probs, self.matched
        soft1, soft2 = map(self.around.beliefs, (0, 1), self.pairs.beliefs(probs, MAX_BELIEFS_PER_ENTITY, MIN_BELIEF))
        self.alignment = self._relations(soft1, soft2)
        strengths = self.kernels.strengths(self.alignment, self.kg1, self.kg2)
        if self.method.proposals:
            self._set_pairs(self.candidates.united(*self._proposed(strengths), before, self.prior.score))
        self.beliefs = soft1
        self.evidence, self.witnesses = self.kernels.evidence_of_pairs(
            self.kg1, self.kg2, self.around.offsets(self.pairs.indptr), self.pairs.columns, soft1, strengths,
            n_threads=self.threads, witnesses=self.method.witnesses,
        )  # fmt: skip
        self._update_probabilities(self.method.balance)
        places = self.pairs.positions_in(before)
        if self.method.damping:
            self._damp(np.append(probs, 0.0)[places])  # the last is for those that were not there
        self.matched = self._matched()
        now = places[self.matched]
        return 1.0 - np.count_nonzero(matched[now[now >= 0]]) / max(len(now), 1)

    def _relations(self, soft1: Beliefs, soft2: Beliefs) -> RelationAlignment:
        """The relation alignment of a sweep; in the first ones with what relations have in common at seeds."""
        if self.problem.relations is not None:
            return self.problem.relations
        graphs = self.kg1, self.kg2
        counts = counted(self.kernels, graphs, (soft1, soft2), n_threads=self.threads)
        alignment = RelationAlignment.trusted(*contained(self.kernels, graphs, counts))
        if self.sweeps > self.method.start_sweeps:
            return alignment
        statements = (each.den * 2.0**-each.scale_bits for each in counts)
        return with_affinity(alignment, self.affinity, *statements)

    @cached_property
    def affinity(self) -> csr_array:
        """What the relations of both graphs have in common at seeds, and attributes at values."""
        return self.around.affinity(affinity_at_seeds(self.kg1, self.kg2, self.problem.seeds))

    def _damp(self, before: np.ndarray) -> None:
        """Keep a share of the probabilities that pairs had before: what two rivals hold in turn does not swing."""
        mixed = (1.0 - self.method.damping) * self.probs + self.method.damping * before
        self.probs = np.where(self.is_seed, 1.0, mixed)

    def _set_pairs(self, pairs: PairSet) -> None:
        """Make these pairs the set: of rows with too many the best, by the encoder's scores."""
        self.pairs = pairs.with_best_of(self.open[0], MAX_PAIRS_PER_SOURCE)
        self.is_seed = np.repeat(~self.open[0], np.diff(self.pairs.indptr))  # a seed's row holds nothing else
        self.logits = self.prior.beta * self.pairs.scores

    def _update_probabilities(self, balance: int) -> None:
        """Compute T and p of every pair, with this many iterations of balancing."""
        total = self.evidence * np.float64(self.method.evidence_weight)
        if self.method.lone_witness != 1.0:
            total[self.witnesses == 1] *= self.method.lone_witness
        total += self.logits
        wholes, tails = [], []
        sums = self.pairs.log_sums(total), self.pairs.log_sums(self.logits)
        for whole, listed, log_all in zip(*sums, self.prior.log_partition, strict=True):
            if log_all is None:
                log_tail = np.log(UNKNOWN_TAIL) + listed
            else:
                with np.errstate(divide="ignore"):
                    log_tail = log_all + np.log(1.0 - np.exp(np.minimum(listed - log_all, 0.0)))
                whole = np.logaddexp(whole, log_tail)
            empty = np.full_like(whole, -np.inf)
            tails.append(np.exp(np.subtract(log_tail, whole, where=np.isfinite(whole), out=empty)))
            wholes.append(whole)
        probs = self.pairs.joint_probabilities(total, tuple(wholes))
        self.support = np.where(self.is_seed, 1.0, probs)
        self.probs = np.where(self.is_seed, 1.0, self.pairs.balanced(probs, tuple(tails), balance))

    def _matched(self) -> np.ndarray:
        """bool [pairs]: those that are the best of both their sides."""
        return self.pairs.mutual_best(np.where(self.is_seed, np.inf, self.probs))

    def _proposed(self, strengths: Any) -> tuple[np.ndarray, np.ndarray]:
        """int32 [n1, k] and [n2, k]: what matched neighbours propose for the entities of either side, -1 for none."""
        places = np.flatnonzero(self.matched)
        rows, columns, probs = (part[places] for part in (self.pairs.rows, self.pairs.columns, self.probs))
        options = {"k": self.method.proposals, "n_threads": self.threads, "witnesses": self.method.witnesses}
        sides = zip(self.proposers, ((rows, columns), (columns, rows)), self.shape, strict=True)
        forward, backward = (
            proposer.propose(
                self.kernels, self.around.beliefs(proposer.side, from_pairs(*ends, probs, size)), self.alignment,
                strengths, least=self.method.least_proposal, **options,
            )
            for proposer, ends, size in sides
        )  # fmt: skip
        return forward, backward

    def forward(self, k: int) -> RefinedRanking:
        """The k best candidates of every source entity by p."""
        return self._ranking(self.pairs.best(self.probs, k)[0], self.pairs.columns, k)

    def backward(self, k: int) -> RefinedRanking:
        """The k best candidates of every target entity by p."""
        return self._ranking(self.pairs.best(self.probs, k)[1], self.pairs.rows, k)

    def _ranking(self, best: tuple[np.ndarray, np.ndarray], other: np.ndarray, k: int) -> RefinedRanking:
        places, positions = padded(best, k)
        size = len(best[0]) - 1
        indices = np.full((size, k), -1, dtype=np.int32)
        probs, evidence, support = np.zeros((3, size, k), dtype=np.float32)
        indices[places], probs[places] = other[positions], self.probs[positions]
        evidence[places], support[places] = self.evidence[positions], self.support[positions]
        return RefinedRanking(indices, probs, evidence, support)


def _others(entities: np.ndarray, size: int) -> np.ndarray:
    mask = np.ones(size, dtype=bool)
    mask[entities] = False
    return mask
