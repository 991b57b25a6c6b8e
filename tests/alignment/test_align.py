"""From rankings of both directions to a decision for every source entity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stea_fast as sf
from stea_fast.alignment.calibration import ProbabilityCalibrator
from stea_fast.alignment.joint_probabilities import joint_probabilities
from stea_fast.alignment.link_table import link_table
from stea_fast.types import Candidates, Ranking


def ranking(rng: np.random.Generator, rows: int, columns: int, k: int) -> Ranking:
    """Random candidates, some missing, with probabilities."""
    indices = np.stack([rng.permutation(columns)[:k] for _ in range(rows)])
    indices[rng.random(indices.shape) < 0.2] = -1
    return Ranking(indices, rng.random(indices.shape).astype(np.float32))


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6))
def test_a_pair_is_as_likely_as_both_directions_hold_it(seed, n1, n2):
    rng = np.random.default_rng(seed)
    forward, backward = ranking(rng, n1, n2, min(n2, 3)), ranking(rng, n2, n1, min(n1, 3))
    joint = joint_probabilities(Candidates(forward, backward))
    back = {
        (e, e2): p
        for e2, (row, probs) in enumerate(zip(backward.indices, backward.scores, strict=True))
        for e, p in zip(row.tolist(), probs.tolist(), strict=True)
    }
    for e in range(n1):
        expected = {
            e2: math.sqrt(p * back.get((e, e2), 0.0))
            for e2, p in zip(forward.indices[e].tolist(), forward.scores[e].tolist(), strict=True)
            if e2 >= 0
        }
        got = {
            e2: p
            for e2, p in zip(joint.forward.indices[e].tolist(), joint.forward.scores[e].tolist(), strict=True)
            if e2 >= 0
        }
        assert got == pytest.approx(expected, abs=1e-6)
        assert sorted(joint.forward.scores[e].tolist(), reverse=True) == joint.forward.scores[e].tolist()


@pytest.fixture
def crowded() -> tuple[sf.Pair, Candidates]:
    """Sources 0 and 1 want target 0, which wants source 0; source 2 is a seed; source 3 wants nobody."""
    kg = sf.KG([[0, 0, 1], [1, 0, 2], [2, 0, 3]])
    forward = Ranking(np.array([[0, 1], [0, 1], [2, -1], [-1, -1]]), np.array([[0.9, 0.1], [0.8, 0.7], [1, 0], [0, 0]]))
    backward = Ranking(
        np.array([[0, 1], [1, 0], [2, -1], [-1, -1]]), np.array([[0.9, 0.8], [0.7, 0.1], [1, 0], [0, 0]])
    )
    return sf.make_pair(kg, kg, [[2, 2]]), Candidates(forward, backward)


def decided(pair: sf.Pair, found: Candidates, **options: object) -> list[tuple]:
    table = link_table(pair, found, ProbabilityCalibrator(), **{"min_prob": 0.5, "one_to_one": False, **options})
    return [(row.target, row.rank, row.agreement, row.status) for row in map(table.row, range(len(table)))]


def test_every_source_gets_its_best_target_and_is_told_who_agrees(crowded):
    assert decided(*crowded) == [
        ("0", 1, "both", "link"),
        ("0", 1, "forward", "link"),
        ("2", 1, "both", "seed"),
        (None, None, None, "no_counterpart"),
    ]


def test_one_to_one_moves_a_source_to_a_target_that_is_free(crowded):
    assert decided(*crowded, one_to_one=True)[:2] == [("0", 1, "both", "link"), ("1", 2, "backward", "link")]


def test_a_source_below_the_least_probability_has_no_counterpart(crowded):
    assert [row[3] for row in decided(*crowded, min_prob=0.85)] == ["link", "no_counterpart", "seed", "no_counterpart"]
