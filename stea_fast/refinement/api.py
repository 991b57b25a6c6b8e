"""`refine`: check every guess against the guesses for its neighbours.

Composes the stages: calibrate → beliefs → relations → evidence → posterior → select.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from stea_fast import _backends
from stea_fast._util import validate
from stea_fast._util.arrays import is_torch, like
from stea_fast._util.threads import thread_count
from stea_fast.data.graph import KG
from stea_fast.refinement import beliefs, posterior
from stea_fast.refinement.config import Options
from stea_fast.refinement.directional import Side, calibrated_sides, directions, partition_of, rankings
from stea_fast.refinement.explanation import Explanation, explain_pair
from stea_fast.refinement.joint import JointRefinement, Prior, prior_of
from stea_fast.refinement.relations import align_relations
from stea_fast.refinement.selection import select
from stea_fast.types import Beliefs, RefinedRanking, RelationAlignment

logger = logging.getLogger("stea_fast")


@dataclass(frozen=True, eq=False)
class Refinement:
    """What `refine` returns.

    Attributes:
        forward: refined candidates of every source entity, best first.
        backward: the same for every target entity; None if only one direction was given.
        pairs: (m, 2) selected pseudo mappings; seeds are not among them.
        pair_probs: [m] their probability.
        relations: the relation alignment behind the evidence.
        sweeps: how many sweeps were made before the predictions settled.
        betas: the inverse temperature of each direction (None where not used).
    """

    forward: RefinedRanking
    backward: RefinedRanking | None
    pairs: Any
    pair_probs: Any
    relations: RelationAlignment
    sweeps: int
    betas: tuple[float | None, ...]
    _kgs: tuple[KG, KG] = field(repr=False)
    _beliefs: Beliefs | Callable[[], Beliefs] = field(repr=False)  # a function where they are still on a device

    def explain(self, e: int, e2: int) -> Explanation:
        """The facts (r, n, r', n') behind e ≡ e2, strongest first, with each one's share of the evidence."""
        held = self._beliefs() if callable(self._beliefs) else self._beliefs
        return explain_pair(*self._kgs, e, e2, held, self.relations)


