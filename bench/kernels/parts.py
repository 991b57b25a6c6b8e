"""The parts of `compare.py` that time kernels: speed, growth and hub. Each returns plain data for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

import stea_fast as sf
from bench.kernels import contenders
from bench.lib import inputs
from bench.lib.inputs import Case
from bench.lib.measure import Timing, interleave
from stea_fast import _backends
from stea_fast.refinement.beliefs import from_pairs

HUB_DEGREE = 50_000
GROWTH_CASES = ("dbp15k_zh_en", "debian_bookworm_trixie")


def speed(name: str, rounds: int, sample: int, threads: int) -> dict[str, Any]:
    """Evidence and relation alignment of both directions, each contender in turn, in one run.

    The per-pair way runs on a random sample of `sample` entities per direction, a part of it after every
    round, and is extrapolated to all entities.
    """
    case = inputs.case(name)
    per_pair = _PerPairParts(case, sample, rounds)
    timings = interleave(_speed_contenders(case, threads), rounds, between=per_pair.run)
    return {
        "case": name,
        "candidates": case.kind,
        "k": case.k,
        "threads": threads,
        "seconds": {label: timing.as_dict() for label, timing in timings.items()},
        "per_pair": per_pair.result(),
    }


def _speed_contenders(case: Case, threads: int) -> dict[str, contenders.Call]:
    calls = {}
    with_table, align = contenders.table_and_evidence, contenders.relation_alignment
    if _usable("native"):
        from stea_fast import _core

        calls[f"native, {threads} threads"] = contenders.evidence(case, "native", threads)
        calls["native, 1 thread"] = contenders.evidence(case, "native", 1)
        calls[f"native, {threads} threads, relation table included"] = with_table(case, "native", threads)
        for tier in _core.tiers():
            calls[f"native, 1 thread, tier {tier}"] = contenders.evidence_of_tier(case, tier, 1)
        calls[f"relation alignment, native, {threads} threads"] = align(case, "native", threads)
    if _usable("numba"):
        calls[f"numba, {threads} threads"] = contenders.evidence(case, "numba", threads)
        calls["numba, 1 thread"] = contenders.evidence(case, "numba", 1)
        calls[f"relation alignment, numba, {threads} threads"] = align(case, "numba", threads)
    return calls


def _usable(backend: str) -> bool:
    return _backends.status(backend).usable


class _PerPairParts:
    """The per-pair way on a sample, in as many parts as there are rounds."""

    def __init__(self, case: Case, sample: int, rounds: int) -> None:
        from bench.kernels import per_pair

        self.case, self.per_pair = case, per_pair
        self.parts = {
            forward: np.array_split(per_pair.random_entities(case, forward, sample, seed=0), rounds)
            for forward in (True, False)
        }
        self.samples: dict[bool, list[Any]] = {True: [], False: []}
        for forward in (True, False):
            warm_up = per_pair.random_entities(case, forward, 3, seed=1)
            per_pair.timed_and_checked(case, forward, warm_up)

    def run(self, number: int) -> None:
        for forward, parts in self.parts.items():
            self.samples[forward].append(self.per_pair.timed_and_checked(self.case, forward, parts[number]))

    def result(self) -> dict[str, Any]:
        """Seconds of all entities of both directions, extrapolated, and the standard error of that figure."""
        total = variance = 0.0
        per_pair, entities = {}, {}
        for forward, samples in self.samples.items():
            seconds = np.concatenate([sample.seconds for sample in samples])
            num_rows = (self.case.forward if forward else self.case.backward).source.num_entities
            direction = "forward" if forward else "backward"
            entities[direction] = len(seconds)
            per_pair[direction] = float(seconds.mean() / self.case.k)
            total += float(seconds.mean()) * num_rows
            variance += float(seconds.var(ddof=1) / len(seconds)) * num_rows**2
        return {
            "seconds": total,
            "standard_error": variance**0.5,
            "seconds_per_pair": per_pair,
            "sampled_entities": entities,
        }


def growth(rounds: int, threads: int, names: tuple[str, str] = GROWTH_CASES) -> dict[str, Any]:
    """Time per (edge × K) of a small and of a large pair, with simulated candidates on both."""
    cases = {name: inputs.case(name, "simulated") for name in names}
    calls = {
        f"{name}, {n} threads": contenders.evidence(case, "native", n)
        for name, case in cases.items()
        for n in (threads, 1)
    }
    timings = interleave(calls, rounds)
    rows = {name: _growth_row(case, timings, name, threads) for name, case in cases.items()}
    return {"candidates": "simulated", "threads": threads, "cases": rows}


def _growth_row(case: Case, timings: dict[str, Timing], name: str, threads: int) -> dict[str, Any]:
    both = {n: timings[f"{name}, {n} threads"] for n in (threads, 1)}
    return {
        "edges": case.num_edges,
        "k": case.k,
        "candidate_edges": case.candidate_edges,
        "seconds": both[threads].as_dict(),
        "seconds_1_thread": both[1].as_dict(),
        "ns_per_edge_k": both[threads].median * 1e9 / case.edge_candidates,
        "ns_per_edge_k_1_thread": both[1].median * 1e9 / case.edge_candidates,
        "ns_per_candidate_edge": both[threads].median * 1e9 / case.candidate_edges,
    }


def hub(rounds: int, threads: int, degree: int = HUB_DEGREE) -> dict[str, Any]:
    """A star with one hub: how well the threads share the work, and how much of it is the hub's row.

    Once the bare star, where little else is to be done, and once with six random edges for every leaf.
    """
    return {
        "degree": degree,
        "threads": threads,
        "graphs": {
            label: _hub_row(star_case(degree, extra), rounds, threads)
            for label, extra in (("star", 0), ("star with six more edges per leaf", 6))
        },
    }


def _hub_row(case: Case, rounds: int, threads: int) -> dict[str, Any]:
    calls = {f"{n} threads": contenders.evidence(case, "native", n) for n in (threads, 1)}
    calls["hub row"] = _rows_of_hub(case)
    timings = interleave(calls, rounds)
    one, several = timings["1 threads"].median, timings[f"{threads} threads"].median
    share = timings["hub row"].median / one
    return {
        "seconds": {label: timing.as_dict() for label, timing in timings.items()},
        "hub_share": share,
        "speed_up": one / several,
        "possible_speed_up": min(threads, 1 / share),
    }


def _rows_of_hub(case: Case) -> contenders.Call:
    """Both directions' rows of the hub, entity 0, alone."""
    kernels, table = _backends.resolve("native"), contenders.ready_strengths(case, "native")

    def call() -> None:
        for side in case.sides:
            kernels.evidence(
                side.source, side.target, side.indices[:1], side.beliefs, table,
                forward=side.forward, rows=(0, 1),
            )  # fmt: skip

    return call


