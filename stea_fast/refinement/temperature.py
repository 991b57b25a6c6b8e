"""From similarity to probability: q(e → e') = exp(β·sim(e, e')) / Σ over all targets.

The paper's ω₁, ω₀ and τ enter only through β = ω₁/τ, so fitting is a convex problem in one unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.arrays import like, to_numpy

MAX_BETA = 1e4
MIN_BETA = 1e-3
CONFIDENCE_ROWS = 2048  # a mean over so many rows is exact enough to choose beta by
CONFIDENCE_STEPS = 24  # halvings of the range of log β


def softmax(scores: Array, beta: Any, log_partition: Array | None = None) -> Array:
    """float64 [n, k]: probabilities of the candidates.

    Args:
        scores: [n, k]; -inf means "no candidate" and gets probability 0.
        beta: inverse temperature; a number, or a tensor of one number on the device of the scores.
        log_partition: [n], log Σ exp(β·sim) over all targets. Without it the row's candidates share all mass.
    """
    ops = ops_of(scores)
    with np.errstate(invalid="ignore"):  # 0 * -inf, and rows without any candidate: -inf - -inf
        scaled = ops.where(ops.is_minus_inf(scores), -np.inf, beta * ops.double(scores))
        if log_partition is None:
            log_partition = log_sum_exp(scaled)
        return ops.at_most(ops.nan_to_zero(ops.exp(scaled - log_partition[:, None])), 1.0)


def minmax(scores: Array) -> Array:
    """float64 [n, k]: each row scaled to [0, 1] and normalised to sum 1 (the paper's ablation)."""
    ops = ops_of(scores)
    present, values = ~ops.is_minus_inf(scores), ops.double(scores)
    with np.errstate(all="ignore"):
        low = ops.smallest(ops.where(present, values, np.inf))[:, None]
        high = ops.largest(values)[:, None]
        scaled = ops.where(high > low, (values - low) / (high - low), 1.0)
    scaled = ops.where(present, scaled, 0.0)
    return scaled / ops.at_least(scaled.sum(1), 1e-300)[:, None]


def log_sum_exp(values: Array) -> Array:
    """log Σ exp along the last axis; -inf for rows of -inf."""
    ops = ops_of(values)
    top = ops.largest(values)
    shift = ops.where(ops.is_finite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return shift + ops.log(ops.exp(values - shift[..., None]).sum(-1))


def fit_beta(blocks: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    """Find the inverse temperature β that makes held-out links most likely.

    The links must be ones that the encoder was *not* trained on: on its own seeds the likelihood grows without end with
    β. The problem is convex in its one unknown, and is solved by Newton's method.

    Args:
        blocks: A list, or anything else that can be walked several times, of tuples (scores, truth): the similarities
            float [m, n] of some sources with all their targets, and the column int [m] of the true target. Several
            blocks keep memory small; pass `[(scores, truth)]` if everything fits.

    Returns:
        The best β in [0, 10000].

    Raises:
        TypeError: The blocks are a generator, which can be walked only once, or are not tuples.
        ValueError: There is no link, a score is not finite, or a shape does not fit.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> scores = np.array([[0.9, 0.1], [0.6, 0.5], [0.4, 0.5]])  # three sources, two targets
        >>> round(sf.fit_beta([(scores, [0, 0, 0])]), 2)
        4.46
    """
    if isinstance(blocks, Iterator):
        raise TypeError("blocks must be walked several times: give a list, not a generator")
    return newton(lambda beta: _derivatives(blocks, beta))


def newton(derivatives: Callable[[float], tuple[float, float]]) -> float:
    """Where a convex function of β in [0, 10000] is least, from its first two derivatives."""
    low, high = 0.0, MAX_BETA
    beta = 1.0
    for _ in range(100):
        gradient, curvature = derivatives(beta)
        if gradient > 0:
            high = beta
        else:
            low = beta
        step = beta - gradient / curvature if curvature > 0 else np.inf
        if not low < step < high:  # outside what is known: bisect (in the logarithm while high is far)
            step = np.sqrt(max(low, 1e-3) * high) if high == MAX_BETA else 0.5 * (low + high)
        if abs(step - beta) <= 1e-6 * max(1.0, beta) or high - low <= 1e-9:
            return float(step)
        beta = float(step)
    return beta


def likelihood_derivatives(scores: Array, truth: Array, beta: float) -> tuple[float, float]:
    """First and second derivative of -log-likelihood at β: Σ (E_q[s] - s_true) and Σ Var_q[s].

    Args:
        scores: [m, n], -inf = no candidate.
        truth: int64 [m], the column of the true one in every row.
    """
    ops = ops_of(scores)
    probs, values = softmax(scores, beta), ops.double(scores)
    # Relative to the true one: where it is the best, no rounding can turn the sign of the gradient.
    ahead = values - values[ops.arange(len(truth)), truth][:, None]
    ahead = ops.where(ops.is_minus_inf(values), 0.0, ahead)
    mean = (probs * ahead).sum(1)
    gradient, curvature = ops.scalars(mean.sum(), (probs * (ahead - mean[:, None]) ** 2).sum())
    return gradient, curvature


def _derivatives(blocks: Iterable[tuple[np.ndarray, np.ndarray]], beta: float) -> tuple[float, float]:
    """The derivatives over all blocks, which are checked."""
    gradient = curvature = 0.0
    num_links = 0
    for block in blocks:
        scores, truth = _checked_block(block)
        num_links += len(truth)
        first, second = likelihood_derivatives(scores, truth, beta)
        gradient += first
        curvature += second
    if num_links == 0:
        raise ValueError("blocks hold no links: there is nothing to fit beta to")
    if not np.isfinite(gradient):
        raise ValueError("blocks hold scores that are NaN or infinite")
    return gradient, curvature


def _checked_block(block: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        scores, truth = block
    except (TypeError, ValueError):
        raise TypeError("blocks must yield pairs (scores, truth)") from None
    scores = to_numpy(scores, "scores of blocks").astype(np.float64)
    truth = validate.integers(truth, "truth of blocks")
    if scores.ndim != 2 or truth.shape != scores.shape[:1]:
        raise ValueError(f"blocks must yield scores [m, n] and truth [m], got {scores.shape} and {truth.shape}")
    validate.in_range(truth, "truth of blocks", scores.shape[1], "columns")
    if np.isneginf(scores[np.arange(len(truth)), truth]).any():
        raise ValueError("truth of blocks points to a score of -inf, which means no candidate")
    return scores, truth


class EmbeddingBlocks:
    """Held-out links of two embedding matrices as blocks for `fit_beta`: inner products, a few rows at a time."""

    def __init__(self, emb1: Any, emb2: Any, links: Any, *, block: int = 256) -> None:
        self.emb1, self.emb2 = _embeddings(emb1, emb2)
        self.links = validate.links(links, "links", len(self.emb1), len(self.emb2))
        self.block = validate.count(block, "block", minimum=1)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for begin in range(0, len(self.links), self.block):
            sources, targets = self.links[begin : begin + self.block].T
            yield self.emb1[sources] @ self.emb2.T, targets


def _embeddings(emb1: Any, emb2: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices of finite numbers with the same number of columns."""
    first, second = to_numpy(emb1, "emb1"), to_numpy(emb2, "emb2")
    for array, name in ((first, "emb1"), (second, "emb2")):
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
        if array.ndim != 2 or not np.isfinite(array).all():
            raise ValueError(f"{name} must be a matrix of finite numbers, got shape {array.shape}")
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"emb1 and emb2 must have the same width, got {first.shape[1]} and {second.shape[1]}")
    return first, second


def log_partition(emb1: Any, emb2: Any, beta: float, *, block: int = 1024) -> tuple[Any, Any]:
    """Compute log Σ exp(β·⟨x, y⟩) for every source over all targets, and for every target over all sources.

    One pass over blocks of similarities serves both; nothing of size |E|×|E'| is stored.

    Args:
        emb1: The embeddings of the source entities, float [n1, d], NumPy or torch.
        emb2: The embeddings of the target entities, float [n2, d].
        beta: The inverse temperature β ≥ 0.
        block: The number of rows whose similarities are computed at a time.

    Returns:
        Two float64 arrays [n1] and [n2], as the kind of array that `emb1` is.

    Raises:
        ValueError: A shape does not fit, or a number is not finite.
        TypeError: An array does not hold numbers.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> rows, columns = sf.log_partition(np.eye(3), np.eye(3), beta=0.0)
        >>> rows.round(3).tolist()  # the logarithm of three targets
        [1.099, 1.099, 1.099]
    """
    sources, targets = _embeddings(emb1, emb2)
    beta = validate.number(beta, "beta", minimum=0.0)
    block = validate.count(block, "block", minimum=1)
    rows = np.empty(len(sources))
    columns = np.full(len(targets), -np.inf)
    for begin in range(0, len(sources), block):
        scaled = beta * (sources[begin : begin + block] @ targets.T).astype(np.float64)
        rows[begin : begin + block] = log_sum_exp(scaled)
        columns = np.logaddexp(columns, log_sum_exp(scaled.T))
    return like(emb1, rows), like(emb1, columns)


def beta_for_confidence(scores: Array, confidence: float) -> float:
    """The β at which the best candidates have mean probability `confidence`: a rule that needs no labels.

    With the share of mutually nearest rows as confidence, the probabilities claim as many correct first
    guesses as the two directions agree on. Evenly spaced rows stand for all.
    """
    ops = ops_of(scores)
    rows = scores[ops.is_finite(scores).sum(1) > 1]
    rows = rows[:: max(1, len(rows) // CONFIDENCE_ROWS)]
    if len(rows) == 0:
        return 1.0
    low, high = ops.number(np.log(MIN_BETA)), ops.number(np.log(MAX_BETA))
    for _ in range(CONFIDENCE_STEPS):  # no step waits for a device: the bounds stay there
        middle = 0.5 * (low + high)
        too_low = ops.largest(softmax(rows, ops.exp(middle))).mean() < confidence
        low, high = ops.where(too_low, middle, low), ops.where(too_low, high, middle)
    return float(ops.exp(0.5 * (low + high)))
