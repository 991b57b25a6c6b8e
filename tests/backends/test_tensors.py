"""The functions over tensors equal the reference: on the CPU here, and the same operations on any device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_pairs import EXACT, cases, random_case
from test_parity import problems

from stea_fast import KG, RelationAlignment
from stea_fast._backends import reference, reference_pairs
from stea_fast._backends.witnesses import WITNESSES, by_neighbour

torch = pytest.importorskip("torch")
from stea_fast._backends import tensor_pairs, tensor_proposals  # noqa: E402
from stea_fast._backends import tensors as tensors_backend  # noqa: E402
from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs, Strengths, transposed  # noqa: E402
from stea_fast.data.device_graph import DeviceGraph  # noqa: E402
from stea_fast.refinement.beliefs import soft, transpose  # noqa: E402

CPU = torch.device("cpu")


def tensors(value):
    if isinstance(value, tuple):
        return tuple(map(tensors, value))
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def assert_pairs(case):
    for name, (arguments, options) in case.items():
        found = getattr(tensor_pairs, name)(*map(tensors, arguments), **options)
        wanted = getattr(reference_pairs, name)(*arguments, **options)
        for ours, theirs in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True):
            assert str(ours.dtype) == f"torch.{theirs.dtype}", name
            if name in EXACT:
                np.testing.assert_array_equal(ours.numpy(), theirs, err_msg=name)
            else:
                np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-11, err_msg=name)


@given(case=cases())
def test_the_pair_set_equals_the_reference(case):
    assert_pairs(case)


def test_a_large_pair_set_equals_the_reference():
    assert_pairs(random_case(np.random.default_rng(0), (300, 2000), 60_000, k=9))


@given(problem=problems())
def test_changes_around_entities_equal_the_reference(problem):
    kg, rng = problem[0], np.random.default_rng(0)
    numbers = *rng.random((2, 2 * kg.num_relations), np.float32), *rng.random((2, kg.num_entities), np.float32)
    rows = (kg.num_entities // 3, kg.num_entities)
    backend = tensors_backend.TensorBackend(None)
    found = backend.changes_around(DeviceGraph.upload(kg, CPU), *map(tensors, numbers), rows=rows)
    np.testing.assert_array_equal(found.numpy(), reference.changes_around(kg, *numbers, rows=rows))


@given(problem=problems())
def test_believers_are_the_transposed_beliefs(problem):
    _, kg2, _, beliefs, _ = problem
    found = transposed(DeviceBeliefs.upload(beliefs, CPU), kg2.num_entities)
    for ours, theirs in zip(found, transpose(beliefs, kg2.num_entities), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


def proposed(problem, witnesses, forward, device=CPU, **options):
    """What tensors on a device come to, and what the reference says."""
    kg1, kg2, _, beliefs, relations = problem
    rng = np.random.default_rng(0)
    opened = [rng.random(kg.num_entities) < 0.8 for kg in (kg1, kg2)]
    oriented = (relations, kg1, kg2) if forward else (relations.swapped(), kg2, kg1)
    visits = options.pop("most_visits")
    wanted = reference.proposals(
        kg1, kg2, beliefs, reference.strengths(*oriented), *opened, forward=forward, witnesses=witnesses, **options
    )
    graphs = [DeviceGraph.upload(kg, device) for kg in oriented[1:]]
    table = Strengths.of(DeviceAlignment.upload(oriented[0], device), *graphs)
    found = tensor_proposals.proposals(
        *(graphs if forward else graphs[::-1]), DeviceBeliefs.upload(beliefs, device),
        table.forward if forward else table.backward, *(torch.tensor(part, device=device) for part in opened),
        strongest=by_neighbour(witnesses), most_visits=visits, **options,
    )  # fmt: skip
    return [part.cpu().numpy() for part in found], wanted


def assert_proposals(found, wanted):
    np.testing.assert_allclose(found[1], wanted[1], rtol=2e-7)
    np.testing.assert_array_equal(found[0] >= 0, wanted[0] >= 0)
    ties = np.diff(wanted[1], axis=1) > -1e-6 * np.maximum(wanted[1][:, 1:], 1e-30)
    clear = ~ties.any(axis=1)  # rounding may order what is all but equal in another way
    np.testing.assert_array_equal(found[0][clear, :-1], wanted[0][clear, :-1])


@settings(max_examples=60)
@given(
    problem=problems(), bounds=st.tuples(st.floats(0, 1), st.floats(0, 1)), witnesses=st.sampled_from(WITNESSES),
    forward=st.booleans(), k=st.integers(1, 4), budget=st.sampled_from([2, 9, 5000]),
    most_visits=st.sampled_from([1, 7, 1 << 24]),
)  # fmt: skip
def test_proposals_equal_the_reference(problem, bounds, witnesses, forward, k, budget, most_visits):
    begin, end = sorted(round(bound * problem[0].num_entities) for bound in bounds)
    options = {"k": k, "budget": budget, "rows": (begin, end), "most_visits": most_visits}
    assert_proposals(*proposed(problem, witnesses, forward, **options))


def dense_problem():
    """60 entities with some thirty edges each."""
    rng = np.random.default_rng(1)
    kgs = [KG(rng.integers(0, (60, 3, 60), (900, 3)), 60, 3) for _ in range(2)]
    believed = rng.integers(0, 60, (60, 1)).astype(np.int32)
    beliefs = soft(believed, rng.random(believed.shape, dtype=np.float32))
    relations = RelationAlignment(*(rng.random((6, 6), dtype=np.float32) for _ in range(2)), 0.1)
    return *kgs, None, beliefs, relations


def with_room_for(visits, monkeypatch):
    """Of more visits at a time memory runs out; returns how many were asked for."""
    asked, real = [], tensor_proposals._visits

    def limited(facts, target, beliefs, strengths):
        made = real(facts, target, beliefs, strengths)
        asked.append(len(made[0]))
        if len(made[0]) > visits:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return made

    monkeypatch.setattr(tensor_proposals, "_visits", limited)
    return asked


def test_fewer_visits_at_a_time_are_tried_where_memory_runs_out(monkeypatch, caplog):
    options = {"k": 5, "budget": 5000, "rows": (0, 60), "most_visits": 1 << 24}
    whole, _ = proposed(dense_problem(), "neighbour", True, **options)
    asked = with_room_for(6000, monkeypatch)
    found, _ = proposed(dense_problem(), "neighbour", True, **options)
    for ours, theirs in zip(found, whole, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    total = asked[0]
    assert total > 12_000 and sum(size for size in asked if size <= 6000) == total
    assert f"cpu has no room for {total} visits at a time (about {100 * total} bytes)" in caplog.text


def test_too_little_memory_for_one_row_says_how_much_is_needed(monkeypatch):
    with_room_for(10, monkeypatch)
    options = {"k": 5, "budget": 5000, "rows": (0, 60), "most_visits": 1 << 24}
    message = r"about [\d,]+00 bytes are needed on cpu for the proposals of one row: CUDA out of memory"
    with pytest.raises(MemoryError, match=message):
        proposed(dense_problem(), "neighbour", True, **options)


@pytest.mark.parametrize("budget", [60, 400])
def test_enough_facts_end_the_walk(budget):
    """A hub whose facts are more than enough, over more edges than a share of the budget."""
    problem = dense_problem()
    options = {"k": 5, "budget": budget, "rows": (0, 60), "most_visits": 1000}
    found, wanted = proposed(problem, "neighbour", True, **options)
    assert_proposals(found, wanted)
    unbounded, _ = proposed(problem, "neighbour", True, **{**options, "budget": 10**6})
    assert not np.array_equal(found[0], unbounded[0])
