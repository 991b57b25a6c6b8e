"""Scores far below zero, vectors near the smallest floats, and what no bit may depend on."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import stea_fast as sf
from stea_fast.refinement.temperature import log_sum_exp


@pytest.mark.parametrize("columns", [64, 65, 70, 71])
@pytest.mark.parametrize("engine", ["native", "numba"])
def test_partition_sums_of_strongly_negative_scores(engine, columns):
    """At every distance of the scores from 0, whatever is left of the last eight columns."""
    rng = np.random.default_rng(0)
    emb1 = rng.standard_normal((200, 4)) * np.linspace(1, 40, 200)[:, None]
    emb2 = rng.standard_normal((columns, 4))
    found = sf.topk(emb1, emb2, 3, 0, "l2", beta=1.0, engine=engine)
    scores = -((emb1[:, None] - emb2) ** 2).sum(axis=2)
    np.testing.assert_allclose(found.log_partition[0], log_sum_exp(scores), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found.log_partition[1], log_sum_exp(scores.T), rtol=1e-5, atol=1e-4)


def test_no_bit_depends_on_whether_torch_is_loaded(monkeypatch):
    pytest.importorskip("torch")
    emb1, emb2 = np.random.default_rng(0).standard_normal((2, 100, 400))
    beside_torch = sf.topk(emb1, emb2, beta=3.0, engine="native").log_partition
    monkeypatch.delitem(sys.modules, "torch")
    for found, expected in zip(beside_torch, sf.topk(emb1, emb2, beta=3.0, engine="native").log_partition, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("smallest", [1e-42, 1e-30, 1e-155, 1e-310])
@pytest.mark.parametrize("csls", [0, 4])
@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@pytest.mark.parametrize("engine", ["native", "numba", "torch", "faiss"])
def test_vectors_of_the_smallest_numbers(engine, metric, csls, smallest):
    """All of them tiny, or tiny ones beside others: no engine may take what its own precision loses for settled."""
    package = pytest.importorskip(engine) if engine in ("torch", "faiss") else None
    rng = np.random.default_rng(1)
    kind = np.float32 if smallest > 1e-45 else np.float64
    for lengths1, lengths2 in ((1.0, 1.0), (1.0 / smallest ** rng.random((40, 1)), 1e4)):
        emb1 = (rng.standard_normal((40, 6)) * smallest * lengths1).astype(kind)
        emb2 = (rng.standard_normal((57, 6)) * smallest * lengths2).astype(kind)
        expected = sf.topk(emb1, emb2, 5, csls, metric, engine="reference")
        given = (package.from_numpy(emb1), package.from_numpy(emb2)) if engine == "torch" else (emb1, emb2)
        found = sf.topk(*given, 5, csls, metric, engine=engine)
        for side in ("forward", "backward"):
            np.testing.assert_array_equal(getattr(found, side).indices, getattr(expected, side).indices)
            np.testing.assert_array_equal(getattr(found, side).scores, getattr(expected, side).scores)
