"""Refinement of one direction at a time: the methods `Product` and `Paper`.

Composes the stages: probabilities from scores → beliefs → relations → evidence → posterior, in sweeps. The stages work
on NumPy arrays and on tensors alike; on a device nothing but scalars comes to the host.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

from stea_fast import _backends
from stea_fast._util.array_ops import Array
from stea_fast._util.rankings import best_candidates
from stea_fast.refinement import beliefs, posterior
from stea_fast.refinement.config import DirectionalMethod, Product
from stea_fast.refinement.normalisation import checked_partition, choose_betas, probabilities
from stea_fast.refinement.problem import Outcome, Problem
from stea_fast.refinement.workplace import Workplace, workplace
from stea_fast.types import Beliefs, RelationAlignment

logger = logging.getLogger("stea_fast")


@dataclass(eq=False)
class Direction:
    """One direction while it is being refined: rows of `source`, candidates in `target`."""

    source: Any
    target: Any
    forward: bool
    indices: Array  # int32 [n, k]
    prior: Array  # float64 [n, k], calibrated probabilities with the seeds clamped
    seed_rows: Array
    probs: Array = field(init=False)
    evidence: Array = field(init=False)

    def __post_init__(self) -> None:
        self.probs = self.prior

    def best(self) -> Array:
        """The present best candidate of every row."""
        return best_candidates(self.indices, self.probs)[0]


def refine_by_direction(problem: Problem, method: DirectionalMethod) -> Outcome:
    """Refine each direction that was given by itself; they meet only in the beliefs and the relation alignment."""
    place = workplace(problem)
    if method.blanket == "full" and place.device is not None:
        raise _backends.BackendUnavailable(_backends.NO_CUDA_BLANKET)
    sides, betas = _calibrated(problem, method, place)
    alignment, held, sweeps = _sweep(sides, problem, method, place)
    rankings = [posterior.ranked(side.indices, side.probs, side.evidence) for side in sides]
    return Outcome(rankings, alignment, held, sweeps, betas)


def _calibrated(
    problem: Problem, method: DirectionalMethod, place: Workplace
) -> tuple[list[Direction], tuple[float | None, ...]]:
    """The directions with calibrated probabilities and seeds clamped."""
    rankings = place.rankings(problem, method.k)
    seeds = place.placed(problem.seeds)
    betas: tuple[float | None, ...] = (None,) * len(rankings)
    partition = None
    if method.normalisation == "softmax":
        partition, beta = problem.softmax_partition(method.beta)
        betas = choose_betas(rankings, seeds, place.placed(problem.holdout), beta)
    sides = []
    for forward, (indices, scores), beta in zip((True, False), rankings, betas, strict=False):
        log_sums = checked_partition(partition, forward, scores, beta, place.device)
        prior = probabilities(scores, method.normalisation, beta, log_sums)
        links = seeds if forward else seeds[:, [1, 0]]
        indices, prior = posterior.clamp(indices, prior, links)
        source, target = place.graphs if forward else place.graphs[::-1]
        sides.append(Direction(source, target, forward, indices, prior, links[:, 0]))
    return sides, betas


def _sweep(
    sides: list[Direction], problem: Problem, method: DirectionalMethod, place: Workplace
) -> tuple[RelationAlignment, Beliefs, int]:
    kind = method.evidence or ("mutual" if problem.both_directions else "soft")
    for sweep in range(1, method.sweeps + 1):
        present = [(side.indices, side.probs) for side in sides]
        held = beliefs.of_directions(present, kind, problem.kg2.num_entities)
        alignment = place.relations(problem.relations, held)
        strengths = place.kernels.strengths(alignment, *place.graphs)
        before = [side.best() for side in sides]
        for side, belief in zip(sides, held, strict=False):
            _refine_side(side, belief, strengths, method, place)
        changed = sum(int((side.best() != old).sum()) for side, old in zip(sides, before, strict=True))
        logger.debug("sweep %d of %d: %d best candidates changed", sweep, method.sweeps, changed)
        if changed == 0:
            break
    return alignment, held[0], sweep


def _refine_side(side: Direction, belief: Beliefs, strengths: Any, method: DirectionalMethod, place: Workplace) -> None:
    kernels = place.kernels
    common = {"forward": side.forward, "rows": (0, side.source.num_entities), "n_threads": place.n_threads}
    common["witnesses"] = method.witnesses
    side.evidence = kernels.evidence(side.source, side.target, side.indices, belief, strengths, **common)
    blanket = None
    if method.blanket == "full":
        # L of every belief: the evidence kernel on the beliefs as candidates, padded to rows of equal length.
        own, places = posterior.padded_beliefs(belief)
        of_beliefs = kernels.evidence(side.source, side.target, own, belief, strengths, **common)[places]
        blanket = kernels.blanket(side.source, side.target, side.indices, belief, of_beliefs, strengths, **common)
    if isinstance(method, Product):
        exponent = posterior.product_exponent(side.prior, side.evidence, blanket, method.evidence_weight)
    else:
        exponent = posterior.compatibility_exponent(side.evidence, blanket)
    side.probs = posterior.normalise(exponent, side.indices, side.prior, side.seed_rows)
