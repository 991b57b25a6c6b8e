"""Selected pairs: which of them are given out at the end, and how many are new."""

from __future__ import annotations

import numpy as np

from stea_fast._util.array_ops import ops_of
from stea_fast._util.arrays import like, to_numpy, where_it_is
from stea_fast.refinement.api import Refinement


def given_out(
    out: Refinement, pairs: np.ndarray, probs: np.ndarray, threshold: float | None, anchors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of the last pairs those that stand out by themselves, after the anchors, which are results, not knowledge.

    Args:
        out: the last refinement.
        pairs, probs: int64 [m, 2] and float32 [m], selected from it.
        threshold: how likely a pair must be by itself; the others teach an encoder, but are not given out.
        anchors: int64 [n, 2], pairs by equal names.
    """
    if out.forward.support is not None:
        kept = _support(out, pairs) > (threshold or 0.0)
        pairs, probs = pairs[kept], probs[kept]
    return np.concatenate([anchors, pairs]), np.concatenate([np.ones(len(anchors), dtype=probs.dtype), probs])


def _support(out: Refinement, pairs: np.ndarray) -> np.ndarray:
    """How likely each pair is by itself; 0 where it is not ranked."""
    indices, support = (where_it_is(array, "forward") for array in (out.forward.indices, out.forward.support))
    ops, (sources, targets) = ops_of(indices), like(indices, pairs).T
    listed = ops.where(indices[sources] == targets[:, None], support[sources], 0.0)
    return to_numpy(ops.largest(listed), "support")


def changed_share(pairs: np.ndarray, before: np.ndarray) -> float:
    """The share of pairs that are only in one of the two."""
    new, old = set(map(tuple, pairs.tolist())), set(map(tuple, before.tolist()))
    return len(new ^ old) / max(len(new | old), 1)
