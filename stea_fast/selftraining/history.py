"""What a run of self-training records: its rounds, its result, and what it carries from one to the next."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stea_fast._util import memory
from stea_fast.evaluation.monitor import Monitor
from stea_fast.refinement.api import Refinement
from stea_fast.types import Candidates, TopK


@dataclass(frozen=True)
class Round:
    """What happened in one round.

    Attributes:
        number: 0 for the round after the first training.
        num_pairs: selected pseudo mappings.
        metrics: quality where test links are known: of the encoder ("encoder"), of the refined prediction
            ("refined"), each with hit1, hit10, mrr, and of the selected pairs ("pairs") precision, recall, f1.
        seconds: by stage: train, topk, select.
        peak_mb: the largest memory of the process so far.
        stage_mb: the largest memory of the process during each stage.
    """

    number: int
    num_pairs: int
    metrics: dict[str, dict[str, float]]
    seconds: dict[str, float]
    peak_mb: float
    stage_mb: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SelfTrainingResult:
    """What `SelfTraining.run` returns.

    Attributes:
        history: one `Round` per round.
        pairs, pair_probs: (m, 2) links beyond the seeds selected in the last round, and their probability (or
            similarity, where nothing is refined).
        candidates: what the encoder predicts.
        refinement: the refined prediction; None for methods that do not refine.
        embeddings: of the two graphs, as the encoder gives them.
    """

    history: tuple[Round, ...]
    pairs: Any
    pair_probs: Any
    candidates: TopK
    refinement: Refinement | None
    embeddings: tuple[Any, Any]

    @property
    def forward(self) -> Any:
        """The final prediction for every source entity: refined where there is a refinement."""
        return (self.refinement or self.candidates).forward

    @property
    def backward(self) -> Any:
        """The final prediction for every target entity."""
        return (self.refinement or self.candidates).backward


@dataclass(eq=False)
class State:
    """What a run carries from round to round."""

    monitor: Monitor
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    history: list[Round] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    stage_mb: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Takes time and memory of a stage of the present round."""
        memory.mark()
        begin = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - begin
        self.stage_mb[name] = memory.peak_since_mark() / 1e6

    def finish_round(self, candidates: Candidates, refinement: Refinement | None, pairs: np.ndarray) -> Round:
        """The record of the present round; the next one begins."""
        metrics = self.monitor.measure(candidates, refinement, pairs)
        record = Round(len(self.history), len(pairs), metrics, self.seconds, memory.peak() / 1e6, self.stage_mb)
        self.history.append(record)
        self.seconds, self.stage_mb = {}, {}
        return record
