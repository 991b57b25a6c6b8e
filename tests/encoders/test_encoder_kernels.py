"""The compiled kernels of the encoders: one contract, both ways to compute it, every tier and any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import stea_fast as sf  # noqa: E402
from stea_fast._backends.dense import dense_product  # noqa: E402
from stea_fast.encoders import _negatives, kernels  # noqa: E402
from stea_fast.encoders._graph import JointGraph  # noqa: E402
from stea_fast.encoders._ops import hashed_draws  # noqa: E402
from stea_fast.encoders._reflection import ALL_ROWS, Reflection  # noqa: E402
from stea_fast.encoders.kernels import by_numba  # noqa: E402
from stea_fast.encoders.kernels.layers import Layer, LayerGradient  # noqa: E402
from stea_fast.encoders.kernels.propagated import TripleView  # noqa: E402

native = pytest.importorskip("stea_fast.encoders.kernels.native", reason="the native module is not built")


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def on_every_tier(monkeypatch, call):
    """The results of `call()` on each instruction set."""
    results = []
    for tier in native._core.tiers():
        monkeypatch.setenv("STEA_TIER", tier)
        results.append(call())
    return results


def close(a, b, tolerance=1e-4):
    return np.linalg.norm(a - b) <= tolerance * np.linalg.norm(b) + 1e-6


@pytest.mark.parametrize("way", [native, by_numba])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_sparse_rows_are_the_product(way, seed):
    rng = np.random.default_rng(seed)
    rows, height, width = (int(size) for size in rng.integers(1, 90, size=3))
    matrix = np.where(rng.random((rows, height)) < 0.3, rng.standard_normal((rows, height)), 0).astype(np.float32)
    x, out = rng.standard_normal((height, width), dtype=np.float32), np.full((rows, width), np.nan, dtype=np.float32)
    indptr = np.concatenate([[0], np.cumsum((matrix != 0).sum(1))])
    way.sparse_rows((indptr, np.nonzero(matrix)[1].astype(np.int32), matrix[matrix != 0]), x, out, 0, 0, width)
    assert close(out, matrix @ x, 1e-5)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_dense_product_has_the_same_bits_on_every_tier_and_with_any_number_of_threads(seed):
    rng = np.random.default_rng(seed)
    rows, depth, columns = (int(size) for size in rng.integers(0, 130, size=3))
    a, b = rng.standard_normal((rows, depth), dtype=np.float32), rng.standard_normal((depth, columns), dtype=np.float32)
    found = set()
    for tier in native._core.tiers():
        for threads in (1, 3):
            out = np.full((rows, columns), np.nan, dtype=np.float32)
            native._core.dense_product(a, b, out, threads, tier)
            found.add(out.tobytes())
    assert len(found) == 1
    assert close(out, a @ b, 1e-5)


@pytest.mark.parametrize("backend", ["native", "numba"])
def test_a_dense_product_is_written_where_it_is_wanted(backend, monkeypatch):
    monkeypatch.setenv("STEA_BACKEND", backend)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((7, 90), dtype=np.float32), rng.standard_normal((90, 20), dtype=np.float32)
    whole = np.zeros((20, 20), dtype=np.float32)
    dense_product(a[:, ::2], b[::2], whole[5:12])
    assert close(whole[5:12], a[:, ::2] @ b[::2], 1e-5) and not whole[:5].any() and not whole[12:].any()
    assert close(dense_product(a, b), a @ b, 1e-5)


def layer_edges(rng, relations, num_triples=150):
    """A small graph with hubs and lonely entities."""
    ends = rng.integers(40, size=num_triples), rng.integers(44, size=num_triples) % 40
    triples = np.stack([ends[0], rng.choice(relations, size=num_triples), ends[1]], axis=1)
    triples[:70, 0] = 0  # more edges than are summed at a time
    kgs = [sf.KG(triples, 42, 5), sf.KG(triples[::2], 41, 5)]
    return Reflection(JointGraph.join(*kgs), torch.device("cpu")).edges


def layer_results(way, activation, some, dim, relations=(0, 1, 2, 3, 4)):
    """The output of a layer and all its gradients."""
    rng = np.random.default_rng(0)
    edges = layer_edges(rng, relations)
    n, num_edges, sets, heads = len(edges.indptr) - 1, len(edges.columns), len(edges.set_indptr) - 1, 2

    def numbers(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    position, count = ALL_ROWS, n
    if some:
        position, count = np.full(n, -1, dtype=np.int32), n // 3
        position[rng.permutation(n)[:count]] = np.arange(count)
    z, unit, k, k_unit = numbers(n, 3 * heads * dim), numbers(sets, dim), numbers(heads, dim), numbers(heads, dim)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    dots, weights = (np.zeros((num_edges, heads), dtype=np.float32) for _ in range(2))
    layer = Layer(position, z, heads * dim, unit, k, unit @ k.T, dots, weights)
    grad, outer = numbers(count, heads * dim), numbers(count, 3 * heads * dim)
    z[:, : heads * dim], d_x = np.tanh(z[:, : heads * dim]), np.full((n, heads * dim), np.nan, dtype=np.float32)
    given = LayerGradient(k_unit, activation, grad, outer, position, d_x, np.zeros_like(unit))
    wanted = position >= 0 if some else np.ones(n, dtype=bool)
    way.reflect_forward(edges, layer, 2 * heads * dim, unit @ k_unit.T, activation)
    through = way.reflect_backward(edges, layer, given)
    return [z[wanted, 2 * heads * dim :], d_x, given.d_unit, *through]


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize(("activation", "dim"), [("tanh", 64), ("relu", 100), ("tanh", 5)])
def test_both_ways_make_the_same_layer_and_gradients(activation, dim, some, threads):
    found, expected = (layer_results(way, activation, some, dim) for way in (native, by_numba))
    assert all(close(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("some", [False, True])
def test_relations_of_many_edges_have_the_gradient_that_rare_ones_have(some, threads):
    """From 32 edges on the sums of a set are made beside those of its rows, and not set by set."""
    relations = (0,) * 12 + (1, 2)
    sizes = np.diff(layer_edges(np.random.default_rng(0), relations).set_indptr)
    assert sizes.max() > 64 and sizes.min() < 32, "both ways of adding up must occur"
    found, expected = (layer_results(way, "tanh", some, 20, relations) for way in (native, by_numba))
    assert all(close(a, b) for a, b in zip(found, expected, strict=True))
    assert np.abs(expected[2][np.argmax(sizes)]).max() > 0.1  # the gradient of the most frequent set is no zero


def test_layers_are_the_same_bits_on_every_tier_and_number_of_threads(monkeypatch):
    before, results = torch.get_num_threads(), []
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        results += on_every_tier(monkeypatch, lambda: layer_results(native, "tanh", True, 20))
    torch.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def negatives(way, seed=0, queries=137, entities=900, width=50):
    """Losses, pushes, pulled rows and the gradient of a block of queries: `way` is a module, or an int8 tier's name."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((entities, width), dtype=np.float32)
    ends = np.stack([rng.permutation(entities)[:queries], rng.permutation(entities)[:queries]], axis=1).astype(np.int32)
    ends[:, 1] += ends[:, 0] == ends[:, 1]
    ends %= entities
    given = z[ends[:, 0]]
    norms = (z * z).sum(1)
    base = ((given - z[ends[:, 1]]) ** 2).sum(1) + 1 - norms[ends[:, 0]]
    centre, gradient = 2 * given @ z.mean(0) - norms.mean(), np.zeros_like(z)
    arrays = given, z, norms, base, centre, ends, 30.0, _negatives.CUT, gradient
    if isinstance(way, str):
        results = native._core.byte_negatives(*arrays, torch.get_num_threads(), native.tier(), way)
    else:
        results = way.hard_negatives(given @ z.T, *arrays)
    return [*results, gradient]