def star_case(degree: int, extra_edges: int, k: int = inputs.K, seed: int = 0) -> Case:
    """Two equal graphs: entity 0 is joined to `degree` leaves, each of which has so many more random edges.

    Candidates of an entity are itself and the k - 1 that follow it (the hub is a candidate of itself only),
    and all are believed with the weight 1 / k.
    """
    rng = np.random.default_rng(seed)
    leaves = np.arange(1, degree + 1)
    spokes = np.stack([np.zeros(degree, dtype=np.int64), rng.integers(10, size=degree), leaves], axis=1)
    ends = rng.integers(1, degree + 1, size=(2, degree * extra_edges // 2))
    others = np.stack([ends[0], rng.integers(10, size=ends.shape[1]), ends[1]], axis=1)
    kg = sf.KG(np.concatenate([spokes, others]), degree + 1, 10)
    indices = (np.arange(-1, degree)[:, None] + np.arange(k)) % degree + 1
    indices[0] = np.arange(k)
    side = inputs.Side(True, kg, kg, indices.astype(np.int32), _even_beliefs(indices))
    links = np.stack([np.arange(degree + 1)] * 2, axis=1)
    pair = sf.Pair(kg, kg, links, links[:0], links, links[:0], name=f"star-{degree}")
    ranking = sf.Ranking(side.indices, np.ones(indices.shape, dtype=np.float32))
    return inputs.Case(
        pair.name, "simulated", pair, sf.Candidates(ranking, ranking), side, side._replace(forward=False),
        sf.RelationAlignment.uniform(kg, kg),
    )  # fmt: skip


def _even_beliefs(indices: np.ndarray) -> sf.Beliefs:
    num_rows, k = indices.shape
    rows = np.repeat(np.arange(num_rows), k)
    return from_pairs(rows, indices.ravel(), np.full(rows.shape, 1.0 / k), num_rows)
