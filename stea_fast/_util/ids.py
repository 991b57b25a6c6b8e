"""From the ids of a file, whatever they are, to ids from 0 without gaps."""

from __future__ import annotations

import numpy as np


def positions(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """int64, as `values`: where each value stands in `order`, which holds each of them once, in any order."""
    if not values.size:
        return np.zeros(values.shape, dtype=np.int64)
    low, high = int(order.min()), int(order.max())
    if high - low > 8 * (len(order) + len(values)):  # ids far apart, such as hashes: too many for a table
        sorter = np.argsort(order)
        return sorter.take(np.searchsorted(order, values, sorter=sorter))
    table = np.empty(high - low + 1, dtype=np.int64)
    table[order - low] = np.arange(len(order))
    return table.take(values - low)
