"""Where a refinement runs: on the host over NumPy arrays, or on a device over tensors that stay there."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from stea_fast import _backends
from stea_fast._executors.base import Executor
from stea_fast._executors.threads import ThreadsExecutor
from stea_fast._util import validate
from stea_fast._util.array_ops import Array
from stea_fast._util.arrays import like, to_numpy
from stea_fast._util.threads import thread_count
from stea_fast.refinement.problem import Problem
from stea_fast.refinement.relations import estimated
from stea_fast.types import Beliefs, PairScores, RelationAlignment

logger = logging.getLogger("stea_fast")


@dataclass(frozen=True, eq=False)
class Workplace:
    """Kernels, and graphs as they take them.

    Attributes:
        executor: where shards are.
        kernels: a backend, or `TensorBackend`.
        backend: the name of the backend.
        around: the graphs, with values as nodes where there are any: `Surroundings` or `DeviceSurroundings`.
        device: the torch device, None for the host.
        n_threads: threads of the CPU kernels.
    """

    executor: Executor
    kernels: Any
    backend: str
    around: Any
    device: Any
    n_threads: int

    @property
    def graphs(self) -> tuple[Any, Any]:
        """Source and target graph, `KG` or `DeviceGraph`."""
        return self.around.graphs

    def rankings(self, problem: Problem, k: int | None) -> list[tuple[Array, Array]]:
        """The candidates as int32 ids and float32 scores, best first, checked and cut to the k best."""
        rankings = []
        graphs = problem.kg1, problem.kg2
        sides = zip(("forward", "backward"), problem.candidates, graphs, graphs[::-1], strict=False)
        for name, ranking, source, target in sides:
            ids, scores = validate.ranking(*ranking, name, source.num_entities, target.num_entities, self.device)
            ids = ids[:, :k]
            rankings.append((ids.contiguous() if self.device else np.ascontiguousarray(ids), scores[:, :k]))
        return rankings

    def placed(self, pairs: np.ndarray) -> Array:
        """Pairs of ids where the arrays lie."""
        if self.device is None:
            return pairs
        import torch

        return torch.tensor(pairs, device=self.device)

    def relations(self, given: RelationAlignment | None, beliefs: tuple[Beliefs, Beliefs]) -> RelationAlignment:
        """The relation alignment that was given, or the one that the beliefs give."""
        return given or estimated(
            self.kernels, self.graphs, beliefs, n_threads=self.n_threads, make=self.around.aligned
        )

    def scorer(self, score: PairScores | None) -> PairScores | None:
        """Scores of pairs where the arrays lie; what scores on the host is asked there."""
        if self.device is None or score is None or getattr(score, "device", None) == self.device:
            return score
        return ScoresFromHost(score)


@dataclass(frozen=True)
class ScoresFromHost:
    """Scores of pairs on a device, by what needs NumPy arrays."""

    score: PairScores

    def __call__(self, rows: Array, columns: Array) -> Array:
        """float64 [m]: the scores of m pairs."""
        return like(rows, self.score(to_numpy(rows, "rows"), to_numpy(columns, "columns")))


def shard_place(problem: Problem) -> Workplace:
    """Where a joint refinement runs: as any other, unless an executor is asked for, whose workers have CPUs."""
    backend, executor = problem.execution.backend, problem.execution.executor
    if executor is None:
        return workplace(problem)
    if _backends.use_cuda([], backend):
        raise ValueError("an executor runs on CPUs: leave out executor, or backend='cuda'")
    return on_host(problem)


def workplace(problem: Problem) -> Workplace:
    """Where the candidates or the copies of the graphs lie, if the backend can work there; else the host."""
    arrays = [array for ranking in problem.candidates for array in ranking]
    if _backends.use_cuda([*arrays, *_device_copies(problem)], problem.execution.backend):
        return _on_device(problem, arrays)
    return on_host(problem)


def on_host(problem: Problem) -> Workplace:
    """The host, whatever the candidates are; it says so where graphs were copied to a device for nothing."""
    backend, n_threads, _, executor, *_ = problem.execution
    kernels, count = _backends.resolve(backend), thread_count(n_threads)
    if unused := sorted({str(copy.device) for copy in _device_copies(problem)}):
        logger.warning(
            "this refinement works on the CPU: the copies of the graphs on %s, made by KG.to, are not used",
            " and ".join(unused),
        )
    here = executor or ThreadsExecutor(count)
    return Workplace(here, kernels, kernels.__name__.rpartition(".")[2], problem.surroundings, None, count)


def _on_device(problem: Problem, arrays: list[Any]) -> Workplace:
    from stea_fast._backends.cuda import Kernels
    from stea_fast._backends.tensors import TensorBackend
    from stea_fast.refinement.device_surroundings import DeviceSurroundings

    device = _device_of([*arrays, *(problem.log_partition or ())], _device_copies(problem))
    around = DeviceSurroundings(problem.surroundings, device)
    kernels = TensorBackend(Kernels(device), problem.execution.rows_per_block)
    return Workplace(ThreadsExecutor(1), kernels, "cuda", around, device, 1)


def _device_copies(problem: Problem) -> list[Any]:
    """An array of each copy of a graph that `KG.to` has made: it says where the caller wants to work."""
    copies = (problem.kg1.device_graph, problem.kg2.device_graph)
    return [copy.indptr for copy in copies if copy is not None]


def _device_of(arrays: list[Any], copies: list[Any]) -> Any:
    """Where the tensors among the arrays lie, else where the copies of the graphs do, else the default device."""
    import torch

    from stea_fast._backends.cuda import device_kind

    places = {array.device for array in arrays if isinstance(array, torch.Tensor)}
    if len(places) > 1:
        raise ValueError(f"candidates and log_partition must be on one device, got {_named(places)}")
    kind = device_kind()
    there = {place for place in places if place.type == kind} or {copy.device for copy in copies}
    elsewhere = {copy.device for copy in copies if copy.device.type == kind} - there
    if elsewhere or len(there) > 1:
        raise ValueError(
            f"candidates and graphs must be on one device, got {_named(there | elsewhere)}; kg.to(device) moves a graph"
        )
    for place in there:
        if place.type == kind:
            return place
    return torch.device("cuda", torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)


def _named(places: set[Any]) -> str:
    return " and ".join(sorted(map(str, places)))
