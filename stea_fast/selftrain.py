"""The loop of the paper: train → top-K → check the guesses → select pseudo mappings → train again.

No test link is read here. What is known of them is measured by `monitor.py` and written into the history; nothing in
the loop reads the history.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast import _memory, _validate
from stea_fast._arrays import to_numpy
from stea_fast.checkpoint import Checkpoint
from stea_fast.encoders import make
from stea_fast.encoders.base import Encoder
from stea_fast.encoders.checked import checked_embeddings, epochs_of, train
from stea_fast.monitor import Monitor
from stea_fast.oracle import oracle_relations
from stea_fast.refinement import Refinement, refine
from stea_fast.search import topk
from stea_fast.select import mutual_nearest, one_to_one, similarity_threshold
from stea_fast.types import Candidates, Pair, TopK

logger = logging.getLogger("stea_fast")

METHODS = ("stea", "supervised", "sim_threshold", "one_to_one", "mutual_nearest")
FAST_RELATION_DIM = 64  # of 512: an eighth of the time of the search, most of the quality
PRESETS: dict[str, dict[str, Any]] = {
    "fast": {"encoder": "propagation", "rounds": 6, "k": 30},
    "full": {"encoder": "dual_amn", "rounds": 5, "k": 30},
}


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


class SelfTraining:
    """Self-training of an encoder on a pair of graphs.

    Args:
        pair: graphs and seeds (`pair.train`).
        encoder: a name ("propagation", "dual_amn", "rrea", "alinet", "gcn_align") or an object with the members of
            `stea_fast.encoders.base.Encoder`.
        method: "stea" (check the guesses against their neighbours and keep the compatible ones), "supervised" (train
            on the seeds only), or one of the paper's baselines "sim_threshold", "one_to_one", "mutual_nearest".
        preset: "fast" (propagation, 1,024 dimensions unless `encoder_options` say otherwise, 6 rounds) or "full"
            (Dual-AMN, 5 rounds), both with k = 30: from few seeds the true counterpart is often far down the list.
        rounds: how often pseudo mappings are selected and trained on.
        first_epochs, round_epochs: epochs of the first and of every later training; default: the encoder's.
        k, csls: of the search.
        threshold: of the baselines "sim_threshold" and "one_to_one"; default: the median score of the pairs that
            are each other's nearest.
        validation: share of the seeds that no training sees; β is fitted to them. They count as seeds elsewhere.
        relations: "estimated" (from seeds and predictions), or "oracle": from all links, test links included. Only
            for comparison; `audit` fails on it.
        tolerance: stop when at most this share of the pairs has changed since the round before.
        refine_options: options of `refine`; `{"paper": True}` for the paper's step.
        encoder_options: options of the encoder's class.
        seed, device: of the encoder.
        checkpoint: a folder: after every training the state is written there, and a run that finds one of the same
            data and options continues from it, to the same bits on the same machine with as many threads.
        callbacks: functions called with every `Round`.
        progress: True shows progress of training and search, False none, None (default) only on a terminal.
    """

    def __init__(
        self,
        pair: Pair,
        encoder: str | Encoder | None = None,
        *,
        method: str = "stea",
        preset: str = "fast",
        rounds: int | None = None,
        first_epochs: int | None = None,
        round_epochs: int | None = None,
        k: int | None = None,
        csls: int = 10,
        threshold: float | None = None,
        validation: float = 0.0,
        relations: str = "estimated",
        tolerance: float = 0.0,
        refine_options: dict[str, Any] | None = None,
        encoder_options: dict[str, Any] | None = None,
        seed: int = 0,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        callbacks: Sequence[Callable[[Round], object]] = (),
        progress: bool | None = None,
    ) -> None:
        defaults = PRESETS[_validate.choice(preset, "preset", tuple(PRESETS))]
        _check_graphs(pair)
        self.pair = pair
        self.method = _validate.choice(method, "method", METHODS)
        self.rounds = _validate.count(defaults["rounds"] if rounds is None else rounds, "rounds", maximum=1000)
        self.k = _validate.count(defaults["k"] if k is None else k, "k", minimum=1)
        self.csls = _validate.count(csls, "csls")
        self.threshold = None if threshold is None else _validate.number(threshold, "threshold")
        self.relations = _validate.choice(relations, "relations", ("estimated", "oracle"))
        self.tolerance = _validate.number(tolerance, "tolerance", minimum=0.0, maximum=1.0)
        self.refine_options = dict(refine_options or {})
        self.callbacks, self.progress = tuple(callbacks), progress
        self.seeds, self.held_out = _split(
            pair, _validate.number(validation, "validation", minimum=0.0, maximum=0.9), seed
        )
        chosen = defaults["encoder"] if encoder is None else encoder
        if chosen == "propagation":
            encoder_options = {"relation_dim": FAST_RELATION_DIM, **(encoder_options or {})}
        self.encoder = (
            make(chosen, pair.kg1, pair.kg2, seed=seed, device=device, **(encoder_options or {}))
            if isinstance(chosen, str)
            else chosen
        )
        self.first_epochs = epochs_of(first_epochs, "first_epochs", self.encoder)
        self.round_epochs = epochs_of(round_epochs, "round_epochs", self.encoder)
        settings = {
            "encoder": chosen if isinstance(chosen, str) else type(chosen).__name__,
            "encoder_options": {name: repr(value) for name, value in (encoder_options or {}).items()},
            "refine_options": {name: repr(value) for name, value in self.refine_options.items()},
            **{
                name: getattr(self, name)
                for name in ("method", "rounds", "k", "csls", "threshold", "relations", "tolerance")
            },
            "epochs": [self.first_epochs, self.round_epochs], "validation": validation, "seed": seed,
        }  # fmt: skip
        self.checkpoint = None if checkpoint is None else Checkpoint(Path(checkpoint), pair, settings)

    def run(self) -> SelfTrainingResult:
        """Train, and self-train until the rounds are over or the pairs settle."""
        state = _State(Monitor(self.pair))
        if self.checkpoint is not None and self.checkpoint.exists():
            self._resume(state)
        else:
            self._train(state, self.seeds, self.first_epochs)
        while True:
            with state.stage("topk"):
                embeddings = checked_embeddings(self.encoder, self.pair.kg1, self.pair.kg2)
                self._save(state)  # not before: a state without usable embeddings must not replace the last good one
                candidates = topk(*embeddings, self.k, self.csls, progress=self.progress)
            with state.stage("select"):
                refinement, pairs, probs = self._select(candidates, state.pairs)
            record = state.finish_round(candidates, refinement, pairs)
            logger.info("round %d: %d pairs, %s", record.number, record.num_pairs, record.metrics)
            for callback in self.callbacks:
                callback(record)
            settled = record.number > 0 and _changed(pairs, state.pairs) <= self.tolerance
            state.pairs = pairs
            if self.method == "supervised" or record.number >= self.rounds or settled:
                return SelfTrainingResult(tuple(state.history), pairs, probs, candidates, refinement, embeddings)
            self._train(state, np.concatenate([self.seeds, pairs]), self.round_epochs)

    def _train(self, state: _State, pairs: np.ndarray, epochs: int) -> None:
        with state.stage("train"):
            train(self.encoder, pairs, epochs, self.progress)

    def _save(self, state: _State) -> None:
        if self.checkpoint is not None:
            measured = {"seconds": state.seconds, "stage_mb": state.stage_mb}
            self.checkpoint.save(self.encoder.state(), state.pairs, state.history, measured)

    def _resume(self, state: _State) -> None:
        assert self.checkpoint is not None
        saved = self.checkpoint.load()
        self.encoder.load_state(saved.encoder)
        state.pairs, state.seconds, state.stage_mb = saved.pairs, saved.measured["seconds"], saved.measured["stage_mb"]
        state.history = [Round(**record) for record in saved.history]
        logger.info("continuing after round %d of %s", len(state.history) - 1, self.checkpoint.folder)

    def _select(self, candidates: TopK, previous: np.ndarray) -> tuple[Refinement | None, np.ndarray, np.ndarray]:
        """The refinement, if there is one, and the selected pairs with their probability or score."""
        known = self.pair.train
        if self.method == "stea":
            relations = oracle_relations(self.pair) if self.relations == "oracle" else None
            out = refine(
                candidates, self.pair.kg1, self.pair.kg2, seeds=known, holdout=self.held_out, relations=relations,
                **self.refine_options,
            )  # fmt: skip
            return out, to_numpy(out.pairs, "pairs"), to_numpy(out.pair_probs, "pair_probs")
        if self.method == "supervised":
            return None, np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.float32)
        if self.method == "mutual_nearest":
            found = mutual_nearest(candidates, seeds=known)
        else:
            limit = _usual_score(candidates, known) if self.threshold is None else self.threshold
            if self.method == "one_to_one":
                found = one_to_one(candidates, limit, previous=previous, seeds=known)
            else:
                found = similarity_threshold(candidates, limit, seeds=known)
        return None, to_numpy(found[0], "pairs"), to_numpy(found[1], "scores")


@dataclass(eq=False)
class _State:
    """What a run carries from round to round."""

    monitor: Monitor
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    history: list[Round] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    stage_mb: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Takes time and memory of a stage of the present round."""
        _memory.mark()
        begin = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - begin
        self.stage_mb[name] = _memory.peak_since_mark() / 1e6

    def finish_round(self, candidates: Candidates, refinement: Refinement | None, pairs: np.ndarray) -> Round:
        metrics = self.monitor.measure(candidates, refinement, pairs)
        record = Round(len(self.history), len(pairs), metrics, self.seconds, _memory.peak() / 1e6, self.stage_mb)
        self.history.append(record)
        self.seconds, self.stage_mb = {}, {}
        return record


