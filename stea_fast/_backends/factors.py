"""What a single fact adds to the evidence of a pair."""

from __future__ import annotations

import numpy as np

MIN_FACTOR = 1e-4
# Proposals follow no more facts than these, once they have walked one in so many edges of their budget.
ENOUGH_FACTS, ENOUGH_SHARE = 8, 5


def minus_log(x: np.ndarray) -> np.ndarray:
    """-log(1 - x), with 1 - x clamped below at `MIN_FACTOR`, so that no fact alone decides."""
    return -np.log1p(-np.minimum(x, 1 - MIN_FACTOR))
