"""Splitting links into seeds and test links: one rule for files and for synthetic pairs."""

from __future__ import annotations

import numpy as np

from stea_fast._util import validate

_MAX_SEED = np.iinfo(np.int64).max


def check_seed(value: int, name: str) -> int:
    """A seed for `np.random.default_rng`: any integer from 0 that fits into 64 signed bits."""
    return validate.count(value, name, maximum=_MAX_SEED)


def check_seed_fraction(value: float) -> float:
    """A share of the links in [0, 1]."""
    return validate.number(value, "seed_fraction", minimum=0.0, maximum=1.0)


def split_rows(num_links: int, seed_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Shuffle the rows of a link table and cut them into seeds and test links.

    Returns:
        Row numbers, int64: the first floor(num_links * seed_fraction), at least one unless the share is 0, and the rest.
    """
    rows = np.random.default_rng(seed).permutation(num_links)
    # 100 * 0.29 is 28.999…: the margin keeps the floor from taking a seed away for a rounding error
    num_seeds = max(int(seed_fraction > 0), int(np.floor(num_links * seed_fraction + 1e-9)))
    return rows[:num_seeds], rows[num_seeds:]
