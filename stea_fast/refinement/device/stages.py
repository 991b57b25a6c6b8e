"""Calibration, beliefs and posterior over tensors: `calibrate.py`, `beliefs.py` and `posterior.py` in torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from stea_fast._backends.device_data import DeviceBeliefs, indptr_of

CONFIDENCE_STEPS = 24


def softmax(scores: Tensor, beta: float | Tensor, log_partition: Tensor | None = None) -> Tensor:
    """float64 [n, k]: probabilities of the candidates; -inf means "no candidate"."""
    scaled = torch.where(torch.isneginf(scores), -torch.inf, beta * scores.double())
    if log_partition is None:
        log_partition = torch.logsumexp(scaled, dim=1)
    return torch.nan_to_num(torch.exp(scaled - log_partition[:, None]), nan=0.0).clamp(max=1.0)


def minmax(scores: Tensor) -> Tensor:
    """float64 [n, k]: each row scaled to [0, 1] and normalised to sum 1."""
    present = ~torch.isneginf(scores)
    values = scores.double()
    low = torch.where(present, values, torch.inf).amin(dim=1, keepdim=True)
    high = torch.where(present, values, -torch.inf).amax(dim=1, keepdim=True)
    scaled = torch.where(high > low, (values - low) / (high - low), 1.0)
    scaled = torch.where(present, scaled, 0.0)
    return scaled / scaled.sum(dim=1, keepdim=True).clamp(min=1e-300)


def beta_for_confidence(scores: Tensor, confidence: float, most_rows: int, limits: tuple[float, float]) -> float:
    """The β at which the best candidates have mean probability `confidence`: bisection without a step on the host."""
    rows = scores[torch.isfinite(scores).sum(dim=1) > 1]
    rows = rows[:: max(1, len(rows) // most_rows)]
    if len(rows) == 0:
        return 1.0
    low, high = (torch.tensor(np.log(limit), dtype=torch.float64, device=scores.device) for limit in limits)
    for _ in range(CONFIDENCE_STEPS):
        middle = 0.5 * (low + high)
        too_low = softmax(rows, torch.exp(middle)).amax(dim=1).mean() < confidence
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    return float(torch.exp(0.5 * (low + high)))


def likelihood_derivatives(scores: Tensor, truth: Tensor, beta: float) -> tuple[float, float]:
    """First and second derivative of -log-likelihood of the column `truth` of every row."""
    probs = softmax(scores, beta)
    values = scores.double()
    ahead = torch.where(torch.isneginf(values), 0.0, values - values.gather(1, truth[:, None]))
    mean = (probs * ahead).sum(dim=1)
    curvature = (probs * (ahead - mean[:, None]) ** 2).sum()
    gradient, curved = torch.stack([mean.sum(), curvature]).tolist()
    return gradient, curved


def clamp(indices: Tensor, probs: Tensor, seeds: Tensor) -> tuple[Tensor, Tensor]:
    """Put every seed's target first in its row with probability 1, and give the others 0."""
    indices, probs = indices.clone(), probs.clone()
    rows, targets = seeds[:, 0], seeds[:, 1]
    k = indices.shape[1]
    column = torch.arange(k, device=indices.device)
    found = indices[rows] == targets[:, None]
    position = torch.where(found, column, k - 1).amin(dim=1)  # of a missing target, the last place
    shifted = torch.where((column > 0) & (column <= position[:, None]), column - 1, column)
    moved = indices[rows].gather(1, shifted)
    moved[:, 0] = targets.to(indices.dtype)
    indices[rows] = moved
    probs[rows] = 0.0
    probs[rows, 0] = 1.0
    return indices, probs


def first_best(values: Tensor) -> Tensor:
    """int64 [n]: the first of the largest values of every row (torch leaves open which of them it returns)."""
    k = values.shape[1]
    place = torch.arange(k, device=values.device)
    return torch.where(values == values.amax(dim=1, keepdim=True), place, k - 1).amin(dim=1)


def soft(indices: Tensor, probs: Tensor) -> DeviceBeliefs:
    """Every candidate with its probability."""
    return _pack((indices >= 0) & (probs > 0), indices, probs)


def argmax(indices: Tensor, probs: Tensor) -> DeviceBeliefs:
    """The most probable candidate of every row, with weight 1."""
    masked = torch.where(indices >= 0, probs, -1.0)
    best = first_best(masked)[:, None]
    chosen = torch.zeros_like(indices, dtype=torch.bool).scatter(1, best, masked.gather(1, best) > 0)
    return _pack(chosen, indices, torch.ones_like(probs))


def from_pairs(rows: Tensor, targets: Tensor, weights: Tensor, num_rows: int) -> DeviceBeliefs:
    """Beliefs of (row, target, weight) triples."""
    rows, order = torch.sort(rows, stable=True)
    return DeviceBeliefs(indptr_of(rows, num_rows), targets[order].int(), weights[order].float())


def transpose(beliefs: DeviceBeliefs, num_targets: int) -> DeviceBeliefs:
    """The same weights seen from the other side."""
    lengths = beliefs.indptr.diff()
    rows = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    return from_pairs(beliefs.targets.long(), rows, beliefs.weights, num_targets)


def _pack(chosen: Tensor, indices: Tensor, weights: Tensor) -> DeviceBeliefs:
    indptr = torch.zeros(len(indices) + 1, dtype=torch.int64, device=indices.device)
    torch.cumsum(chosen.sum(dim=1), dim=0, out=indptr[1:])
    return DeviceBeliefs(indptr, indices[chosen].int(), weights[chosen].float())


def posterior(
    indices: Tensor, prior: Tensor, evidence: Tensor, seed_rows: Tensor, *, product: bool, evidence_weight: float
) -> Tensor:
    """q* ∝ q·exp(λ·L), or ∝ exp(1 - exp(-L)), scaled by the prior's mass on the candidates; seeds stay clamped."""
    total = evidence.double()
    exponent = torch.log(prior) + evidence_weight * total if product else -torch.expm1(-total)
    masked = torch.where(indices >= 0, exponent, -torch.inf)
    norm = torch.logsumexp(masked, dim=1, keepdim=True)
    probs = torch.exp(masked - norm) * prior.sum(dim=1, keepdim=True)
    probs = torch.where(torch.isfinite(norm), probs, 0.0)
    probs[seed_rows] = prior[seed_rows]
    return probs.clamp(max=1.0)


def best_first(indices: Tensor, probs: Tensor) -> Tensor:
    """int64 [n, k]: the order of the candidates by probability; equal ones keep theirs."""
    return torch.argsort(torch.where(indices >= 0, -probs, torch.inf), dim=1, stable=True)