def refine(
    candidates: Any,
    kg1: KG,
    kg2: KG,
    *,
    seeds: Any = (),
    holdout: Any = (),
    relations: RelationAlignment | None = None,
    log_partition: tuple[Any, Any] | None = None,
    **options: Any,
) -> Refinement:
    """Refine an encoder's candidates by the dependencies between the predictions.

    Args:
        candidates: `Candidates` (both directions), or (indices, scores) for one direction: [n, k] arrays
            with a row per entity of kg1, -1 for "none". NumPy or torch; results are of the same kind.
        kg1, kg2: source and target graph.
        seeds: (m, 2) known links. They stay certain and lend their weight to their neighbours.
        holdout: (m, 2) known links that the encoder was not trained on; β is fitted to them. Without them β
            is set so that the mean probability of the best candidates equals the share of rows whose best
            candidate is mutual (0.5 if only one direction is given), kept between 2/k and 0.95.
        relations: a given relation alignment; else it is estimated from seeds and predictions, anew in
            every sweep.
        log_partition: log Σ exp(β·sim) over all targets for the rows of each direction, at the same `beta`;
            without it the candidates of a row share all its probability mass. `topk(..., beta=...)` computes
            both, and its result is used without being asked for.

    Options (keyword-only):
        k: use only the k best candidates of every row.
        evidence: what speaks for a pair among its neighbours: "mutual" (pairs that are each other's best, with
            weight √(q·q'); the default), "soft" (every candidate with its probability; the default if only one
            direction is given) or "argmax" (the paper: the best candidate, with weight 1).
        blanket: "local" (the factor of the entity) or "full" (and those of its neighbours).
        combine: "product", q* ∝ q·exp(evidence_weight·L); "joint", both directions at once, with pairs that matched
            neighbours propose beyond the candidates given (what `SelfTraining` and `Refiner` use);
            or "compatibility" (the paper), q* ∝ exp(g).
        proposals: of "joint": so many per entity; 0 for none. Their scores come from `candidates.score` if `topk` made
            the candidates; else they count as no better than the last of the list.
        balance: of "joint": so often the probabilities of every entity, of either side in turn, are made to add up to
            one; default 15. A pair then gains from every better pair that its rivals have. 0 for none.
        evidence_weight: λ of the product; default 4.
        sweeps: at most so many rounds of relation alignment and refinement; default 4. Stops early when no
            best candidate changes.
        select: "mutual" (default), "uni" and "uni_backward" (above `threshold` in one direction), "bi" (in
            either), or "none". With one direction only, the default is "none".
        threshold: probability a selected pair must exceed.
        calibrate: "softmax", "minmax", or "none" if the scores are probabilities already.
        beta: the inverse temperature of the softmax, instead of choosing it.
        paper: True for exactly the paper's step (argmax, one sweep, local, q* ∝ exp(g)).
        backend: "auto" (CUDA tensors are refined where they are; else the fastest on the CPU), "native", "numba",
            "cuda" or "reference".
        n_threads: default: all CPUs of this process, or `STEA_NUM_THREADS`.
        rows_per_block: on a GPU, compute the evidence of so many rows at a time, with less scratch memory.

    Raises:
        ValueError, TypeError: an argument is unusable; the message says what was expected.
        BackendUnavailable: the backend asked for cannot run here.
    """
    chosen = _options(options)
    _check_graphs(kg1, kg2)
    known = validate.links(seeds, "seeds", kg1.num_entities, kg2.num_entities)
    held_out = validate.links(holdout, "holdout", kg1.num_entities, kg2.num_entities)
    if relations is not None:
        _check_relations(relations, kg1, kg2)
    if log_partition is None and chosen.calibrate == "softmax" and chosen.beta is None:
        log_partition, beta = partition_of(candidates)
        chosen = replace(chosen, beta=beta)
    given = directions(candidates)
    template = given[-1][0]
    arrays = [array for ranking in given for array in ranking]
    if chosen.combine != "joint" and _backends.use_cuda(arrays, chosen.backend):
        return _refined_on_device(given, kg1, kg2, known, held_out, relations, log_partition, chosen)
    checked = rankings(given, kg1, kg2, chosen.k)
    sides = calibrated_sides(checked, kg1, kg2, known, held_out, log_partition, chosen)
    if chosen.combine == "joint":
        prior = prior_of(checked, _common_beta(sides), log_partition, getattr(candidates, "score", None))
        outcome = _jointly(sides, known, prior, relations, chosen)
    else:
        outcome = _by_direction(sides, relations, chosen)
    refined = outcome.rankings
    strategy = chosen.select or ("mutual" if len(sides) == 2 else "none")
    pairs, probs = select(strategy, refined[0], refined[1] if len(refined) == 2 else None, chosen.threshold, known)
    outputs = [_like_ranking(template, ranking) for ranking in refined]
    return Refinement(
        outputs[0],
        outputs[1] if len(outputs) == 2 else None,
        like(template, pairs),
        like(template, probs),
        outcome.relations,
        outcome.sweeps,
        tuple(side.beta for side in sides),
        (kg1, kg2),
        outcome.beliefs,
    )


class _Outcome(NamedTuple):
    """What the sweeps leave behind: a ranking per direction, and what the last evidence rests on."""

    rankings: list[RefinedRanking]
    relations: RelationAlignment
    beliefs: Beliefs
    sweeps: int


def _jointly(
    sides: list[Side], seeds: np.ndarray, prior: Prior, relations: RelationAlignment | None, options: Options
) -> _Outcome:
    joint = JointRefinement(sides[0].source, sides[0].target, seeds, prior, relations, options)
    joint.run(options.sweeps)
    k = sides[0].indices.shape[1]
    return _Outcome([joint.forward(k), joint.backward(k)], joint.alignment, joint.beliefs, joint.sweeps)


def _common_beta(sides: list[Side]) -> float:
    """One inverse temperature for both directions: rows and columns share their scores."""
    if len(sides) < 2:
        raise ValueError("combine='joint' needs candidates in both directions; only one was given")
    return float(np.mean([side.beta for side in sides]))


def _by_direction(sides: list[Side], relations: RelationAlignment | None, options: Options) -> _Outcome:
    alignment, final_beliefs, sweeps = _sweep(sides, relations, options)
    return _Outcome([_sorted_ranking(side) for side in sides], alignment, final_beliefs, sweeps)


def _refined_on_device(given: list[tuple[Any, Any]], kg1: KG, kg2: KG, *arguments: Any) -> Refinement:
    """The same on a GPU; results stay there if the candidates were there."""
    from stea_fast.refinement.device.refinement import refine_on_device

    found = refine_on_device(given, kg1, kg2, *arguments)
    template = given[-1][0]

    def back(tensor: Any) -> Any:
        return tensor.to(template.device) if is_torch(template) else tensor.cpu().numpy()

    outputs = [
        RefinedRanking(
            back(ranking.indices.to(template.dtype) if is_torch(template) else ranking.indices),
            back(ranking.probs),
            back(ranking.evidence),
        )
        for ranking in found.rankings
    ]
    return Refinement(
        outputs[0],
        outputs[1] if len(outputs) == 2 else None,
        back(found.pairs),
        back(found.probs),
        found.relations,
        found.sweeps,
        found.betas,
        (kg1, kg2),
        found.beliefs.download,
    )


