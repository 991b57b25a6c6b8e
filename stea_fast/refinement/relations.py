"""Relation alignment from seeds and current beliefs only; no test link is ever read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stea_fast import _backends
from stea_fast._util import validate
from stea_fast._util.sparse import are_offsets
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
    """Estimate how far the relations of two graphs contain each other, from beliefs about their entities.

    P(r ⊆ r') = (num(r, r') + smoothing·prior) / (den(r) + smoothing), where num counts the statements of r
    that are also made by r', and den those whose both ends have a counterpart, each as an expectation under
    the beliefs. Pairs never seen together are not stored.

    Args:
        kg1: The source graph, with R1 relations.
        kg2: The target graph, with R2 relations.
        beliefs1: What the entities of kg1 are believed to be in kg2; P(r ⊆ r') is computed from it.
        beliefs2: What the entities of kg2 are believed to be in kg1; P(r' ⊆ r) is computed from it.
        smoothing: The number of statements ≥ 0 that the prior is worth.
        prior: The probability in [0, 1] of a pair of relations before any statement is seen.
        backend: "native", "numba" or "reference"; "auto" takes the fastest that can run here.
        n_threads: The number of threads; the default, None, takes `STEA_NUM_THREADS` or all CPUs of this process.

    Returns:
        A `RelationAlignment` of [2R1, 2R2] and [2R2, 2R1] sparse probabilities.

    Raises:
        ValueError: The beliefs do not fit the graphs, or a number is outside its range.
        TypeError: The arrays of the beliefs have the wrong type.
        BackendUnavailable: The backend asked for cannot run here.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> kg1, kg2 = sf.KG([[0, 0, 1]]), sf.KG([[1, 0, 0]])
        >>> weights = np.ones(2, dtype=np.float32)
        >>> beliefs = sf.Beliefs(np.arange(3), np.array([1, 0], dtype=np.int32), weights)  # 0 is 1, and 1 is 0
        >>> relations = sf.align_relations(kg1, kg2, beliefs, beliefs)
        >>> print(relations.sub12.toarray().round(2))
        [[0.55 0.  ]
         [0.   0.55]]
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

    counts = counted(kernels, graphs, beliefs, n_threads=n_threads)
    return make(*contained(kernels, graphs, counts, smoothing=smoothing, prior=prior))


def counted(kernels: Any, graphs: tuple[Any, Any], beliefs: tuple[Beliefs, Beliefs], *, n_threads: int = 1) -> Any:
    """The relation counts of both directions, as the backend gives them."""
    sides = zip((graphs, graphs[::-1]), beliefs, strict=True)
    return tuple(
        kernels.relation_counts(*pair, held, rows=(0, pair[0].num_entities), n_threads=n_threads)
        for pair, held in sides
    )


def contained(
    kernels: Any, graphs: tuple[Any, Any], counts: Any, *, smoothing: float = SMOOTHING, prior: float = PRIOR
) -> Any:
    """P(r ⊆ r') and P(r' ⊆ r) by the counts of both directions."""
    sides = zip(counts, graphs[::-1], strict=True)
    return tuple(kernels.containment(each, target.num_relations, smoothing, prior) for each, target in sides)


def _check_beliefs(beliefs: Beliefs, name: str, source: KG, target: KG) -> None:
    """The kernels rely on it: nothing of this may be wrong."""
    for part, dtype in (("indptr", np.int64), ("targets", np.int32), ("weights", np.float32)):
        found = getattr(getattr(beliefs, part, None), "dtype", None)
        if found != dtype:
            raise TypeError(f"{name}.{part} must be an array of {np.dtype(dtype)}, got {found}")
    indptr, targets, weights = beliefs.indptr, beliefs.targets, beliefs.weights
    if indptr.shape != (source.num_entities + 1,) or not are_offsets(indptr, source.num_entities, int(indptr[-1])):
        raise ValueError(f"{name}.indptr must be {source.num_entities + 1} increasing offsets from 0")
    if targets.shape != (indptr[-1],) or weights.shape != targets.shape:
        raise ValueError(f"{name} must have {indptr[-1]} targets and weights, got {targets.shape} and {weights.shape}")
    validate.in_range(targets, f"{name}.targets", target.num_entities, "target entities")
    if weights.size and not (weights.min() >= 0 and weights.max() <= 1):
        raise ValueError(f"{name}.weights must lie in [0, 1], got {weights.min()} to {weights.max()}")
