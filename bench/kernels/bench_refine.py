"""Evidence, relation alignment, relation table and the whole `refine` call, on every case."""

from __future__ import annotations

from typing import Any

import pytest

from bench.kernels import contenders
from bench.lib.inputs import Case
from stea_fast import backends

ROUNDS = 7


@pytest.fixture(params=("native", "numba"))
def backend(request: pytest.FixtureRequest) -> str:
    """Every fast backend that can run here."""
    found = backends()[request.param]
    if not found.usable:
        pytest.skip(f"backend {found.name} cannot run here: {found.detail}")
    return str(request.param)


def _run(benchmark: Any, case: Case, call: contenders.Call, rounds: int = ROUNDS) -> None:
    """One call untimed (compilation, first touch), then some rounds."""
    benchmark.extra_info.update(case=case.name, candidates=case.kind, edges=case.num_edges, k=case.k)
    benchmark.pedantic(call, rounds=rounds, warmup_rounds=1)
    if benchmark.stats is not None:
        benchmark.extra_info["ns_per_edge_k"] = benchmark.stats.stats.median * 1e9 / case.edge_candidates


@pytest.mark.parametrize("n_threads", [1, 2])
def bench_evidence(benchmark: Any, case: Case, backend: str, n_threads: int) -> None:
    """Both directions, relation table ready."""
    _run(benchmark, case, contenders.evidence(case, backend, n_threads))


@pytest.mark.parametrize("n_threads", [1, 2])
def bench_relation_alignment(benchmark: Any, case: Case, backend: str, n_threads: int) -> None:
    """Both directions."""
    _run(benchmark, case, contenders.relation_alignment(case, backend, n_threads))


def bench_strengths(benchmark: Any, case: Case, backend: str) -> None:
    """The relation table from a relation alignment."""
    _run(benchmark, case, lambda: contenders.strengths(case, backend))


@pytest.mark.parametrize("paper", [False, True], ids=["default", "paper"])
def bench_whole_refinement(benchmark: Any, case: Case, paper: bool) -> None:
    """From candidates to selected pairs, automatic backend, all CPUs."""
    _run(benchmark, case, contenders.whole_refinement(case, paper=paper), rounds=3)