def test_both_ways_find_the_same_negatives(threads):
    found, expected = (negatives(way) for way in (native, by_numba))
    assert all(close(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(("entities", "width"), [(900, 50), (64, 16), (65, 3), (2, 1)])
def test_numbers_of_8_bits_change_little(entities, width):
    """What has a gradient is computed again: only the deviation and where the cut is are rounded."""
    queries = min(137, entities - 1)
    for rough, exact in zip(
        negatives("baseline", 0, queries, entities, width), negatives(native, 0, queries, entities, width), strict=True
    ):
        assert np.array_equal(np.isnan(rough), np.isnan(exact))
        assert np.linalg.norm(np.nan_to_num(rough - exact)) <= 1e-2 * np.linalg.norm(np.nan_to_num(exact))


def test_a_number_that_is_none_is_not_rounded_away():
    z = np.random.default_rng(0).standard_normal((40, 5), dtype=np.float32)
    z[7, 2] = np.nan
    norms, ends = (z * z).sum(1), np.array([[0, 1]], dtype=np.int32)
    base, centre = np.ones(1, dtype=np.float32), np.zeros(1, dtype=np.float32)
    for tier in native._core.int8_tiers(False):
        found = native._core.byte_negatives(
            z[:1], z, norms, base, centre, ends, 30.0, 8.0, np.zeros_like(z), 1, native.tier(), tier
        )
        assert np.isnan(found[0]).all()


@pytest.mark.parametrize("way", [native, *native._core.int8_tiers(False)])
def test_negatives_are_the_same_bits_on_every_tier_and_number_of_threads(monkeypatch, way):
    before, results = torch.get_num_threads(), [negatives("baseline" if isinstance(way, str) else way)]
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        results += on_every_tier(monkeypatch, lambda: negatives(way))
    torch.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("width", [1, 8, 13, 100])
def test_both_ways_drop_the_same_elements(width, threads):
    x = np.random.default_rng(0).standard_normal((300, width), dtype=np.float32)
    found, expected = np.empty_like(x), np.empty_like(x)
    for way, out in ((native, found), (by_numba, expected)):
        way.dropout(x, out, 2**62 + 12345, 19661, 1.25)
    assert np.array_equal(found, expected)
    kept = hashed_draws(*x.shape, 2**62 + 12345, torch.device("cpu")).numpy() >= 19661  # as on other devices
    assert np.array_equal(found, np.where(kept, x * np.float32(1.25), 0))
    assert set(np.unique(found / x).round(4).tolist()) == {0.0, 1.25}


def test_elements_are_dropped_independently_of_each_other():
    x = np.ones((2000, 96), dtype=np.float32)
    one, other = np.empty_like(x), np.empty_like(x)
    native.dropout(x, one, 7, 32768, 1.0)
    native.dropout(x, other, 8, 32768, 1.0)
    centred = one - 0.5
    for shifted in (other - 0.5, np.roll(centred, 1, axis=0), np.roll(centred, 1, axis=1), np.roll(centred, 8, axis=1)):
        assert abs((centred * shifted).mean()) < 4 * 0.25 / x.size**0.5  # four deviations of a fair coin's


@pytest.mark.parametrize("backend", ["native", "numba"])
def test_the_triple_view_is_the_sum_over_edges(backend, monkeypatch):
    monkeypatch.setenv("STEA_BACKEND", backend)
    rng = np.random.default_rng(0)
    rows, columns, kinds = np.sort(rng.integers(20, size=90)), rng.integers(20, size=90), rng.integers(6, size=90)
    strengths, x = rng.standard_normal((6, 3), dtype=np.float32), rng.standard_normal((20, 48), dtype=np.float32)
    out, squares = np.full((20, 60), 7, dtype=np.float32), np.ones(20)
    TripleView(rows, columns, kinds, 20).fill(out, 5, strengths, x, squares)
    expected = np.zeros((20, 48), dtype=np.float32)
    for i, j, kind in zip(rows, columns, kinds, strict=True):
        expected[i] += np.repeat(strengths[kind], 16) * x[j]
    assert close(out[:, 5:53], expected, 1e-5)
    assert np.allclose(squares, 1 + (expected**2).sum(1), rtol=1e-4)
    assert (out[:, :5] == 7).all() and (out[:, 53:] == 7).all()


def test_a_loss_without_meaning_is_no_number():
    assert np.isnan(negatives(native, entities=2, queries=1)[0]).all()  # all entities are ends of the pair


def test_the_backend_is_that_of_the_environment():
    code = "from stea_fast.encoders import kernels; print(kernels.chosen().__name__)"
    for name, module in (("numba", "by_numba"), ("native", "native"), ("auto", "native")):
        environment = {**os.environ, "STEA_BACKEND": name}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == f"stea_fast.encoders.kernels.{module}"
    assert kernels.chosen().__name__.startswith("stea_fast.encoders.kernels.")
