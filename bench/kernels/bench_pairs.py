"""The kernels over the pair set of the joint refinement, on the sets that its second sweep works on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import stea_fast as sf
from bench.lib.inputs import Case
from stea_fast import _backends
from stea_fast.refinement.joint import JointRefinement
from stea_fast.refinement.prior import prior_of
from stea_fast.refinement.problem import Execution, problem_of
from stea_fast.refinement.shard import Part, Shard, Told
from stea_fast.refinement.workplace import on_host

ROUNDS = 7
KERNELS = (
    "transpose", "union", "positions", "known_values", "best", "log_sums", "joint_probabilities", "largest",
    "mutual_best", "scale_rows", "scaled",
)  # fmt: skip


@cache
def _refined(case: Case) -> JointRefinement:
    """A joint refinement after its first sweep."""
    problem = problem_of(case.candidates, case.pair.kg1, case.pair.kg2, case.pair.train, (), None, Execution())
    place = on_host(problem)
    prior = prior_of(place.rankings(problem, None), case.pair.kg2.num_entities, 15.0, (None, None), None)
    joint = JointRefinement(problem, sf.Joint(), prior, place)
    joint.run(1)
    return joint


@cache
def _shard(case: Case) -> Shard:
    """All pairs after the first sweep as one shard."""
    joint = _refined(case)
    graphs, task = joint.around.plain, joint.shards.objects[0].task  # type: ignore[attr-defined]
    task = replace(task, ranges=[(0, graphs[0].num_entities)])
    shard = Shard(Part(*((0, kg.num_entities) for kg in graphs)), 2, *graphs, None, task)
    states = joint.shards.map("state")
    begins = np.cumsum([0, *(len(state.columns) for state in states)])
    indptr = np.concatenate([[0], *(state.indptr[1:] + b for state, b in zip(states, begins, strict=False))])
    columns = [np.concatenate(parts) for parts in list(zip(*states, strict=True))[1:-1]]
    shard.restore(None, type(states[0])(indptr, *columns, ()))
    return shard


def _propose(case: Case) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """What matched neighbours propose in both directions."""
    joint, shard = _refined(case), _shard(case)
    (backward,) = shard.propose(Told(joint.alignment, *joint.held.matched))
    return shard.proposed, backward


def _calls(case: Case, n_threads: int) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """What every kernel is called with."""
    shard = _shard(case)
    pairs, listed, values = shard.pairs, shard.candidates, shard.probs
    rows, columns = pairs.indptr, pairs.columns
    sums = pairs.log_sums(values)
    offers = _propose(case)
    threads = {"n_threads": n_threads}
    return {
        "transpose": ((rows, columns, pairs.num_columns), {}),
        "union": ((listed.indptr, listed.columns, *offers, pairs.num_columns), threads),
        "positions": ((rows, columns, listed.indptr, listed.columns, pairs.num_columns), threads),
        "known_values": ((rows, columns, [(listed.indptr, listed.columns, listed.scores)], pairs.num_columns), threads),
        "best": ((*pairs.by_column, values), {"k": 10, "least": -np.inf, **threads}),
        "log_sums": ((*pairs.by_column, values), threads),
        "joint_probabilities": ((rows, columns, values, *sums), threads),
        "largest": ((*pairs.by_column, values), threads),
        "mutual_best": ((rows, columns, values, pairs.largest_of_columns(values)), threads),
        "scale_rows": ((rows, columns, values, *(np.full(len(part), 0.1) for part in sums)), threads),
        "scaled": ((rows, columns, values, *(np.full(len(part), 0.1) for part in sums)), threads),
    }


def _run(benchmark: Any, case: Case, call: Any) -> None:
    benchmark.extra_info.update(case=case.name, candidates=case.kind, pairs=len(_shard(case).pairs))
    benchmark.pedantic(call, rounds=ROUNDS, warmup_rounds=1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("backend", ["native", "numba", "reference"])
def bench_pairs(benchmark: Any, case: Case, backend: str, kernel: str) -> None:
    """One kernel over the pairs of a sweep, on two threads."""
    arguments, options = _calls(case, 2)[kernel]
    function = getattr(_backends.resolve(backend).pairs, kernel)
    _run(benchmark, case, lambda: function(*arguments, **options))


def bench_proposals(benchmark: Any, case: Case) -> None:
    """What matched neighbours propose, both directions, native backend, two threads."""
    _run(benchmark, case, lambda: _propose(case))


def bench_sweep(benchmark: Any, case: Case) -> None:
    """One whole sweep of the joint refinement, native backend, all CPUs."""
    _run(benchmark, case, _refined(case)._sweep)
