"""Scores far below zero and vectors near the smallest floats: every engine gives the same, and nothing is lost."""

from __future__ import annotations

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
