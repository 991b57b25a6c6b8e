"""Relation alignment from seeds and current beliefs only; no test link is ever read."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from stea_fast import _backends, _validate
from stea_fast._backends.counts import RelationCounts
from stea_fast.graph import KG
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
    smoothing = _validate.number(smoothing, "smoothing", minimum=0.0)
    prior = _validate.number(prior, "prior", minimum=0.0, maximum=1.0)
    kernels = _backends.resolve(backend)
    threads = _backends.thread_count(n_threads)
    matrices = []
    for source, target, beliefs in ((kg1, kg2, beliefs1), (kg2, kg1, beliefs2)):
        counts = kernels.relation_counts(source, target, beliefs, rows=(0, source.num_entities), n_threads=threads)
        matrices.append(containment(counts, target.num_relations, smoothing, prior))
    return RelationAlignment(*matrices)


def containment(counts: RelationCounts, num_target_relations: int, smoothing: float, prior: float) -> csr_array:
    """[2R, 2R'] float32: the smoothed probability of every observed pair, completed by the inverses."""
    width = 2 * num_target_relations
    num_relations = len(counts.den)
    r, r2 = np.divmod(counts.keys, width)
    scale = 2.0**-counts.scale_bits
    denominator = counts.den[r] * scale + smoothing
    probs = np.minimum((counts.num * scale + smoothing * prior) / np.maximum(denominator, 1e-300), 1.0)
    # r ⊆ r' says the same as r⁻ ⊆ r'⁻: the second half of the matrix repeats the first.
    rows = np.concatenate([r, r + num_relations])
    columns = np.concatenate([r2, (r2 + num_target_relations) % width])
    data = np.concatenate([probs, probs]).astype(np.float32)
    return csr_array((data, (rows, columns)), shape=(2 * num_relations, width))
