"""`refine` by direction where candidates, graphs and everything between them stay on a device.

The stages are those of the other modules, over tensors. Nothing but scalars is copied to the host.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from stea_fast import _backends
from stea_fast._backends.cuda import BLANKET, Kernels, device_kind
from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs
from stea_fast._backends.tensors import TensorBackend
from stea_fast._util import validate
from stea_fast._util.rankings import best_candidates
from stea_fast.data.device_graph import DeviceGraph
from stea_fast.data.graph import KG
from stea_fast.refinement import beliefs, posterior, prior
from stea_fast.refinement.config import Options
from stea_fast.refinement.relations import estimated
from stea_fast.refinement.selection import select
from stea_fast.types import Beliefs, RefinedRanking, RelationAlignment

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
        return best_candidates(self.indices, self.probs)[0]


@dataclass(frozen=True, eq=False)
class DeviceResult:
    """What `refine` makes a `Refinement` of."""

    rankings: list[RefinedRanking]
    pairs: Tensor
    probs: Tensor
    relations: RelationAlignment
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
    backend = TensorBackend(Kernels(device), options.rows_per_block)
    graphs = DeviceGraph.upload(kg1, device), DeviceGraph.upload(kg2, device)
    links, held_out = (torch.tensor(pairs, device=device) for pairs in (seeds, holdout))
    checked = []
    for name, ranking, source, target in zip(("forward", "backward"), rankings, graphs, graphs[::-1], strict=False):
        ids, values = validate.ranking(*ranking, name, source.num_entities, target.num_entities, device)
        checked.append((ids[:, : options.k].contiguous(), values[:, : options.k]))
    sides = _sides(checked, graphs, links, held_out, log_partition, options)
    alignment, held, sweeps = _sweep(backend, sides, relations, options)
    refined = [posterior.ranked(side.indices, side.probs, side.evidence) for side in sides]
    strategy = options.select or ("mutual" if len(sides) == 2 else "none")
    pairs, probs = select(strategy, refined[0], refined[1] if len(refined) == 2 else None, options.threshold, links)
    betas = tuple(side.beta for side in sides)
    return DeviceResult(refined, pairs, probs, alignment, DeviceBeliefs(*held), sweeps, betas)


def _sides(
    checked: list[tuple[Tensor, Tensor]],
    graphs: tuple[DeviceGraph, DeviceGraph],
    seeds: Tensor,
    holdout: Tensor,
    log_partition: tuple[Any, Any] | None,
    options: Options,
) -> list[DeviceSide]:
    if log_partition is not None and (options.calibrate != "softmax" or options.beta is None):
        raise ValueError("log_partition needs calibrate='softmax' and the beta it was computed with")
    mutual = prior.mutual_count(checked, seeds)
    sides = []
    for forward, (indices, scores) in zip((True, False), checked, strict=False):
        links, held_out = (pairs if forward else pairs.flip(1) for pairs in (seeds, holdout))
        beta = partition = None
        if options.calibrate == "softmax":
            beta = options.beta
            if beta is None:
                beta = prior.choose_beta(indices, scores, links, held_out, mutual)
        if log_partition is not None:
            partition = prior.checked_partition(log_partition, forward, len(indices), indices.device)
        probs = prior.probabilities(scores, options.calibrate, beta, partition)
        indices, probs = posterior.clamp(indices, probs, links)
        source, target = graphs if forward else graphs[::-1]
        sides.append(DeviceSide(source, target, forward, indices, probs, links[:, 0], beta))
    return sides


def _sweep(
    backend: TensorBackend, sides: list[DeviceSide], relations: RelationAlignment | None, options: Options
) -> tuple[RelationAlignment, Beliefs, int]:
    graphs = sides[0].source, sides[0].target
    given = None if relations is None else DeviceAlignment.upload(relations, backend.kernels.device)
    for sweep in range(1, options.sweeps + 1):
        held = beliefs.of_directions(
            [(side.indices, side.probs) for side in sides],
            options.evidence_kind(len(sides) == 2),
            graphs[1].num_entities,
        )
        alignment = given or estimated(backend, graphs, held, make=DeviceAlignment)
        strengths = backend.strengths(alignment, *graphs)
        before = [side.best() for side in sides]
        for side, belief in zip(sides, held, strict=False):
            _refine_side(backend, side, belief, strengths, options)
        changed = sum(int((side.best() != old).sum()) for side, old in zip(sides, before, strict=True))
        logger.debug("sweep %d of %d: %d best candidates changed", sweep, options.sweeps, changed)
        if changed == 0:
            break
    return alignment, held[0], sweep


def _refine_side(backend: TensorBackend, side: DeviceSide, belief: Beliefs, strengths: Any, options: Options) -> None:
    side.evidence = backend.evidence(
        side.source, side.target, side.indices, belief, strengths,
        forward=side.forward, rows=(0, side.source.num_entities),
    )  # fmt: skip
    if options.combine == "product":
        exponent = posterior.product_exponent(side.prior, side.evidence, None, options.evidence_weight)
    else:
        exponent = posterior.compatibility_exponent(side.evidence, None)
    side.probs = posterior.normalise(exponent, side.indices, side.prior, side.seed_rows)
