"""Selected pairs: which of them stand out by themselves, and how many are new."""

from __future__ import annotations

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast.refinement.api import Refinement


def supported(out: Refinement, pairs: np.ndarray, threshold: float | None) -> np.ndarray:
    """bool [m]: pairs that stand out by themselves. The others teach an encoder, but are not given out."""
    indices, support = to_numpy(out.forward.indices, "indices"), to_numpy(out.forward.support, "support")
    listed = indices[pairs[:, 0]] == pairs[:, 1, None]
    return np.where(listed, support[pairs[:, 0]], 0.0).max(axis=1) > (threshold or 0.0)


def changed_share(pairs: np.ndarray, before: np.ndarray) -> float:
    """The share of pairs that are only in one of the two."""
    new, old = set(map(tuple, pairs.tolist())), set(map(tuple, before.tolist()))
    return len(new ^ old) / max(len(new | old), 1)
