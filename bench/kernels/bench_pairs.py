"""The kernels over the pair set of the joint refinement, on the sets that its second sweep works on."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import stea_fast as sf
from bench.lib.inputs import Case
from stea_fast import _backends
from stea_fast.refinement.joint import JointRefinement, prior_of
from stea_fast.refinement.problem import Execution, problem_of
from stea_fast.refinement.proposing import Proposer
from stea_fast.refinement.workplace import on_host

ROUNDS = 7
KERNELS = ("transpose", "union", "positions", "best", "log_sums", "joint_probabilities", "mutual_best", "balance")


@cache
def _refined(case: Case) -> JointRefinement:
    """A joint refinement after its first sweep."""
    problem = problem_of(case.candidates, case.pair.kg1, case.pair.kg2, case.pair.train, (), None, Execution())
    place = on_host(problem)
    prior = prior_of(place.rankings(problem, None), case.pair.kg2.num_entities, 15.0, (None, None), None)
    joint = JointRefinement(problem, sf.Joint(), prior, place)
    joint.run(1)
    return joint


def _calls(case: Case, n_threads: int) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """What every kernel is called with."""
    joint = _refined(case)
    pairs, listed, values = joint.pairs, joint.candidates, joint.probs
    rows, columns = pairs.indptr, pairs.columns
    sums = pairs.log_sums(values)
    offers = joint._proposed(joint.kernels.strengths(joint.alignment, joint.kg1, joint.kg2))
    threads = {"n_threads": n_threads}
    return {
        "transpose": ((rows, columns, pairs.num_columns), {}),
        "union": ((listed.indptr, listed.columns, *offers), threads),
        "positions": ((rows, columns, listed.indptr, listed.columns, pairs.num_columns), threads),
        "best": ((*pairs.by_column, values), {"k": 10, "least": -np.inf, **threads}),
        "log_sums": ((*pairs.by_column, values), threads),
        "joint_probabilities": ((rows, columns, values, *sums), threads),
        "mutual_best": ((rows, columns, pairs.by_column, values), threads),
        "balance": ((rows, columns, values, *(np.full(len(part), 0.1) for part in sums)), {"times": 15, **threads}),
    }


def _run(benchmark: Any, case: Case, call: Any) -> None:
    benchmark.extra_info.update(case=case.name, candidates=case.kind, pairs=len(_refined(case).pairs))
    benchmark.pedantic(call, rounds=ROUNDS, warmup_rounds=1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("backend", ["native", "numba", "reference"])
def bench_pairs(benchmark: Any, case: Case, backend: str, kernel: str) -> None:
    """One kernel over the pairs of a sweep, on two threads."""
    arguments, options = _calls(case, 2)[kernel]
    function = getattr(_backends.resolve(backend).pairs, kernel)
    _run(benchmark, case, lambda: function(*arguments, **options))


def bench_proposals(benchmark: Any, case: Case) -> None:
    """What matched neighbours propose when everybody is walked, both directions, native backend, two threads."""
    joint = _refined(case)
    joint.threads = 2
    table = joint.kernels.strengths(joint.alignment, joint.kg1, joint.kg2)

    def propose() -> object:
        joint.proposers = [Proposer(joint.around, side, (0, size), joint.open) for side, size in enumerate(joint.shape)]
        return joint._proposed(table)

    _run(benchmark, case, propose)


def bench_sweep(benchmark: Any, case: Case) -> None:
    """One whole sweep of the joint refinement, native backend, all CPUs."""
    _run(benchmark, case, _refined(case)._sweep)
