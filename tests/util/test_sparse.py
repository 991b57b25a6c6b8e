"""Sparse rows behave like the lists of lists they stand for, as arrays and as tensors."""

from __future__ import annotations

from itertools import groupby, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stea_fast._util import sparse
from stea_fast._util.rankings import best_candidates, mutual_rows

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6)
LIBRARIES = ["numpy", "torch"]


def to(library, values):
    array = np.asarray(values)
    return array if library == "numpy" else pytest.importorskip("torch").tensor(array)


def indptr_of(rows):
    return sparse.offsets_of_counts(np.array([len(row) for row in rows]))


@pytest.mark.parametrize("library", LIBRARIES)
@given(rows=ROWS)
def test_offsets_from_counts_and_from_groups(library, rows):
    counts = np.array([len(row) for row in rows])
    groups = np.repeat(np.arange(len(rows)), counts)
    wanted = [sum(counts[:i]) for i in range(len(rows) + 1)]
    assert sparse.offsets_of_counts(to(library, counts)).tolist() == wanted
    shuffled = np.random.default_rng(0).permutation(groups)
    found = sparse.offsets(to(library, shuffled), len(rows))
    assert found.tolist() == wanted and str(found.dtype).endswith("int64")
    assert sparse.rows_of(found).tolist() == groups.tolist()


@given(ROWS)
def test_padded_rows(rows):
    values = np.array([value for row in rows for value in row], dtype=np.int32)
    padded, places = sparse.padded_rows(indptr_of(rows), values, -1)
    width = max(1, *map(len, rows))
    assert padded.tolist() == [row + [-1] * (width - len(row)) for row in rows]
    assert padded.dtype == np.int32 and padded[places].tolist() == values.tolist()


@given(ROWS)
def test_groups_without_values_get_what_was_said(rows):
    values = np.array([value for row in rows for value in row], dtype=np.float32)
    found = sparse.reduce_groups(np.maximum, values, indptr_of(rows), -np.inf)
    assert found.tolist() == [max(row, default=-np.inf) for row in rows] and found.dtype == np.float32


@pytest.mark.parametrize("library", LIBRARIES)
@given(values=st.lists(st.integers(-3, 3), max_size=9))
def test_runs_and_distinct_values(library, values):
    assert sparse.distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))
    starts = sparse.run_starts(to(library, np.array(values, dtype=np.int64)))
    lengths = [len(list(run)) for _, run in groupby(values)]
    assert np.flatnonzero(np.asarray(starts)).tolist() == [sum(lengths[:i]) for i in range(len(lengths))]


def test_concatenated_runs():
    assert sparse.concatenated_runs(np.array([5, 0, 2]), np.array([2, 0, 3])).tolist() == [5, 6, 2, 3, 4]
    assert sparse.concatenated_runs(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).tolist() == []


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.5]))
def test_no_matching_is_better(seed, alone):
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((3, 4)) < 0.6, rng.random((3, 4)) + 0.1, 0.0)
    rows, columns = np.nonzero(weights)
    found = sparse.best_matching(rows, columns, weights[rows, columns], weights.shape, alone)
    taken = found[found >= 0]
    assert len(set(taken.tolist())) == len(taken)

    def value(partners):
        return sum(alone if c < 0 else weights[r, c] or -np.inf for r, c in enumerate(partners))

    every = permutations([0, 1, 2, 3, -1, -1, -1], 3)
    assert value(found) == pytest.approx(max(map(value, every)))


@pytest.mark.parametrize("library", LIBRARIES)
def test_ties_go_where_they_are_told(library):
    indices = to(library, np.array([[7, 3, 5], [-1, 4, 2], [-1, -1, -1]], dtype=np.int32))
    scores = to(library, np.array([[0.2, 0.9, 0.9], [0.9, 0.1, 0.1], [0.0, 0.0, 0.0]], dtype=np.float32))
    for ties, wanted in (("first", [3, 4, -1]), ("lowest", [3, 2, -1])):
        best, score = best_candidates(indices, scores, ties=ties)
        assert best.tolist() == wanted and score.tolist() == pytest.approx([0.9, 0.1, -np.inf])


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_that_choose_each_other(library):
    best, back = to(library, np.array([1, -1, 0, 2])), to(library, np.array([2, 3, -1]))
    assert mutual_rows(best, back).tolist() == [2]
