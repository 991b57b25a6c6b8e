"""Intervals for shares that were counted."""

from __future__ import annotations

import numpy as np

NORMAL_95 = 1.96  # standard deviations on each side of an interval that holds 95 %


def wilson_interval(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two ends, float64 [n], of Wilson's 95 % interval of shares that were found among `count` each.

    Unlike mean ± deviation it stays within [0, 1], and is not empty where all or none were counted. NaN where the
    count is 0.
    """
    count = np.where(count > 0, count, np.nan)
    square = NORMAL_95**2 / count
    middle = (share + square / 2) / (1 + square)
    half = NORMAL_95 / (1 + square) * np.sqrt(share * (1 - share) / count + square / (4 * count))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
