"""The native search for similar texts, called as the module `_core` offers it."""

from __future__ import annotations

import numpy as np
import pytest

core = pytest.importorskip("stea_fast._core", reason="the native module is not built")

SIDE = (np.array([0, 2, 3]), np.array([0, 2, 1], dtype=np.int32), np.array([0.8, 0.6, 1.0], dtype=np.float32))


def search(num_columns):
    return core.cosine_topk(SIDE, SIDE, num_columns=num_columns, k=1, min_score=0.1, budget=100, n_threads=1)


def test_memory_is_for_columns_that_occur_not_for_those_that_might():
    indices, scores, _ = search(2**31 - 1)  # a list for each of these would take 16 GB
    assert indices.tolist() == [[0], [1]]
    assert np.array_equal(scores, search(3)[1])
