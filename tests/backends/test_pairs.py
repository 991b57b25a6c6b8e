"""The kernels over a pair set: every backend equals the reference, and no number of threads changes a bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_parity import FAST

from stea_fast import _backends
from stea_fast._backends import native_pairs, reference_pairs
from stea_fast._util.sparse import offsets

EXACT = (
    "transpose",
    "union",
    "positions",
    "known_values",
    "best",
    "largest",
    "mutual_best",
    "totals",
    "damped",
)  # the others add up floats


def random_pairs(rng, shape, count):
    """Pairs of a random set: int64 offsets and int32 columns."""
    rows, columns = np.divmod(np.sort(rng.permutation(shape[0] * shape[1])[:count]), shape[1])
    return offsets(rows, shape[0]), columns.astype(np.int32)


def random_case(rng, shape, count, k=2):
    """Arguments of every kernel, by its name: ties, empty rows and columns, and probabilities that underflow."""
    pairs, other = random_pairs(rng, shape, count), random_pairs(rng, shape, count // 2)
    size = len(pairs[1])
    values = rng.integers(-4, 5, size=size) * rng.choice([1.0, 100.0])
    assigned = rng.integers(shape[0], size=size)
    groups = offsets(assigned, shape[0]), np.argsort(assigned, kind="stable").astype(np.int32)
    probs = np.exp(np.minimum(values, 0.0) * rng.choice([0.5, 200.0]))
    tails = [rng.random(n) * rng.choice([0.0, 1.0]) for n in shape]
    of_rows = rng.integers(-1, shape[1], size=(shape[0], k)).astype(np.int32)
    back = rng.integers(shape[0], size=k * shape[1]), np.sort(rng.integers(shape[1], size=k * shape[1]))
    of_columns = tuple(part.astype(np.int32) for part in back)
    sums = [rng.random(n) * 3 for n in shape]
    sets = (*other, rng.random(count // 2)), (*random_pairs(rng, shape, count // 3), rng.random(count // 3))
    return {
        "transpose": ((*pairs, shape[1]), {}),
        "union": ((*pairs, of_rows, of_columns, shape[1]), {}),
        "positions": ((*pairs, *other, shape[1]), {}),
        "known_values": ((*pairs, sets, shape[1]), {}),
        "best": ((*groups, values), {"k": k, "least": -2.0}),
        "log_sums": ((*groups, values), {}),
        "joint_probabilities": ((*pairs, values, *sums), {}),
        "largest": ((*groups, values), {}),
        "mutual_best": ((*pairs, values, rng.integers(-4, 5, size=shape[1]) * 1.0), {}),
        "scale_rows": ((*pairs, probs, tails[0], sums[1]), {}),
        "scaled": ((*pairs, probs, *sums), {}),
        "totals": (
            (rng.random(size, dtype=np.float32), rng.integers(0, 3, size=size).astype(np.int32), 1.0 * values),
            {"weight": 7.0, "lone": 0.3},
        ),
        "damped": ((probs, rng.random(5), rng.integers(-1, 5, size=size).astype(np.int32)), {"share": 0.3}),
    }


def results(module, name, case, n_threads=None):
    arguments, options = case[name]
    threads = {} if n_threads is None or name == "transpose" else {"n_threads": n_threads}
    found = getattr(module, name)(*arguments, **options, **threads)
    return found if isinstance(found, tuple) else (found,)


@st.composite
def cases(draw):
    shape = draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    count = draw(st.integers(0, shape[0] * shape[1]))
    return random_case(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), shape, count, draw(st.integers(1, 4)))


@pytest.mark.parametrize("backend", FAST)
@given(case=cases())
def test_every_backend_equals_the_reference(backend, case):
    module = _backends.resolve(backend).pairs
    for name in case:
        for found, expected in zip(results(module, name, case), results(reference_pairs, name, case), strict=True):
            assert found.dtype == expected.dtype, name
            if name in EXACT:
                np.testing.assert_array_equal(found, expected, err_msg=name)
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-11, err_msg=name)


def test_no_number_of_threads_changes_a_bit():
    """Enough pairs for several shards of columns, and a row that is handed out as a hub."""
    rng = np.random.default_rng(0)
    case = random_case(rng, (300, 2000), 60_000, k=9)
    for name in case:
        expected = results(native_pairs, name, case, 1)
        for n_threads in (2, 3, 7):
            found = results(native_pairs, name, case, n_threads)
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=name)


def test_balanced_rows_and_columns_add_up_to_one_with_their_tails():
    rng = np.random.default_rng(1)
    indptr, columns = random_pairs(rng, (6, 7), 42)
    values, tails = rng.random(42), (rng.random(6), rng.random(7))
    for module in (reference_pairs, native_pairs):
        factors = np.ones(7)
        for _ in range(300):
            of_rows, added = module.scale_rows(indptr, columns, values, tails[0], factors)
            factors = reference_pairs.inverse(added + tails[1])
        balanced = module.scaled(indptr, columns, values, of_rows, factors).reshape(6, 7)
        scale = balanced / values.reshape(6, 7)  # a(i)·b(j)
        a, b = scale[:, 0] / scale[0, 0], scale[0]
        np.testing.assert_allclose(balanced, a[:, None] * values.reshape(6, 7) * b, rtol=1e-9)
        factor = (1.0 - balanced.sum(0)) / (b * tails[1])  # the same for every column: how a and b share the scale
        np.testing.assert_allclose(factor, factor[0], rtol=1e-9)
        np.testing.assert_allclose(balanced.sum(1) + a / factor[0] * tails[0], 1.0, rtol=1e-9)


def test_scaling_a_row_of_nothing_but_zeros_gives_numbers():
    indptr, columns = np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32)
    for module in (reference_pairs, native_pairs, _backends.resolve("numba").pairs):
        of_rows, sums = module.scale_rows(indptr, columns, np.zeros(3), np.zeros(2), np.ones(2))
        balanced = module.scaled(indptr, columns, np.zeros(3), of_rows, reference_pairs.inverse(sums))
        assert np.isfinite(balanced).all() and (balanced > 0).all() and (balanced <= 1).all()


@pytest.mark.parametrize("damage", ["columns", "indptr", "order", "values", "back_rows", "back_columns"])
def test_what_would_leave_the_arrays_is_refused(damage):
    indptr, columns = np.array([0, 2]), np.array([0, 1], dtype=np.int32)
    none = np.full((1, 1), -1, dtype=np.int32)
    calls = {
        "back_rows": lambda: native_pairs.union(indptr, columns, none, (columns, columns), 2),
        "back_columns": lambda: native_pairs.union(indptr, columns, none, (0 * columns, columns[::-1].copy()), 2),
        "columns": lambda: native_pairs.transpose(indptr, columns + 1, 2),
        "indptr": lambda: native_pairs.transpose(indptr + 1, columns, 2),
        "order": lambda: native_pairs.log_sums(indptr, columns - 1, np.zeros(2)),
        "values": lambda: native_pairs.scaled(indptr, columns, np.zeros(1), np.zeros(1), np.zeros(2)),
    }
    with pytest.raises(ValueError, match=damage):
        calls[damage]()
