"""The published way of computing the evidence, for comparison: tensor operations per (entity, candidate).

The probabilities are a dense float32 matrix |E|×|E'|, the relation alignment two dense float64 matrices, the
graphs Python lists. One torch thread. Needs memory for the dense matrix of each direction that is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from time import perf_counter

import numpy as np
import torch

import stea_fast as sf
from bench.lib.inputs import Case
from stea_fast import _backends

TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Sample:
    """Times and results of some entities.

    Attributes:
        entities: int64 [m], rows of the direction's source graph.
        seconds: float64 [m], time of all candidates of each entity.
        compatibility: float64 [m, k], g(e, e').
    """

    entities: np.ndarray
    seconds: np.ndarray
    compatibility: np.ndarray

    @property
    def seconds_per_pair(self) -> float:
        return float(self.seconds.sum() / self.compatibility.size)


class PerPair:
    """One direction of a case, in the data structures of the published way."""

    def __init__(self, case: Case, forward: bool) -> None:
        side = case.forward if forward else case.backward
        relations = case.relations if forward else case.relations.swapped()
        self.edges, self.edges2 = _adjacency(side.source), _adjacency(side.target)
        self.fun, self.fun2 = (
            torch.from_numpy(kg.inverse_functionality.astype(np.float64)) for kg in (side.source, side.target)
        )
        self.sub12, self.sub21 = _dense_relations(relations)
        self.candidates = torch.from_numpy(side.indices.astype(np.int64))
        self.prob = _dense_probabilities(side.beliefs, side.target.num_entities)

    def entity(self, e: int) -> list[float]:
        """g(e, e') of every candidate e', one at a time."""
        return [self._pair(e, int(self.candidates[e][c].item())) for c in range(self.candidates.shape[1])]

    def _pair(self, e: int, e2: int) -> float:
        if e2 < 0:
            return 0.0
        edges = torch.tensor(self.edges[e], dtype=torch.long).reshape(-1, 2)
        edges2 = torch.tensor(self.edges2[e2], dtype=torch.long).reshape(-1, 2)
        r, n = edges[:, 0], edges[:, 1]
        r2, n2 = edges2[:, 0], edges2[:, 1]
        weight = self.prob[n][:, n2]
        contained = self.sub12[r][:, r2]
        containing = self.sub21.transpose(0, 1)[r][:, r2]
        fun = self.fun[r].unsqueeze(1).repeat(1, len(r2))
        fun2 = self.fun2[r2].unsqueeze(0).repeat(len(r), 1)
        factors = (1 - contained * fun2 * weight) * (1 - containing * fun * weight)
        return 1.0 - torch.prod(factors).item()

    def run(self, entities: np.ndarray) -> Sample:
        """Time some entities, on one torch thread."""
        torch.set_num_threads(1)
        seconds = np.empty(len(entities))
        results = []
        for i, e in enumerate(entities.tolist()):
            begin = perf_counter()
            results.append(self.entity(e))
            seconds[i] = perf_counter() - begin
        return Sample(entities, seconds, np.array(results).reshape(len(entities), -1))


def _adjacency(kg: sf.KG) -> list[list[tuple[int, int]]]:
    """(relation, neighbour) of every entity, over the inverse closure."""
    edges = [(r, n) for n, r in kg.edges.tolist()]
    bounds = kg.indptr.tolist()
    return [edges[begin:end] for begin, end in pairwise(bounds)]


def _dense_relations(relations: sf.RelationAlignment) -> tuple[torch.Tensor, torch.Tensor]:
    """float64: P(r ⊆ r') by (r, r') and P(r' ⊆ r) by (r', r); the latter is transposed where it is used."""
    sub12, sub21 = (matrix.toarray().astype(np.float64) for matrix in (relations.sub12, relations.sub21))
    unknown = (sub12 == 0) & (sub21.T == 0)
    sub12[unknown] = sub21.T[unknown] = relations.default
    return torch.from_numpy(sub12), torch.from_numpy(sub21)


def _dense_probabilities(beliefs: sf.Beliefs, num_targets: int) -> torch.Tensor:
    lengths = np.diff(beliefs.indptr)
    rows = torch.from_numpy(np.repeat(np.arange(len(lengths)), lengths))
    prob = torch.empty((len(lengths), num_targets), dtype=torch.float32)
    prob.fill_(0.0)  # every page is really there
    prob[rows, torch.from_numpy(beliefs.targets.astype(np.int64))] = torch.from_numpy(beliefs.weights)
    return prob


@cache
def prepared(case: Case, forward: bool) -> PerPair:
    """The direction's data structures, made once; making them is not timed."""
    return PerPair(case, forward)


@cache
def _kernel_compatibility(case: Case, forward: bool) -> np.ndarray:
    """float64 [n, k]: g = 1 - exp(-L) of the automatic backend."""
    kernels = _backends.resolve("auto")
    side = case.forward if forward else case.backward
    strengths = kernels.strengths(case.relations, case.pair.kg1, case.pair.kg2)
    evidence = kernels.evidence(
        side.source, side.target, side.indices, side.beliefs, strengths,
        forward=forward, rows=(0, side.source.num_entities),
    )  # fmt: skip
    return -np.expm1(-evidence.astype(np.float64))


def random_entities(case: Case, forward: bool, count: int, seed: int) -> np.ndarray:
    """A random sample of the rows of a direction, without repetition."""
    num_rows = (case.forward if forward else case.backward).source.num_entities
    rng = np.random.default_rng([seed, int(forward)])
    return rng.choice(num_rows, size=min(count, num_rows), replace=False)


def timed_and_checked(case: Case, forward: bool, entities: np.ndarray) -> Sample:
    """Time some entities; raises ArithmeticError where the kernels' compatibility differs."""
    sample = prepared(case, forward).run(entities)
    difference = np.abs(sample.compatibility - _kernel_compatibility(case, forward)[entities])
    if difference.size and difference.max() > TOLERANCE:
        worst = entities[difference.max(axis=1).argmax()]
        raise ArithmeticError(
            f"{case.name}: the per-pair way and the kernels differ by {difference.max():.2e}, "
            f"more than {TOLERANCE}, at entity {worst}"
        )
    return sample


def seconds_per_pair(case: Case, forward: bool, sample_entities: int, seed: int = 0) -> tuple[float, Sample]:
    """Mean time of one (entity, candidate) over a random sample of entities, and the checked sample."""
    sample = timed_and_checked(case, forward, random_entities(case, forward, sample_entities, seed))
    return sample.seconds_per_pair, sample
