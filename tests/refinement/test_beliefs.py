"""Beliefs: what a neighbour is taken to be, from the probabilities of its candidates."""

from __future__ import annotations

import numpy as np
import pytest

from stea_fast.refinement import beliefs
from stea_fast.types import Beliefs

# Row 0 is surest of 2; row 1 of 0, but 0 prefers row 2; row 2 of 0; row 3 has no candidate.
INDICES = np.array([[2, 1], [0, -1], [1, 0], [-1, -1]], dtype=np.int32)
PROBS = np.array([[0.75, 0.25], [1.0, 0.0], [0.125, 0.5], [0.0, 0.0]])
BACK_INDICES = np.array([[1, 2], [0, 2], [0, 3]], dtype=np.int32)
BACK_PROBS = np.array([[0.25, 0.5], [0.0, 0.0], [0.5, 0.25]])


def as_dict(found: Beliefs) -> dict[tuple[int, int], float]:
    assert (found.indptr.dtype, found.targets.dtype, found.weights.dtype) == (np.int64, np.int32, np.float32)
    rows = len(found.indptr) - 1
    return {(row, int(t)): float(w) for row in range(rows) for t, w in zip(*found.row(row), strict=True)}


def reversed_pairs(weights: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    return {(target, source): weight for (source, target), weight in weights.items()}


def test_soft_beliefs_are_the_probabilities_of_the_candidates():
    found = beliefs.soft(INDICES, PROBS)
    assert found.indptr.tolist() == [0, 2, 3, 5, 5]
    assert as_dict(found) == {(0, 2): 0.75, (0, 1): 0.25, (1, 0): 1.0, (2, 1): 0.125, (2, 0): 0.5}


def test_a_probability_of_zero_is_no_belief():
    soft, best = beliefs.soft(BACK_INDICES, BACK_PROBS), beliefs.argmax(BACK_INDICES, BACK_PROBS)
    assert as_dict(soft) == {(0, 1): 0.25, (0, 2): 0.5, (2, 0): 0.5, (2, 3): 0.25}
    assert as_dict(best) == {(0, 2): 1.0, (2, 0): 1.0}


def test_argmax_beliefs_are_the_best_candidate_with_weight_one():
    assert as_dict(beliefs.argmax(INDICES, PROBS)) == {(0, 2): 1.0, (1, 0): 1.0, (2, 0): 1.0}


def test_of_equal_candidates_the_first_is_believed():
    found = beliefs.argmax(np.array([[4, 3]], dtype=np.int32), np.array([[0.5, 0.5]]))
    assert as_dict(found) == {(0, 4): 1.0}


def test_mutual_beliefs_are_the_pairs_that_choose_each_other_seen_from_both_sides():
    forward, backward = beliefs.mutual((INDICES, PROBS), (BACK_INDICES, BACK_PROBS))
    expected = {(0, 2): np.sqrt(0.75 * 0.5), (2, 0): np.sqrt(0.5 * 0.5)}
    assert as_dict(forward) == pytest.approx(expected)
    assert as_dict(backward) == pytest.approx(reversed_pairs(expected))
    assert (len(forward.indptr), len(backward.indptr)) == (5, 4)


def test_transposed_beliefs_are_the_same_weights_seen_from_the_targets():
    found = beliefs.soft(INDICES, PROBS)
    turned = beliefs.transpose(found, 3)
    assert as_dict(turned) == reversed_pairs(as_dict(found))
    assert as_dict(beliefs.transpose(turned, 4)) == as_dict(found)
