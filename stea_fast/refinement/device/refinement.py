"""`refine` where candidates, graphs and everything between them stay on a device.

The same stages in the same order as `refinement.py`, over tensors. Nothing but scalars is copied to the host.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from stea_fast import _backends
from stea_fast._backends.cuda import BLANKET, Kernels, device_kind
from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs, Strengths
from stea_fast.data.device_graph import DeviceGraph
from stea_fast.data.graph import KG
from stea_fast.refinement.config import Options
from stea_fast.refinement.device import checks, stages
from stea_fast.refinement.device.relations import align_relations
from stea_fast.refinement.device.select import mutual_pairs, select
from stea_fast.refinement.directional import confidence
from stea_fast.refinement.relations import PRIOR, SMOOTHING
from stea_fast.refinement.temperature import CONFIDENCE_ROWS, MAX_BETA, MIN_BETA, newton
from stea_fast.types import RefinedRanking, RelationAlignment

logger = logging.getLogger("stea_fast")


@dataclass(eq=False)
class DeviceSide:
    """One direction while it is being refined."""

    source: DeviceGraph
    target: DeviceGraph
    forward: bool
    indices: Tensor  # int32 [n, k]
    prior: Tensor  # float64 [n, k], calibrated probabilities with the seeds clamped
    seed_rows: Tensor
    beta: float | None
    probs: Tensor = field(init=False)
    evidence: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.probs = self.prior

    def best(self) -> Tensor:
        """The present best candidate of every row."""
        return self.indices.gather(1, stages.first_best(self.probs)[:, None])[:, 0]

    def ranking(self) -> RefinedRanking:
        """Best first; equal probabilities keep the encoder's order."""
        order = stages.best_first(self.indices, self.probs)
        parts = (self.indices, self.probs, self.evidence)
        indices, probs, evidence = (part.gather(1, order) for part in parts)
        return RefinedRanking(indices, probs.float(), evidence)


@dataclass(frozen=True, eq=False)
class DeviceResult:
    """What `refine` makes a `Refinement` of."""

    rankings: list[RefinedRanking]
    pairs: Tensor
    probs: Tensor
    relations: DeviceAlignment
    beliefs: DeviceBeliefs
    sweeps: int
    betas: tuple[float | None, ...]


def device_of(arrays: list[Any]) -> torch.device:
    """Where to work on arrays: where the tensors among them lie, or the default device if they lie on the host."""
    places = sorted({str(array.device) for array in arrays if isinstance(array, Tensor)})
    if len(places) > 1:
        raise ValueError(f"candidates and log_partition must be on one device, got {', '.join(places)}")
    kind = device_kind()
    if places and torch.device(places[0]).type == kind:
        return torch.device(places[0])
    return torch.device("cuda", torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)


def refine_on_device(
    rankings: list[tuple[Any, Any]],
    kg1: KG,
    kg2: KG,
    seeds: Any,
    holdout: Any,
    relations: RelationAlignment | None,
    log_partition: tuple[Any, Any] | None,
    options: Options,
) -> DeviceResult:
    """Refine (indices, scores) of one or both directions; see `refine` for the arguments."""
    if options.blanket == "full":
        raise _backends.BackendUnavailable(BLANKET)
    device = device_of([array for arrays in (*rankings, log_partition or ()) for array in arrays])
    kernels = Kernels(device)
    graphs = DeviceGraph.upload(kg1, device), DeviceGraph.upload(kg2, device)
    links, held_out = (torch.tensor(pairs, device=device) for pairs in (seeds, holdout))
    sides = _sides(kernels, rankings, graphs, links, held_out, log_partition, options)
    alignment, beliefs, sweeps = _sweep(kernels, sides, relations, options)
    refined = [side.ranking() for side in sides]
    strategy = options.select or ("mutual" if len(sides) == 2 else "none")
    given = [(ranking.indices, ranking.probs) for ranking in refined]
    pairs, probs = select(kernels, strategy, given[0], given[1] if len(given) == 2 else None, options.threshold, links)
    return DeviceResult(refined, pairs, probs, alignment, beliefs, sweeps, tuple(side.beta for side in sides))


def _sides(
    kernels: Kernels,
    rankings: list[tuple[Any, Any]],
    graphs: tuple[DeviceGraph, DeviceGraph],
    seeds: Tensor,
    holdout: Tensor,
    log_partition: tuple[Any, Any] | None,
    options: Options,
) -> list[DeviceSide]:
    if log_partition is not None and (options.calibrate != "softmax" or options.beta is None):
        raise ValueError("log_partition needs calibrate='softmax' and the beta it was computed with")
    checked = []
    for name, (indices, scores), source, target in zip(
        ("forward", "backward"), rankings, graphs, graphs[::-1], strict=False
    ):
        ids, values = checks.ranking(indices, scores, name, source.num_entities, target.num_entities, kernels.device)
        checked.append((ids[:, : options.k].contiguous(), values[:, : options.k].contiguous()))
    mutual = _mutual_count(kernels, checked, seeds)
    sides = []
    for forward, (indices, scores) in zip((True, False), checked, strict=False):
        links, held_out = (pairs if forward else pairs.flip(1) for pairs in (seeds, holdout))
        beta = None
        if options.calibrate == "softmax":
            beta = options.beta if options.beta is not None else _choose_beta(indices, scores, links, held_out, mutual)
        prior = _prior(scores, beta, log_partition, forward, options, kernels.device)
        indices, prior = stages.clamp(indices, prior, links)
        source, target = graphs if forward else graphs[::-1]
        sides.append(DeviceSide(source, target, forward, indices, prior, links[:, 0], beta))
    return sides


