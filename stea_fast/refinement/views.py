"""Two views of the same graphs: one with the encoder's guesses, one from structure alone.

Each of them settles into mistakes of its own: islands of wrong pairs that support each other. The islands differ, since
the views start from different guesses, so what both find is right far more often than what either finds. Pairs on which
both agree are therefore worth training on, and the mean of both probabilities ranks better than either.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stea_fast._util.array_ops import ops_of
from stea_fast._util.arrays import like, to_numpy, where_it_is
from stea_fast._util.sparse import best_of_rows, first_of_each, offsets
from stea_fast.refinement.api import Refinement, ranking_like
from stea_fast.refinement.selection import select
from stea_fast.types import Array, RefinedRanking

MIN_AGREEING = 0.5  # probability from which a pair of the structural view counts as found
MIN_SHARE_OF_A_VIEW = 0.1  # of the other view's pairs; a view that has found less has died out, and is not asked


def agreed_pairs(
    pairs: np.ndarray, probs: np.ndarray, structural: Refinement, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that the structural view holds as well, with their probability.

    Args:
        pairs, probs: int64 [m, 2] and float32 [m], selected from the view with the encoder.
        structural: the view from structure alone.
        known: int64 [n, 2], pairs that it took for certain beside the seeds: they count as found.
    """
    likely = to_numpy(structural.pair_probs, "pair_probs") > MIN_AGREEING
    found = np.concatenate([to_numpy(structural.pairs, "pairs")[likely], known])
    if len(found) < MIN_SHARE_OF_A_VIEW * len(pairs):
        return pairs, probs
    width = 1 + max(int(found[:, 1].max(initial=0)), int(pairs[:, 1].max(initial=0)))
    both = np.isin(pairs[:, 0] * width + pairs[:, 1], found[:, 0] * width + found[:, 1])
    return pairs[both], probs[both]


def mean_of_views(
    encoder: Refinement, structural: Refinement, *, seeds: np.ndarray, strategy: str, threshold: float | None
) -> Refinement:
    """One refinement whose probabilities are the means of both views; a pair that a view does not list has 0 there.

    Relations, facts and evidence are those of the view with the encoder, as far as it lists a pair. A structural view
    that has died out is not asked.
    """
    if len(structural.pairs) < MIN_SHARE_OF_A_VIEW * len(encoder.pairs):
        return encoder
    assert encoder.backward is not None and structural.backward is not None, "both views have both directions"
    forward = _mean(encoder.forward, structural.forward, len(encoder.backward.indices))
    backward = _mean(encoder.backward, structural.backward, len(encoder.forward.indices))
    pairs, probs = select(strategy, forward, backward, threshold, like(forward.indices, seeds))
    template = encoder.forward.indices
    return replace(
        encoder,
        forward=ranking_like(template, forward),
        backward=ranking_like(template, backward),
        pairs=like(template, pairs),
        pair_probs=like(template, probs),
    )


def _mean(one: RefinedRanking, other: RefinedRanking, num_columns: int) -> RefinedRanking:
    """The k best of both rankings by the mean of their probabilities."""
    n, k = one.indices.shape
    template = where_it_is(one.indices, "indices")
    sides, ops = [_listed(ranking, num_columns, template) for ranking in (one, other)], ops_of(template)
    keys, _ = first_of_each(ops.chain([keys for keys, _ in sides]))
    columns = ops.full((3, len(keys)), 0.0)  # probability, support, evidence
    for side_keys, values in sides:
        at = ops.places(keys, side_keys)
        columns[:2, at] += values[:2] / 2
        # The encoder's view comes first: only what it does not list takes its evidence from the other.
        columns[2, at] = ops.where(columns[2, at] > 0, columns[2, at], values[2])
    rows = keys // num_columns
    best = best_of_rows(rows, columns[0], k, n)
    rows = rows[best]
    places = ops.arange(len(best)) - offsets(rows, n)[rows]
    indices = ops.full((n, k), -1, "int32")
    indices[rows, places] = ops.int32(keys[best] % num_columns)
    probs, support, evidence = (ops.full((n, k), 0.0, "float32") for _ in range(3))
    for array, values in zip((probs, support, evidence), columns, strict=True):
        array[rows, places] = ops.single(values[best])
    return RefinedRanking(indices, probs, evidence, support)


def _listed(ranking: RefinedRanking, num_columns: int, template: Array) -> tuple[Array, Array]:
    """Keys of the candidates, row · number of columns + column, and float64 [3, m]: probability, support, evidence."""
    support = ranking.probs if ranking.support is None else ranking.support
    ops, k = ops_of(template), template.shape[1]
    indices, *values = (
        like(template, array).reshape(-1) for array in (ranking.indices, ranking.probs, support, ranking.evidence)
    )
    places = ops.nonzero(indices >= 0)
    keys = places // k * num_columns + ops.int64(indices[places])
    return keys, ops.chain([ops.double(array[places])[None] for array in values])
