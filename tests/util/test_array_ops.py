"""The operations mean the same for NumPy arrays and for tensors."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stea_fast._util.array_ops import NUMPY, Ops, ops_of

torch = pytest.importorskip("torch")


def test_the_array_decides():
    assert ops_of(np.zeros(1)) is NUMPY
    assert ops_of(torch.zeros(1)) is ops_of(torch.ones(2)) and ops_of(torch.zeros(1)).lib is torch
    assert ops_of(torch.zeros(1, device="meta")).device.type == "meta"


def test_every_operation_is_described_once():
    for name, method in inspect.getmembers(Ops, inspect.isfunction):
        assert method.__doc__, name


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_both_give_the_same(seed, width):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, (5, width)).astype(np.float32)
    values[rng.random(values.shape) < 0.2] = -np.inf
    groups, counts = rng.integers(0, 4, 7), rng.integers(0, 3, 5)

    def results(to):
        array, group, count = to(values), to(groups), to(counts)
        ops = ops_of(array)
        yield from (ops.largest(array), ops.smallest(array), ops.first_largest(array), ops.first_largest(array > 0))
        yield from (ops.order(array), ops.sort(array), ops.take(array, ops.order(array)))
        yield from (
            ops.at_least(array, 0.5),
            ops.at_most(array, 0.5),
            ops.divide(ops.at_least(array, -2.0), ops.at_least(array, 0.0)),
        )
        yield from (ops.histogram(group, 6), ops.offsets(count), ops.repeat(ops.arange(5), count))
        yield from (ops.lexsort((array[:, 0], count)), ops.is_in(group, count), ops.nonzero(group > 1))
        yield from (
            ops.columns(group, group),
            ops.chain([group, count]),
            ops.join(array, array),
            ops.pad(array, 2, 9.0),
        )
        best = ops.some_largest(ops.single(group)[None] + ops.arange(7) / 8, 3)  # without ties, which are not ordered
        yield from (ops.sort(best), ops.sums_of_runs(ops.double(array[array > -9][:, None]), run_lengths(ops, array)))
        yield from (ops.all_true(3), ops.double(array), ops.single(count), ops.int32(group), ops.int64(group))

    def run_lengths(ops, array):
        """Counts of all finite numbers, with runs of none between them."""
        total = int((array > -9).sum())
        return ops.histogram(ops.arange(total) // 3 * 2, 2 * total + 2)

    for ours, theirs in zip(results(torch.tensor), results(np.array), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_what_holds_numbers():
    for array in (np.zeros(1), torch.zeros(1)):
        ops = ops_of(array)
        assert ops.is_number(array) and not ops.is_number(array, integer=True)
        assert ops.is_number(ops.int32(array), integer=True)
        assert not ops.is_number(array > 0) and not ops.is_number(array > 0, integer=True)
        assert ops.scalars(array.sum(), array.sum() + 2) == (0.0, 2.0)


def test_the_largest_of_nothing():
    assert ops_of(np.zeros(0)).largest(np.zeros((2, 0))).tolist() == [-np.inf] * 2
    assert ops_of(torch.zeros(0)).largest(torch.zeros((2, 0))).tolist() == [-np.inf] * 2
