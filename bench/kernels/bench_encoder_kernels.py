"""The encoders' kernels one by one, in the sizes of Dual-AMN on a pair of graphs: native and by Numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import stea_fast as sf
from stea_fast import encoders
from stea_fast.encoders import _negatives, kernels
from stea_fast.encoders._reflection import ALL_ROWS
from stea_fast.encoders.kernels.layers import Layer, LayerGradient

ROUNDS = 5
QUERIES, HEADS, DIM = 256, 2, 128
KERNELS = ("sparse_rows", "dropout", "reflect_forward", "reflect_backward", "hard_negatives", "byte_negatives")


@cache
def _encoder(pair: sf.Pair) -> Any:
    """Dual-AMN, untrained."""
    return encoders.make("dual_amn", pair.kg1, pair.kg2, dim=DIM)


def _layer_calls(pair: sf.Pair, rng: np.random.Generator) -> dict[str, tuple[Any, ...]]:
    edges, width = _encoder(pair).reflection.edges, HEADS * DIM
    n, sets, count = len(edges.indptr) - 1, len(edges.set_indptr) - 1, len(edges.columns)
    z, unit = _floats(rng, n, 2 * width), _floats(rng, sets, DIM) * np.float32(DIM**-0.5)
    k = _floats(rng, HEADS, DIM)
    dots, weights = np.zeros((count, HEADS), dtype=np.float32), np.full((count, HEADS), 0.1, dtype=np.float32)
    layer = Layer(ALL_ROWS, z, 0, unit, k, unit @ k.T, dots, weights)
    grad, outer = _floats(rng, n, width), _floats(rng, n, 2 * width)
    given = LayerGradient(k, "tanh", grad, outer, ALL_ROWS, np.empty_like(grad), np.zeros_like(unit))
    return {"reflect_forward": (edges, layer, width, unit @ k.T, "tanh"), "reflect_backward": (edges, layer, given)}


def _calls(pair: sf.Pair) -> dict[str, tuple[Any, ...]]:
    """What every kernel is called with."""
    rng, matrix = np.random.default_rng(0), _encoder(pair).neighbor_mean
    n = matrix.shape[0]
    x, z = _floats(rng, n, DIM), _floats(rng, n, 6 * DIM)
    norms, ends = (z * z).sum(1), rng.permutation(n)[: 2 * QUERIES].reshape(-1, 2).astype(np.int32)
    queries = z[ends[:, 0]]
    base = ((queries - z[ends[:, 1]]) ** 2).sum(1) + 1 - norms[ends[:, 0]]
    centre = 2 * queries @ z.mean(0) - norms.mean()
    negatives = queries, z, norms, base, centre, ends, 30.0, _negatives.CUT, np.zeros_like(z)
    return {
        "sparse_rows": (matrix._forward, x, np.empty_like(x), 0, 0, DIM),
        "dropout": (z, np.empty_like(z), 12345, 19661, 1.4),
        **_layer_calls(pair, rng),
        "hard_negatives": (queries @ z.T, *negatives),
        "byte_negatives": negatives,
    }


def _floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("backend", ["native", "numba"])
def bench_encoder_kernels(
    benchmark: Any, pair: sf.Pair, backend: str, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call; `hard_negatives` is given its products, `byte_negatives` makes them."""
    monkeypatch.setenv("STEA_BACKEND", backend)
    function: Callable[..., Any] | None = getattr(kernels.chosen(), kernel, None)
    if function is None or (kernel == "byte_negatives" and not kernels.chosen().multiplies_bytes()):
        pytest.skip(f"{kernel} is not what {backend} uses on this machine")
    arguments = _calls(pair)[kernel]
    benchmark.extra_info.update(pair=pair.name, threads=torch.get_num_threads())
    benchmark.pedantic(lambda: function(*arguments), rounds=ROUNDS, warmup_rounds=1)
