"""The calls that are timed, each over both directions of a case."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import stea_fast as sf
from bench.lib.inputs import Case
from stea_fast import _backends

Call = Callable[[], object]


def strengths(case: Case, backend: str) -> Any:
    """The relation alignment, prepared for a backend."""
    return _backends.resolve(backend).strengths(case.relations, case.pair.kg1, case.pair.kg2)


ready_strengths = cache(strengths)  # one table for all contenders: where it lies in memory has its own effect


def evidence(case: Case, backend: str, n_threads: int) -> Call:
    """L of every (entity, candidate); the relation table is ready."""
    table = ready_strengths(case, backend)
    return lambda: _evidence(case, backend, table, n_threads)


def _evidence(case: Case, backend: str, table: Any, n_threads: int) -> None:
    kernels = _backends.resolve(backend)
    for side in case.sides:
        kernels.evidence(
            side.source, side.target, side.indices, side.beliefs, table,
            forward=side.forward, rows=(0, side.source.num_entities), n_threads=n_threads,
        )  # fmt: skip


def table_and_evidence(case: Case, backend: str, n_threads: int) -> Call:
    """The same, building the relation table first, as every sweep of `refine` does."""
    return lambda: _evidence(case, backend, strengths(case, backend), n_threads)


def evidence_of_tier(case: Case, tier: str, n_threads: int) -> Call:
    """The native kernel of one instruction-set tier, whatever STEA_TIER says; every statement is a witness."""
    from stea_fast import _core

    table = ready_strengths(case, "native")
    graphs = {kg: _core.Graph(kg.indptr, kg.edges) for kg in (case.pair.kg1, case.pair.kg2)}

    def call() -> None:
        for side in case.sides:
            held = side.beliefs
            _core.evidence(
                graphs[side.source], graphs[side.target], side.indices, tuple(held), table, side.forward,
                0, side.source.num_entities, n_threads, tier, False, False,
            )  # fmt: skip

    return call


def relation_alignment(case: Case, backend: str, n_threads: int) -> Call:
    """P(r ⊆ r') and P(r' ⊆ r) from the beliefs."""

    def call() -> None:
        sf.align_relations(
            case.pair.kg1, case.pair.kg2, case.forward.beliefs, case.backward.beliefs,
            backend=backend, n_threads=n_threads,
        )  # fmt: skip

    return call


def whole_refinement(case: Case, method: str, **execution: Any) -> Call:
    """The public call, from candidates to selected pairs; `execution` says with which backend and how many threads."""

    def call() -> None:
        sf.refine(case.candidates, case.pair.kg1, case.pair.kg2, seeds=case.pair.train, method=method, **execution)

    return call
