"""Relation alignment from seeds and current beliefs only; no test link is ever read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stea_fast import _backends
from stea_fast._util import validate
from stea_fast._util.threads import thread_count
from stea_fast.data.graph import KG
from stea_fast.types import Beliefs, RelationAlignment

PRIOR = 0.1  # what PARIS assumes of a pair of relations before anything is known
SMOOTHING = 1.0  # how many statements that assumption is worth


def align_relations(
    kg1: KG,
    kg2: KG,
    beliefs1: Beliefs,
    beliefs2: Beliefs,
    *,
    smoothing: float = SMOOTHING,
    prior: float = PRIOR,
    backend: str = "auto",
    n_threads: int | None = None,
) -> RelationAlignment:
    """P(r ⊆ r') and P(r' ⊆ r) for all observed pairs of relations.

    P(r ⊆ r') = (num(r, r') + smoothing·prior) / (den(r) + smoothing), where num counts the statements of r
    that are also made by r', and den those whose both ends have a counterpart, each as an expectation under
    the beliefs. Pairs never seen together are not stored.

    Args:
        beliefs1: what the entities of kg1 are believed to be in kg2; gives P(r ⊆ r').
        beliefs2: the same from the other side; gives P(r' ⊆ r).
    """
    smoothing = validate.number(smoothing, "smoothing", minimum=0.0)
    prior = validate.number(prior, "prior", minimum=0.0, maximum=1.0)
    _check_beliefs(beliefs1, "beliefs1", kg1, kg2)
    _check_beliefs(beliefs2, "beliefs2", kg2, kg1)
    kernels = _backends.resolve(backend)
    return estimated(
        kernels, (kg1, kg2), (beliefs1, beliefs2), smoothing=smoothing, prior=prior, n_threads=thread_count(n_threads)
    )


def estimated(
    kernels: Any,
    graphs: tuple[Any, Any],
    beliefs: tuple[Beliefs, Beliefs],
    *,
    smoothing: float = SMOOTHING,
    prior: float = PRIOR,
    n_threads: int = 1,
    make: Callable[[Any, Any], RelationAlignment] = RelationAlignment.trusted,
) -> RelationAlignment:
    """`align_relations` without its checks, by any backend: graphs, beliefs and containments as its kernels take them.

    Args:
        kernels: a backend, or `TensorBackend` for graphs and beliefs on a device.
        make: what makes an alignment of the two containments; `DeviceAlignment` for those on a device.
    """

    def one_side(source: Any, target: Any, held: Beliefs) -> Any:
        counts = kernels.relation_counts(source, target, held, rows=(0, source.num_entities), n_threads=n_threads)
        return kernels.containment(counts, target.num_relations, smoothing, prior)

    return make(one_side(*graphs, beliefs[0]), one_side(*graphs[::-1], beliefs[1]))


def _check_beliefs(beliefs: Beliefs, name: str, source: KG, target: KG) -> None:
    """The kernels rely on it: nothing of this may be wrong."""
    for part, dtype in (("indptr", np.int64), ("targets", np.int32), ("weights", np.float32)):
        found = getattr(getattr(beliefs, part, None), "dtype", None)
        if found != dtype:
            raise TypeError(f"{name}.{part} must be an array of {np.dtype(dtype)}, got {found}")
    indptr, targets, weights = beliefs.indptr, beliefs.targets, beliefs.weights
    if indptr.shape != (source.num_entities + 1,) or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(f"{name}.indptr must be {source.num_entities + 1} increasing offsets from 0")
    if targets.shape != (indptr[-1],) or weights.shape != targets.shape:
        raise ValueError(f"{name} must have {indptr[-1]} targets and weights, got {targets.shape} and {weights.shape}")
    validate.in_range(targets, f"{name}.targets", target.num_entities, "target entities")
    if weights.size and not (weights.min() >= 0 and weights.max() <= 1):
        raise ValueError(f"{name}.weights must lie in [0, 1], got {weights.min()} to {weights.max()}")
