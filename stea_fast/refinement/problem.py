"""What a method of `refine` is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stea_fast._executors.base import Executor
from stea_fast._util import validate
from stea_fast._util.progress import Progress
from stea_fast.clues.value_nodes import ValueNodes
from stea_fast.data.graph import KG
from stea_fast.data.id_space import check_candidates, check_not_a_union
from stea_fast.refinement.surroundings import Surroundings
from stea_fast.types import Beliefs, PairScores, RefinedRanking, RelationAlignment, TopK


class Execution(NamedTuple):
    """Where and how kernels run; nothing of it changes a result on the CPU.

    Attributes:
        backend: "auto" or the name of a backend.
        n_threads: threads of the CPU kernels; None for all CPUs of this process.
        rows_per_block: on a GPU, rows whose evidence is computed at a time; None for all.
        executor: where the shards of a joint refinement are; None for the threads of this process.
        device: the torch device of a refinement without candidates, which would say it.
        progress: whether the progress of sweeps is shown, as `steps` takes it.
        pairs_in_files: whether the shards of a joint refinement on CPUs keep their pairs in files between their steps.
    """

    backend: str = "auto"
    n_threads: int | None = None
    rows_per_block: int | None = None
    executor: Executor | None = None
    device: str = "cpu"
    progress: Progress = False
    pairs_in_files: bool = False


@dataclass(frozen=True, eq=False)
class Problem:
    """Candidates to refine, and what is known beside them.

    Attributes:
        candidates: (indices, scores) of the forward direction and, where it was given, of the backward one.
        kg1, kg2: source and target graph.
        seeds, holdout: int64 [m, 2], known links, and known links that the encoder was not trained on.
        relations: a relation alignment that replaces the estimated one.
        log_partition: log Σ exp(β·score) of the rows of each direction over all their targets, with the β of
            `partition_beta`; None where it is not known.
        score: scores of pairs beyond the candidates; None where they are not known.
        values: values as nodes of both graphs; None where there are none.
    """

    candidates: list[tuple[Any, Any]]
    kg1: KG
    kg2: KG
    seeds: np.ndarray
    holdout: np.ndarray
    relations: RelationAlignment | None
    log_partition: tuple[Any, Any] | None
    partition_beta: float | None
    score: PairScores | None
    execution: Execution
    values: ValueNodes | None = None

    @property
    def surroundings(self) -> Surroundings:
        """The graphs as kernels see them."""
        return Surroundings((self.kg1, self.kg2), self.values)

    @property
    def both_directions(self) -> bool:
        """Whether the backward candidates were given too."""
        return len(self.candidates) == 2

    def softmax_partition(self, beta: float | None) -> tuple[tuple[Any, Any] | None, float | None]:
        """The partition sums that may be used with a β that was asked for, and the β to use (None: choose one)."""
        if self.log_partition is None or (beta is not None and beta != self.partition_beta):
            return None, beta
        return self.log_partition, self.partition_beta


class Outcome(NamedTuple):
    """What a method leaves behind.

    Attributes:
        rankings: the refined candidates of each direction that was given.
        relations, beliefs: what the last evidence rests on, values included; the beliefs are those of the source
            entities.
        sweeps: how many sweeps were made.
        betas: the inverse temperature of each direction; None where no softmax was used.
    """

    rankings: list[RefinedRanking]
    relations: RelationAlignment
    beliefs: Beliefs
    sweeps: int
    betas: tuple[float | None, ...]


def problem_of(
    candidates: Any, kg1: KG, kg2: KG, seeds: Any, holdout: Any, relations: RelationAlignment | None,
    execution: Execution,
) -> Problem:  # fmt: skip
    """Check what `refine` was given. The arrays of the candidates are checked later, where they lie."""
    if relations is not None:
        _check_relations(relations, kg1, kg2)
    if execution.rows_per_block is not None:
        validate.count(execution.rows_per_block, "rows_per_block", minimum=1)
    partition, beta = None, None
    if isinstance(candidates, TopK) and candidates.log_partition is not None:
        partition, beta = candidates.log_partition, candidates.beta
        if beta is None:
            raise ValueError("candidates.log_partition needs the beta it was computed with: TopK(..., beta=...)")
    sizes = kg1.num_entities, kg2.num_entities
    links, held_out = validate.links(seeds, "seeds", *sizes), validate.links(holdout, "holdout", *sizes)
    rankings = directions(candidates)
    check_candidates(kg1, kg2, rankings[0][0])
    check_not_a_union(kg1, kg2, links)
    score = getattr(candidates, "score", None)
    return Problem(rankings, kg1, kg2, links, held_out, relations, partition, beta, score, execution)


def directions(candidates: Any) -> list[tuple[Any, Any]]:
    """(indices, scores) of each direction, as they were given."""
    if hasattr(candidates, "forward"):
        rankings = [candidates.forward] + ([candidates.backward] if candidates.backward is not None else [])
    else:
        rankings = [candidates]
    pairs = []
    for name, ranking in zip(("forward", "backward"), rankings, strict=False):
        try:
            indices, scores = _indices_and_scores(ranking)
        except (TypeError, ValueError):
            raise TypeError(f"{name} candidates must be (indices, scores), got {type(ranking).__name__}") from None
        pairs.append((indices, scores))
    return pairs


def _indices_and_scores(ranking: Any) -> tuple[Any, Any]:
    """Of a `Ranking`, of what `torch.topk` returns (values, then indices), or of a plain pair (indices, scores)."""
    if not hasattr(ranking, "indices"):
        indices, scores = ranking
        return indices, scores
    return ranking.indices, ranking.scores if hasattr(ranking, "scores") else ranking.values


def check_graphs(kg1: KG, kg2: KG) -> None:
    """Graphs, and with triples."""
    for kg, name in ((kg1, "kg1"), (kg2, "kg2")):
        if not isinstance(kg, KG):
            raise TypeError(f"{name} must be a KG, got {type(kg).__name__}")
        if kg.num_triples == 0:
            raise ValueError(f"{name} has no triples: there are no neighbours to check a guess against")


def _check_relations(relations: RelationAlignment, kg1: KG, kg2: KG) -> None:
    if not isinstance(relations, RelationAlignment):
        raise TypeError(f"relations must be a RelationAlignment, got {type(relations).__name__}")
    expected = (2 * kg1.num_relations, 2 * kg2.num_relations)
    if relations.shape != expected:
        raise ValueError(f"relations.sub12 must have shape {expected}, got {relations.shape}")
