"""The kernels over a pair set in C++. Contracts as in `reference_pairs.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import stea_fast._core as _core
from stea_fast._backends.reference_pairs import ValuedPairs


def transpose(indptr: np.ndarray, columns: np.ndarray, num_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs by column."""
    return _core.pair_transpose(indptr, columns, num_columns)


def union(
    indptr: np.ndarray, columns: np.ndarray, of_rows: np.ndarray, of_columns: tuple[np.ndarray, np.ndarray],
    num_columns: int, *, n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The pairs, with what neighbours propose."""
    return _core.pair_union(indptr, columns, of_rows, *of_columns, num_columns, n_threads)


def positions(
    indptr: np.ndarray, columns: np.ndarray, other_indptr: np.ndarray, other_columns: np.ndarray, num_columns: int,
    *, n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """Where every pair stands in another set with the same rows."""
    return _core.pair_positions(indptr, columns, other_indptr, other_columns, num_columns, n_threads)


def known_values(
    indptr: np.ndarray, columns: np.ndarray, sets: Sequence[ValuedPairs], num_columns: int, *, n_threads: int = 1
) -> np.ndarray:
    """The value of every pair in the first of these sets that has it."""
    return _core.pair_known_values(indptr, columns, list(sets), num_columns, n_threads)


def best(
    indptr: np.ndarray, order: np.ndarray | None, values: np.ndarray, *, k: int, least: float, n_threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the k largest values above `least` of every group."""
    return _core.pair_best(indptr, order, values, k, least, n_threads)


def log_sums(indptr: np.ndarray, order: np.ndarray | None, values: np.ndarray, *, n_threads: int = 1) -> np.ndarray:
    """The log Σ exp of every group."""
    return _core.pair_log_sums(indptr, order, values, n_threads)


def joint_probabilities(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, row_sums: np.ndarray, column_sums: np.ndarray,
    *, n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """√(p_row·p_column) of every pair."""
    return _core.pair_probabilities(indptr, columns, values, row_sums, column_sums, n_threads)


def largest(indptr: np.ndarray, order: np.ndarray | None, values: np.ndarray, *, n_threads: int = 1) -> np.ndarray:
    """The largest value of every group."""
    return _core.pair_largest(indptr, order, values, n_threads)


def mutual_best(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, largest_of_columns: np.ndarray, *, n_threads: int = 1
) -> np.ndarray:
    """Which pairs have the largest value of their row, and that of their column."""
    return _core.pair_mutual_best(indptr, columns, values, largest_of_columns, n_threads).view(bool)


def scale_rows(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, tails: np.ndarray, column_factors: np.ndarray,
    *, n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The factors of the rows, and what their pairs then add to the columns."""
    return _core.pair_scale_rows(indptr, columns, values, tails, column_factors, n_threads)


def scaled(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, row_factors: np.ndarray, column_factors: np.ndarray,
    *, n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """The values times the factors of their rows and columns."""
    return _core.pair_scaled(indptr, columns, values, row_factors, column_factors, n_threads)


def totals(
    evidence: np.ndarray, witnesses: np.ndarray, logits: np.ndarray, *, weight: float, lone: float, n_threads: int = 1
) -> np.ndarray:
    """float64 [pairs]: logits + weight · evidence, the latter times `lone` where there is a single witness."""
    return _core.pair_totals(evidence, witnesses, logits, weight, lone, n_threads)


def damped(
    values: np.ndarray, earlier: np.ndarray, places: np.ndarray, *, share: float, n_threads: int = 1
) -> np.ndarray:
    """float64 [pairs]: the values, with this share of the earlier ones at these places; of 0 where that is -1."""
    return _core.pair_damped(values, earlier, places, share, n_threads)