def _options(given: dict[str, Any]) -> Options:
    unknown = set(given) - set(Options.__dataclass_fields__)
    if unknown:
        raise TypeError(f"refine() has no option {', '.join(sorted(unknown))}")
    options = Options(**given)
    return options.as_in_the_paper() if options.paper else options


def _check_graphs(kg1: KG, kg2: KG) -> None:
    for kg, name in ((kg1, "kg1"), (kg2, "kg2")):
        if not isinstance(kg, KG):
            raise TypeError(f"{name} must be a KG, got {type(kg).__name__}")
        if kg.num_triples == 0:
            raise ValueError(f"{name} has no triples: there are no neighbours to check a guess against")


def _check_relations(relations: RelationAlignment, kg1: KG, kg2: KG) -> None:
    if not isinstance(relations, RelationAlignment):
        raise TypeError(f"relations must be a RelationAlignment, got {type(relations).__name__}")
    expected = (2 * kg1.num_relations, 2 * kg2.num_relations)
    if relations.shape != expected:
        raise ValueError(f"relations.sub12 must have shape {expected}, got {relations.shape}")


def _sweep(
    sides: list[Side], relations: RelationAlignment | None, options: Options
) -> tuple[RelationAlignment, Beliefs, int]:
    kernels = _backends.resolve(options.backend)
    threads = thread_count(options.n_threads)
    kg1, kg2 = sides[0].source, sides[0].target
    for sweep in range(1, options.sweeps + 1):
        held = _beliefs(sides, options.evidence_kind(len(sides) == 2))
        alignment = relations or align_relations(
            kg1, kg2, held[0], held[1], backend=options.backend, n_threads=options.n_threads
        )
        strengths = kernels.strengths(alignment, kg1, kg2)
        before = [side.best() for side in sides]
        for side, belief in zip(sides, held, strict=False):
            _refine_side(side, belief, strengths, kernels, threads, options)
        changed = sum(int((side.best() != old).sum()) for side, old in zip(sides, before, strict=True))
        logger.debug("sweep %d of %d: %d best candidates changed", sweep, options.sweeps, changed)
        if changed == 0:
            break
    return alignment, held[0], sweep


def _beliefs(sides: list[Side], kind: str) -> tuple[Beliefs, Beliefs]:
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


def _refine_side(side: Side, belief: Beliefs, strengths: Any, kernels: Any, n_threads: int, options: Options) -> None:
    rows = (0, side.source.num_entities)
    common = {"forward": side.forward, "rows": rows, "n_threads": n_threads}
    side.evidence = kernels.evidence(side.source, side.target, side.indices, belief, strengths, **common)
    blanket = None
    if options.blanket == "full":
        # L of every belief: the evidence kernel on the beliefs as candidates, padded to rows of equal length.
        own, places = posterior.padded_beliefs(belief)
        of_beliefs = kernels.evidence(side.source, side.target, own, belief, strengths, **common)[places]
        blanket = kernels.blanket(side.source, side.target, side.indices, belief, of_beliefs, strengths, **common)
    if options.combine == "product":
        exponent = posterior.product_exponent(side.prior, side.evidence, blanket, options.evidence_weight)
    else:
        exponent = posterior.compatibility_exponent(side.evidence, blanket)
    side.probs = posterior.normalise(exponent, side.indices, side.prior, side.seed_rows)


def _sorted_ranking(side: Side) -> RefinedRanking:
    """Best first; equal probabilities keep the encoder's order."""
    order = np.argsort(np.where(side.indices >= 0, -side.probs, np.inf), axis=1, kind="stable")

    def sort(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.take_along_axis(values, order, axis=1))

    return RefinedRanking(sort(side.indices), sort(side.probs).astype(np.float32), sort(side.evidence))


def _like_ranking(template: Any, ranking: RefinedRanking) -> RefinedRanking:
    indices = like(template, ranking.indices)
    if is_torch(template):
        indices = indices.to(template.dtype)  # torch indexes with int64 only
    support = None if ranking.support is None else like(template, ranking.support)
    return RefinedRanking(indices, like(template, ranking.probs), like(template, ranking.evidence), support)
