"""Inputs of the benches, made once per process: pairs, candidates, beliefs and relation alignments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import stea_fast as sf
from bench.lib.folders import DATA
from bench.lib.simulated import simulated_candidates
from stea_fast.encoders import demo
from stea_fast.refinement import beliefs, posterior
from stea_fast.refinement.temperature import softmax

SYNTHETIC = {
    "synthetic-15K": 15_000,
    "synthetic-50K": 50_000,
    "synthetic-150K": 150_000,
    "synthetic-500K": 500_000,
}
FOLDERS = (
    "dbp15k_zh_en",
    "dbp15k_ja_en",
    "dbp15k_fr_en",
    "contea_zh_en",
    "wordnet30_oewn",
    "debian_bookworm_trixie",
)
NAMES = (*SYNTHETIC, *FOLDERS)
KINDS = ("encoder", "simulated")
ENCODER_LIMIT = 25_000  # entities of a graph for which the brute-force search is quick enough
SEED_FRACTION = 0.3
K = 10


class MissingDataError(FileNotFoundError):
    """A dataset folder is not on this machine."""


class Side(NamedTuple):
    """One direction of a case, as the kernels take it."""

    forward: bool
    source: sf.KG
    target: sf.KG
    indices: np.ndarray  # int32 [n, k], candidates with the seeds clamped
    beliefs: sf.Beliefs


@dataclass(frozen=True, eq=False)
class Case:
    """What one refinement starts from.

    Attributes:
        kind: "encoder" (the stand-in encoder's candidates) or "simulated".
        candidates: both directions, before seeds are clamped.
        forward, backward: both directions as the method "product" begins, with soft beliefs and clamped seeds.
        relations: the relation alignment of that method's first sweep, estimated from mutual predictions.
    """

    name: str
    kind: str
    pair: sf.Pair
    candidates: sf.Candidates
    forward: Side
    backward: Side
    relations: sf.RelationAlignment

    @property
    def sides(self) -> Iterator[Side]:
        return iter((self.forward, self.backward))

    @property
    def k(self) -> int:
        return int(self.forward.indices.shape[1])

    @property
    def num_edges(self) -> int:
        """Edges of both graphs' inverse closures."""
        return len(self.pair.kg1.edges) + len(self.pair.kg2.edges)

    @property
    def edge_candidates(self) -> int:
        """Σ over rows of degree × K, both directions: the unit of the growth bar."""
        return self.num_edges * self.k

    @property
    def candidate_edges(self) -> int:
        """Σ over rows and their candidates of the candidate's degree, both directions: what kernels walk."""
        return sum(int(side.target.degrees[side.indices[side.indices >= 0]].sum()) for side in self.sides)


def dataset_folder(name: str) -> Path:
    """Where a dataset is; raises MissingDataError where it is not."""
    folder = DATA / name
    if not folder.is_dir():
        raise MissingDataError(
            f"{name} is not in the data folder; set STEA_DATA to the folder that holds it "
            "(docs/reproducing.md says where it is published)"
        )
    return folder


@cache
def pair(name: str, seed_fraction: float = SEED_FRACTION) -> sf.Pair:
    """One of NAMES, without candidates."""
    if name in SYNTHETIC:
        return sf.synthetic_pair(SYNTHETIC[name], seed=0, seed_fraction=seed_fraction)
    if name not in FOLDERS:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}")
    return sf.load_pair(dataset_folder(name), seed_fraction)


def case(name: str, kind: str | None = None) -> Case:
    """One of NAMES with its candidates.

    `kind` None takes the stand-in encoder for pairs of up to ENCODER_LIMIT entities and simulated candidates
    for larger ones. "simulated" also works for the small pairs, so that pairs of any size can be compared
    with the same kind of candidates.
    """
    graphs = pair(name)
    if kind is None:
        small = max(graphs.kg1.num_entities, graphs.kg2.num_entities) <= ENCODER_LIMIT
        kind = "encoder" if small else "simulated"
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    return _case(name, kind)


@cache
def _case(name: str, kind: str) -> Case:
    graphs = pair(name)
    make = demo.candidates if kind == "encoder" else simulated_candidates
    return prepare(graphs, make(graphs, K), name, kind)


def prepare(graphs: sf.Pair, candidates: sf.Candidates, name: str, kind: str) -> Case:
    """Beliefs and relation alignment as the first sweep of the method "product" has them."""
    method = sf.Product(sweeps=1)
    first_sweep = sf.refine(candidates, graphs.kg1, graphs.kg2, seeds=graphs.train, method=method, select="none")
    forward, backward = (
        _side(graphs, ranking, beta, is_forward)
        for is_forward, ranking, beta in zip(
            (True, False), (candidates.forward, candidates.backward), first_sweep.betas, strict=True
        )
    )
    return Case(name, kind, graphs, candidates, forward, backward, first_sweep.relations)


def _side(graphs: sf.Pair, ranking: sf.Ranking | None, beta: float | None, forward: bool) -> Side:
    assert ranking is not None and beta is not None, "both directions, calibrated by softmax"
    source, target = (graphs.kg1, graphs.kg2) if forward else (graphs.kg2, graphs.kg1)
    seeds = graphs.train if forward else graphs.train[:, ::-1]
    scores = np.where(ranking.indices >= 0, ranking.scores, -np.inf)
    indices, probs = posterior.clamp(ranking.indices, softmax(scores, beta), seeds)
    return Side(forward, source, target, np.ascontiguousarray(indices), beliefs.soft(indices, probs))