class Refiner:
    """The drop-in for a training loop of your own: `pairs = step(emb1, emb2)`.

    Args:
        kg1, kg2: the graphs.
        seeds: (m, 2) known links; never among the pairs returned.
        k, csls: of the search.
        options: of `refine`.

    After a call, `candidates` and `refinement` hold what the pairs were selected from.
    """

    def __init__(self, kg1: Any, kg2: Any, seeds: Any, *, k: int = 10, csls: int = 10, **options: Any) -> None:
        self.kg1, self.kg2, self.seeds = kg1, kg2, seeds
        self.k, self.csls, self.options = k, csls, options
        self.candidates: TopK | None = None
        self.refinement: Refinement | None = None

    def __call__(self, emb1: Any, emb2: Any) -> Any:
        """(m, 2) pseudo mappings to train on beside the seeds, as the kind of array the embeddings are."""
        self.candidates = topk(emb1, emb2, self.k, self.csls)
        self.refinement = refine(self.candidates, self.kg1, self.kg2, seeds=self.seeds, **self.options)
        return self.refinement.pairs


def _check_graphs(pair: Pair) -> None:
    for name, graph in (("kg1", pair.kg1), ("kg2", pair.kg2)):
        if graph.num_triples == 0:
            raise ValueError(f"pair.{name} has no triples: there is nothing to learn from, and nothing to check by")


def _split(pair: Pair, validation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Seeds to train on, and seeds held out for calibration."""
    if len(pair.train) == 0:
        raise ValueError("pair.train is empty: self-training needs at least one seed")
    count = int(validation * len(pair.train))
    order = np.random.default_rng(seed).permutation(len(pair.train))
    held_out = np.concatenate([pair.train[np.sort(order[:count])], pair.valid])
    return pair.train[np.sort(order[count:])], held_out


def _usual_score(candidates: TopK, seeds: np.ndarray) -> float:
    """The median score of the pairs that are each other's nearest; seeds are nearer than pairs yet to be found."""
    scores = to_numpy(mutual_nearest(candidates, seeds=seeds)[1], "scores")
    return float(np.median(scores)) if len(scores) else 0.0


def _changed(pairs: np.ndarray, before: np.ndarray) -> float:
    """The share of pairs that are only in one of the two."""
    new, old = set(map(tuple, pairs.tolist())), set(map(tuple, before.tolist()))
    return len(new ^ old) / max(len(new | old), 1)
