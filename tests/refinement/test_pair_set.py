"""A sparse set of pairs, and how it grows and shrinks from sweep to sweep."""

from __future__ import annotations

import numpy as np
import pytest

from stea_fast import _backends
from stea_fast._backends import reference_pairs
from stea_fast.refinement.pair_set import from_keys


@pytest.fixture
def pairs():
    """Of 2 rows and 4 columns: (0, 1), (0, 3), (1, 0), (1, 2)."""
    return from_keys(np.array([1, 3, 4, 6]), np.array([0.1, 0.3, 0.4, 0.6]), (0, 2), 4, reference_pairs, 1)


def proposed(of_rows, pairs_of_columns):
    rows, columns = np.array(pairs_of_columns, dtype=np.int32).reshape(-1, 2).T.copy()
    return np.array(of_rows, dtype=np.int32), (rows, columns)


def test_the_pairs_of_both_sides(pairs):
    assert pairs.rows.tolist() == [0, 0, 1, 1] and pairs.columns.tolist() == [1, 3, 0, 2]
    assert [part.tolist() for part in pairs.by_column] == [[0, 1, 2, 3, 4], [2, 0, 3, 1]]


def test_a_score_is_asked_for_once_while_its_pair_stays(pairs):
    """Proposed: (0, 2) by its row, (1, 3) by its column, and (0, 1), which is there already."""
    asked = []

    def score(rows, columns):
        asked.extend(zip(rows.tolist(), columns.tolist(), strict=True))
        return 10.0 * rows + columns

    offers = proposed([[2, 1], [-1, -1]], [(1, 3)])
    union = pairs.united(*offers, pairs, score)
    assert union.rows.tolist() == [0, 0, 0, 1, 1, 1] and union.columns.tolist() == [1, 2, 3, 0, 2, 3]
    assert union.scores.tolist() == [0.1, 2.0, 0.3, 0.4, 0.6, 13.0] and asked == [(0, 2), (1, 3)]
    again = pairs.united(*proposed([[2, 0], [-1, -1]], []), union, score)
    assert again.scores.tolist() == [0.0, 0.1, 2.0, 0.3, 0.4, 0.6] and asked[2:] == [(0, 0)]


def test_rows_with_too_many_pairs_keep_the_best_scored(pairs):
    everywhere, nowhere = np.array([True, True]), np.array([False, False])
    assert pairs.with_best_of(nowhere, 1) is pairs is pairs.with_best_of(everywhere, 2)
    kept = pairs.with_best_of(np.array([True, False]), 1)
    assert kept.rows.tolist() == [0, 1, 1] and kept.columns.tolist() == [3, 0, 2]
    assert kept.scores.tolist() == [0.3, 0.4, 0.6]


def test_a_shard_of_rows_takes_what_concerns_it(pairs):
    """The rows 5 and 6 of many: the first column proposes 6, the second one 5."""
    shard = from_keys(np.array([5 * 4 + 1, 6 * 4 + 2]), np.zeros(2), (5, 7), 4, reference_pairs, 1, is_part=True)
    assert shard.rows.tolist() == [5, 6] and shard.indptr.tolist() == [0, 1, 2]
    asked = []

    def score(rows, columns):
        asked.extend(zip(rows.tolist(), columns.tolist(), strict=True))
        return rows + 0.5

    union = shard.united(*proposed([[0], [-1]], [(1, 0), (0, 1)]), shard, score)
    assert union.rows.tolist() == [5, 5, 6, 6] and union.columns.tolist() == [0, 1, 0, 2]
    assert asked == [(5, 0), (6, 0)] and union.scores.tolist() == [5.5, 0.0, 6.5, 0.0]


@pytest.mark.parametrize("backend", ["reference", "native", "numba"])
def test_a_part_counts_the_columns_that_occur_and_computes_the_same(backend):
    """The pairs of three rows, as a set of their own and as a part: what is said of columns is said of fewer."""
    kernels = _backends.resolve(backend).pairs
    keys, values = np.array([1, 3, 8 + 3, 16 + 1, 16 + 6]), np.array([0.2, -1.0, 0.5, 0.4, -2.0])
    whole, part = (from_keys(keys, 0 * values, (0, 3), 8, kernels, 1, is_part=is_part) for is_part in (False, True))
    assert whole.occurring.tolist() == list(range(8)) and part.occurring.tolist() == [1, 3, 6]

    def computed(pairs):
        rows, columns = pairs.log_sums(values)
        probs = pairs.joint_probabilities(values, (rows, columns))
        factors, sums = pairs.scale_rows(probs, np.full(3, 0.1), np.ones(len(pairs.occurring)))
        scaled = pairs.scaled(probs, factors, 1.0 / (sums + 0.1))
        largest = pairs.largest_of_columns(scaled)
        of_pairs = rows, probs, factors, scaled, pairs.mutual_best(scaled, largest), pairs.best(scaled, 1)[1][1]
        return of_pairs, [values[np.isin(pairs.occurring, [1, 3, 6])] for values in (columns, sums, largest)]

    for of_whole, of_part in zip(computed(whole), computed(part), strict=True):
        for wanted, found in zip(of_whole, of_part, strict=True):
            np.testing.assert_array_equal(found, wanted)
