"""The native module refuses arrays that would lead it out of them, and says which."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from bench.hardening.core_calls import MAKERS
from stea_fast import KG, RelationAlignment, _core
from stea_fast._backends import native
from stea_fast.refinement.beliefs import soft


def graph(indptr=(0, 1, 2), edges=((1, 0), (0, 1))):
    return _core.Graph(np.array(indptr, dtype=np.int64), np.array(edges, dtype=np.int32).reshape(-1, 2))


@pytest.mark.parametrize(
    ("indptr", "edges", "message"),
    [
        ((0, 2, 1), ((1, 0), (0, 1)), "indptr must rise from 0 to 2"),
        ((0, 3, 2), ((1, 0), (0, 1)), "indptr must rise from 0 to 2"),
        ((-1, 1, 2), ((1, 0), (0, 1)), "indptr must rise from 0 to 2"),
        ((0, 1, 2**62), ((1, 0), (0, 1)), "indptr must rise from 0 to 2"),
        ((0, 1, 2), ((2, 0), (0, 1)), r"edges must lead to entities in \[0, 2\)"),
        ((0, 1, 2), ((1, 0), (-1, 1)), r"edges must lead to entities in \[0, 2\)"),
        ((0, 1, 2), ((1, 0), (0, -5)), "by relations that are not negative"),
    ],
)
def test_a_graph_whose_arrays_do_not_fit_is_refused(indptr, edges, message):
    with pytest.raises(ValueError, match=message):
        graph(indptr, edges)


def problem():
    kg = KG([[0, 0, 1], [1, 1, 2]])
    candidates = np.array([[0, 1], [1, -1], [2, 0]], dtype=np.int32)
    beliefs = soft(candidates, np.full(candidates.shape, 0.5, dtype=np.float32))
    return kg, candidates, tuple(beliefs), native.strengths(RelationAlignment.uniform(kg, kg, 0.5), kg, kg)


@pytest.mark.parametrize(
    ("argument", "place", "value", "message"),
    [
        ("candidates", (1, 0), 3, "candidates must be below 3"),
        ("indptr", 1, 7, "beliefs.indptr must rise from 0 to 5"),
        ("targets", 0, 3, r"beliefs.targets must be in \[0, 3\)"),
        ("targets", 0, -1, r"beliefs.targets must be in \[0, 3\)"),
        ("weights", 0, np.nan, r"beliefs.weights must be in \[0, 1\]"),
        ("weights", 0, -0.5, r"beliefs.weights must be in \[0, 1\]"),
    ],
)
def test_an_index_that_leads_out_is_refused(argument, place, value, message):
    kg, candidates, beliefs, table = problem()
    arrays = {"candidates": candidates, **dict(zip(("indptr", "targets", "weights"), beliefs, strict=True))}
    arrays[argument][place] = value
    sides = native._graph(kg), native._graph(kg)
    with pytest.raises(ValueError, match=message):
        _core.evidence(*sides, arrays.pop("candidates"), tuple(arrays.values()), table, True, 0, 3, 2, "")


def test_relations_that_the_table_does_not_know_are_refused():
    kg, candidates, beliefs, table = problem()
    other = graph((0, 1, 1, 2), ((1, 0), (0, 4)))
    with pytest.raises(ValueError, match="target has relations beyond the 4 that are known"):
        _core.evidence(native._graph(kg), other, candidates, beliefs, table, True, 0, 3, 2, "")
    with pytest.raises(ValueError, match="source has relations beyond the 2 that are known"):
        _core.relation_counts(native._graph(kg), native._graph(kg), beliefs, 1, 2, 40, 0, 3, 2, "")


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("topk_products", {"indices": np.full((4, 1), 9, dtype=np.int32)}, "indices must be below the number of keys"),
        ("relation_counts", {"num_target_relations": 0}, "both graphs must have relations"),
        ("relation_counts", {"scale_bits": 61}, "scale_bits must leave room for the sum of all statements"),
        (
            "containment",
            {"keys": np.array([5, 2]), "num": np.ones(2, dtype=np.int64)},
            "keys must increase within the pairs of relations",
        ),
        ("evidence", {"n_threads": 10**6}, r"n_threads must be in \[1, 1024\]"),
    ],
)
def test_the_other_entry_points_look_before_they_follow(name, changes, message):
    given = MAKERS[name](np.random.default_rng(3))
    if name == "topk_products":
        given |= {"queries": np.zeros((4, 2)), "keys": np.zeros((5, 2))}
    made = {
        key: _core.Graph(*value) if key in ("source", "target") else
        _core.RelationTable(*value) if key == "relations" else value
        for key, value in (given | changes).items()
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        getattr(_core, name)(**made)


def test_a_pool_that_holds_nan_is_sorted_all_the_same():
    """The library's sorting leaves its range where the order is none."""
    rng = np.random.default_rng(0)
    entries = np.zeros((50, 200), dtype=[("score", np.float32), ("index", np.int32)])
    entries["score"] = np.where(rng.random(entries.shape) < 0.5, np.nan, rng.standard_normal(entries.shape))
    sizes, threshold = np.full(50, 199, dtype=np.int32), np.zeros(50, dtype=np.float32)
    _core.topk_sort((entries, sizes, threshold, threshold.copy()), 150, 1)
    best = entries["score"][:, :20]
    assert sizes.tolist() == [150] * 50 and np.all(np.diff(best, axis=1) <= 0)


def test_a_graph_is_looked_through_once_and_not_kept_alive():
    kg = KG([[0, 0, 1]])
    assert native._graph(kg) is native._graph(kg)
    gone = weakref.ref(kg)
    del kg
    gc.collect()
    assert gone() is None
