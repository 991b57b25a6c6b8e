"""Refinement of one direction at a time: the methods `Product` and `Paper`.

Composes the stages: probabilities from scores → beliefs → relations → evidence → posterior, in sweeps.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stea_fast import _backends
from stea_fast._util.threads import thread_count
from stea_fast.data.graph import KG
from stea_fast.refinement import beliefs, posterior
from stea_fast.refinement.config import DirectionalMethod, Product
from stea_fast.refinement.normalisation import checked_partition, choose_betas, given_probabilities
from stea_fast.refinement.problem import Outcome, Problem
from stea_fast.refinement.relations import align_relations
from stea_fast.refinement.temperature import minmax, softmax
from stea_fast.types import Beliefs, RefinedRanking, RelationAlignment

logger = logging.getLogger("stea_fast")


@dataclass(eq=False)
class Direction:
    """One direction while it is being refined: rows of `source`, candidates in `target`."""

    source: KG
    target: KG
    forward: bool
    indices: np.ndarray  # int32 [n, k]
    prior: np.ndarray  # float64 [n, k], calibrated probabilities with the seeds clamped
    seed_rows: np.ndarray
    probs: np.ndarray = field(init=False)
    evidence: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.probs = self.prior

    def best(self) -> np.ndarray:
        """The present best candidate of every row."""
        return np.take_along_axis(self.indices, self.probs.argmax(axis=1)[:, None], axis=1)[:, 0]

    def ranking(self) -> RefinedRanking:
        """Best first; equal probabilities keep the encoder's order."""
        order = np.argsort(np.where(self.indices >= 0, -self.probs, np.inf), axis=1, kind="stable")

        def sort(values: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(np.take_along_axis(values, order, axis=1))

        return RefinedRanking(sort(self.indices), sort(self.probs).astype(np.float32), sort(self.evidence))


def refine_by_direction(problem: Problem, method: DirectionalMethod) -> Outcome:
    """Refine each direction that was given by itself; they meet only in the beliefs and the relation alignment."""
    arrays = [array for ranking in problem.candidates for array in ranking]
    if _backends.use_cuda(arrays, problem.execution.backend):
        from stea_fast.refinement.device.refinement import refine_on_device

        return refine_on_device(problem, method)
    sides, betas = _calibrated(problem, method)
    alignment, held, sweeps = _sweep(sides, problem, method)
    return Outcome([side.ranking() for side in sides], alignment, held, sweeps, betas)


def _calibrated(problem: Problem, method: DirectionalMethod) -> tuple[list[Direction], tuple[float | None, ...]]:
    """The directions with calibrated probabilities and seeds clamped."""
    rankings = problem.checked_rankings(method.k)
    betas: tuple[float | None, ...] = (None,) * len(rankings)
    partition = None
    if method.normalisation == "softmax":
        partition, beta = problem.softmax_partition(method.beta)
        betas = choose_betas(rankings, problem.seeds, problem.holdout, beta)
    sides = []
    for forward, (indices, scores), beta in zip((True, False), rankings, betas, strict=False):
        if beta is None:
            prior = minmax(scores) if method.normalisation == "minmax" else given_probabilities(scores)
        else:
            prior = softmax(scores, beta, checked_partition(partition, forward, scores, beta))
        links = problem.seeds if forward else problem.seeds[:, ::-1]
        indices, prior = posterior.clamp(indices, prior, links)
        source, target = (problem.kg1, problem.kg2) if forward else (problem.kg2, problem.kg1)
        sides.append(Direction(source, target, forward, indices, prior, links[:, 0]))
    return sides, betas


def _sweep(
    sides: list[Direction], problem: Problem, method: DirectionalMethod
) -> tuple[RelationAlignment, Beliefs, int]:
    backend, threads, _ = problem.execution
    kernels = _backends.resolve(backend)
    kind = method.evidence or ("mutual" if problem.both_directions else "soft")
    for sweep in range(1, method.sweeps + 1):
        held = _beliefs(sides, kind)
        alignment = problem.relations or align_relations(
            problem.kg1, problem.kg2, *held, backend=backend, n_threads=threads
        )
        strengths = kernels.strengths(alignment, problem.kg1, problem.kg2)
        before = [side.best() for side in sides]
        for side, belief in zip(sides, held, strict=False):
            _refine_side(side, belief, strengths, kernels, thread_count(threads), method)
        changed = sum(int((side.best() != old).sum()) for side, old in zip(sides, before, strict=True))
        logger.debug("sweep %d of %d: %d best candidates changed", sweep, method.sweeps, changed)
        if changed == 0:
            break
    return alignment, held[0], sweep


def _beliefs(sides: list[Direction], kind: str) -> tuple[Beliefs, Beliefs]:
    """Beliefs of both graphs' entities; with one direction the other side is its transpose."""
    if kind == "mutual":
        if len(sides) < 2:
            raise ValueError("evidence='mutual' needs candidates in both directions; only one was given")
        return beliefs.mutual((sides[0].indices, sides[0].probs), (sides[1].indices, sides[1].probs))
    make = beliefs.soft if kind == "soft" else beliefs.argmax
    forward = make(sides[0].indices, sides[0].probs)
    if len(sides) == 2:
        return forward, make(sides[1].indices, sides[1].probs)
    return forward, beliefs.transpose(forward, sides[0].target.num_entities)


def _refine_side(
    side: Direction, belief: Beliefs, strengths: Any, kernels: Any, n_threads: int, method: DirectionalMethod
) -> None:
    rows = (0, side.source.num_entities)
    common = {"forward": side.forward, "rows": rows, "n_threads": n_threads}
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
