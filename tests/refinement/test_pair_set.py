"""A sparse set of pairs behaves like the dense matrix it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from stea_fast.refinement.pair_set import PairScoreCache, PairSet, best_of_rows, distinct

SHAPES = st.tuples(st.integers(1, 7), st.integers(1, 7))


@st.composite
def sparse(draw):
    """A set of pairs with values, and the same as a dense matrix with -inf elsewhere."""
    shape = draw(SHAPES)
    cells = shape[0] * shape[1]
    keys = np.array(sorted(draw(st.sets(st.integers(0, cells - 1), max_size=cells))), dtype=np.int64)
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(-3, 4, size=len(keys)).astype(float)
    dense = np.full(cells, -np.inf)
    dense[keys] = values
    return PairSet(keys, shape), values, dense.reshape(shape)


@given(sparse())
def test_sums_and_maxima_of_both_sides_equal_those_of_the_dense_matrix(given_pairs):
    pairs, values, dense = given_pairs
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(pairs.by_row.log_sum_exp(values, pairs.rows), logsumexp(dense, axis=1))
        np.testing.assert_allclose(pairs.by_column.log_sum_exp(values, pairs.columns), logsumexp(dense, axis=0))
    np.testing.assert_array_equal(pairs.by_column.maximum(values), dense.max(axis=0))
    best = (dense == dense.max(axis=1, keepdims=True)) & (dense == dense.max(axis=0)) & np.isfinite(dense)
    np.testing.assert_array_equal(pairs.mutual_best(values), best[pairs.rows, pairs.columns])


@given(sparse(), st.integers(1, 3))
def test_the_best_of_every_row_come_first(given_pairs, k):
    pairs, values, dense = given_pairs
    kept = best_of_rows(pairs.rows, values, k, pairs.shape[0])
    expected = [
        (row, column)
        for row in range(len(dense))
        for column in np.argsort(-dense[row], kind="stable")[:k]
        if np.isfinite(dense[row, column])
    ]
    assert list(zip(pairs.rows[kept], pairs.columns[kept], strict=True)) == expected


@given(sparse())
def test_padded_columns_hold_every_pair_at_its_place(given_pairs):
    pairs, _, dense = given_pairs
    padded, places = pairs.padded_columns()
    np.testing.assert_array_equal(padded[pairs.rows, places], pairs.columns)
    assert (padded >= 0).sum() == len(pairs) == np.isfinite(dense).sum()


def test_values_are_computed_once():
    asked = []

    def compute(keys):
        asked.extend(keys.tolist())
        return keys * 10.0

    memo = PairScoreCache(np.array([5, 2]), np.array([50.0, 20.0]), compute)
    assert memo(np.array([1, 2, 5])).tolist() == [10.0, 20.0, 50.0]
    assert memo(np.array([1, 5, 9])).tolist() == [10.0, 50.0, 90.0]
    assert asked == [1, 9]


@pytest.mark.parametrize(("keys", "expected"), [([], []), ([3, 1, 3, 3, 2, 1], [1, 2, 3])])
def test_distinct_keys_in_order(keys, expected):
    assert distinct(np.array(keys, dtype=np.int64)).tolist() == expected