def _mutual_count(kernels: Kernels, checked: list[tuple[Tensor, Tensor]], seeds: Tensor) -> int | None:
    """Unlabelled mutual-nearest pairs; None if there is only one direction."""
    if len(checked) < 2:
        return None
    partner, _ = kernels.mutual_best(*checked)
    partner[seeds[:, 0]] = -1
    return int((partner >= 0).sum())


def _choose_beta(indices: Tensor, scores: Tensor, seeds: Tensor, holdout: Tensor, mutual_pairs: int | None) -> float:
    if len(holdout):
        found = indices[holdout[:, 0]] == holdout[:, 1:]
        usable = found.any(dim=1)
        if bool(usable.any()):
            rows, truth = scores[holdout[usable, 0]], stages.first_best(found[usable].int())
            return newton(lambda beta: stages.likelihood_derivatives(rows, truth, beta))
        logger.warning("no held-out link is among its candidates; beta is chosen without them")
    free = torch.ones(len(indices), dtype=torch.bool, device=indices.device)
    free[seeds[:, 0]] = False
    share = confidence(mutual_pairs, int(free.sum()), scores.shape[1])
    return stages.beta_for_confidence(scores[free], share, CONFIDENCE_ROWS, (MIN_BETA, MAX_BETA))


def _prior(
    scores: Tensor,
    beta: float | None,
    log_partition: tuple[Any, Any] | None,
    forward: bool,
    options: Options,
    device: torch.device,
) -> Tensor:
    if options.calibrate == "minmax":
        return stages.minmax(scores)
    if options.calibrate == "none":
        return _given_probabilities(scores)
    partition = None
    if log_partition is not None:
        partition = checks.on_device(log_partition[0 if forward else 1], "log_partition", device).double()
        if partition.shape != scores.shape[:1] or not bool(torch.isfinite(partition).all()):
            raise ValueError(
                f"log_partition must hold {len(scores)} finite numbers, got shape {tuple(partition.shape)}"
            )
    assert beta is not None
    prior = stages.softmax(scores, beta, partition)
    if partition is not None and float(prior.sum(dim=1).max()) > 1.01:  # 1, but for rounding
        raise ValueError("log_partition is less than the candidates alone give: other scores or another beta?")
    return prior


def _given_probabilities(scores: Tensor) -> Tensor:
    probs = torch.where(torch.isneginf(scores), 0.0, scores.double())
    low, high, most = torch.stack([probs.min(), probs.max(), probs.sum(dim=1).max()]).tolist()
    if low < 0 or high > 1 or most > 1 + 1e-3:
        raise ValueError(
            f"calibrate='none' needs probabilities in [0, 1] in rows that sum to at most 1, "
            f"got {low} to {high} and a row with sum {most:.4f}"
        )
    return probs


def _sweep(
    kernels: Kernels, sides: list[DeviceSide], relations: RelationAlignment | None, options: Options
) -> tuple[DeviceAlignment, DeviceBeliefs, int]:
    graphs = sides[0].source, sides[0].target
    given = None if relations is None else DeviceAlignment.upload(relations, kernels.device)
    for sweep in range(1, options.sweeps + 1):
        held = _beliefs(kernels, sides, options.evidence_kind(len(sides) == 2))
        alignment = given or align_relations(kernels, graphs, held, SMOOTHING, PRIOR)
        strengths = Strengths.of(alignment, *graphs)
        before = [side.best() for side in sides]
        for side, beliefs in zip(sides, held, strict=False):
            _refine_side(kernels, side, beliefs, strengths, options)
        changed = sum(int((side.best() != old).sum()) for side, old in zip(sides, before, strict=True))
        logger.debug("sweep %d of %d: %d best candidates changed", sweep, options.sweeps, changed)
        if changed == 0:
            break
    return alignment, held[0], sweep


def _beliefs(kernels: Kernels, sides: list[DeviceSide], kind: str) -> tuple[DeviceBeliefs, DeviceBeliefs]:
    """Beliefs of both graphs' entities; with one direction the other side is its transpose."""
    sizes = sides[0].source.num_entities, sides[0].target.num_entities
    if kind == "mutual":
        if len(sides) < 2:
            raise ValueError("evidence='mutual' needs candidates in both directions; only one was given")
        forward, backward = ((side.indices, side.probs) for side in sides)
        pairs, weights = mutual_pairs(kernels, forward, backward, above=0.0)
        sources, targets = pairs.T
        back = stages.from_pairs(targets, sources, weights, sizes[1])
        return stages.from_pairs(sources, targets, weights, sizes[0]), back
    make = stages.soft if kind == "soft" else stages.argmax
    held = make(sides[0].indices, sides[0].probs)
    if len(sides) == 2:
        return held, make(sides[1].indices, sides[1].probs)
    return held, stages.transpose(held, sizes[1])


def _refine_side(
    kernels: Kernels, side: DeviceSide, beliefs: DeviceBeliefs, strengths: Strengths, options: Options
) -> None:
    rows = strengths.forward if side.forward else strengths.backward
    step = options.rows_per_block or side.source.num_entities
    parts = []
    for begin in range(0, side.source.num_entities, step):
        end = min(begin + step, side.source.num_entities)
        parts.append(
            kernels.evidence(side.source, side.target, side.indices[begin:end], beliefs, rows, rows=(begin, end))
        )
    side.evidence = torch.cat(parts)
    side.probs = stages.posterior(
        side.indices,
        side.prior,
        side.evidence,
        side.seed_rows,
        product=options.combine == "product",
        evidence_weight=options.evidence_weight,
    )
