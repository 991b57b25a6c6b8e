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
    """The record of one round of self-training.

    Attributes:
        number: The number of the round; 0 is the round after the first training.
        num_pairs: The number of selected pseudo mappings.
        metrics: The quality where test links are known, else empty: "encoder" and "refined" hold hit1, hit10 and mrr of
            the encoder's and of the refined ranking, "pairs" holds precision, recall and f1 of the selected pairs.
        seconds: The seconds that each stage took: "train", "topk" and "select".
        peak_mb: The largest memory of the process so far, in megabytes.
        stage_mb: The largest memory of the process during each stage, in megabytes.
        search: How the encoder's candidates were searched, empty without an encoder: "engine", the numbers of "sources"
            and "targets" that were searched, "width" (the dimensions) and, of an approximate search, "recall" of both
            directions, measured on a sample.
        run: The number of the run, from 1, as `align` tells its callbacks; 1 in a history, which is of one run.
        runs: The number of runs that `align` makes; 1 in a history.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> last = sf.SelfTraining(pair, rounds=1).run().history[-1]
        >>> sorted(last.metrics), sorted(last.seconds)
        (['encoder', 'pairs', 'refined'], ['select', 'topk', 'train'])
    """

    number: int
    num_pairs: int
    metrics: dict[str, dict[str, float]]
    seconds: dict[str, float]
    peak_mb: float
    stage_mb: dict[str, float] = field(default_factory=dict)
    search: dict[str, Any] = field(default_factory=dict)
    run: int = 1
    runs: int = 1


class WhenAsked:
    """A field of a record that holds a value, or a function that gives the value when it is first asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, record: Any, value: Any) -> None:
        record.__dict__[self.name] = value

    def __get__(self, record: Any, owner: type) -> Any:
        if record is None:
            raise AttributeError(self.name)  # to `dataclass` this means that the field has no default
        value = record.__dict__[self.name]
        if callable(value):
            value = record.__dict__[self.name] = value()
        return value


@dataclass(frozen=True, eq=False)
class SelfTrainingResult:
    """The result of a run of self-training: the final prediction, the selected pairs and the history.

    Attributes:
        history: The records of all rounds, in their order.
        pairs: The links beyond the seeds that the last round selected, int64 [m, 2].
        pair_probs: The probability of every pair, float32 [m], or its similarity where nothing is refined.
        candidates: The candidates that the encoder predicts; None for a run without an encoder.
        refinement: The refined prediction; None for methods that do not refine.
        embeddings: The embeddings of both graphs, float [n1, d] and [n2, d], as the encoder gives them. Where a
            checkpoint had the finished run, they are computed when they are first asked for. None without an encoder.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> result = sf.SelfTraining(pair, rounds=1).run()
        >>> result.forward.indices.shape, result.embeddings[0].shape[0]
        ((200, 10), 200)
    """

    history: tuple[Round, ...]
    pairs: Any
    pair_probs: Any
    candidates: TopK | None
    refinement: Refinement | None
    embeddings: tuple[Any, Any] | None = WhenAsked()  # type: ignore[assignment]

    @property
    def forward(self) -> Any:
        """The final prediction for every source entity: refined where there is a refinement, else the encoder's."""
        return self._prediction.forward

    @property
    def backward(self) -> Any:
        """The final prediction for every target entity: refined where there is a refinement, else the encoder's."""
        return self._prediction.backward

    @property
    def _prediction(self) -> Any:
        return self.candidates if self.refinement is None else self.refinement


@dataclass(eq=False)
class State:
    """What a run carries from round to round."""

    monitor: Monitor
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    history: list[Round] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    stage_mb: dict[str, float] = field(default_factory=dict)
    search: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Takes time and memory of a stage of the present round."""
        memory.mark()
        begin = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - begin
        self.stage_mb[name] = memory.peak_since_mark() / 1e6

    def finish_round(self, candidates: Candidates | None, refinement: Refinement | None, pairs: np.ndarray) -> Round:
        """The record of the present round; the next one begins."""
        metrics = self.monitor.measure(candidates, refinement, pairs)
        peak_mb = memory.peak() / 1e6
        record = Round(len(self.history), len(pairs), metrics, self.seconds, peak_mb, self.stage_mb, self.search)
        self.history.append(record)
        self.seconds, self.stage_mb, self.search = {}, {}, {}
        return record
