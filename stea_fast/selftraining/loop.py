"""The loop of the paper: train → top-K → check the guesses → select pseudo mappings → train again.

No test link is read here. What is known of them is measured by `monitor.py` and written into the history; nothing in
the loop reads the history.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy
from stea_fast.data.pair import Pair
from stea_fast.encoders import make
from stea_fast.encoders.base import Encoder
from stea_fast.encoders.checked import checked_embeddings, epochs_of, train
from stea_fast.evaluation.monitor import Monitor
from stea_fast.evaluation.oracle import oracle_relations
from stea_fast.refinement.api import Refinement, refine
from stea_fast.refinement.schedule import Schedule
from stea_fast.refinement.selection import mutual_nearest, one_to_one, similarity_threshold
from stea_fast.search.topk import topk
from stea_fast.selftraining.checkpoint import Checkpoint
from stea_fast.selftraining.history import Round, SelfTrainingResult, State
from stea_fast.types import TopK

logger = logging.getLogger("stea_fast")

METHODS = ("stea", "supervised", "sim_threshold", "one_to_one", "mutual_nearest")
STARTER = "propagation"
# An eighth of the original relation dimensions: an eighth of the time of the search, most of the quality.
STARTER_OPTIONS: dict[str, Any] = {"relation_dim": 64}
PRESETS: dict[str, dict[str, Any]] = {
    "fast": {"encoder": "propagation", "encoder_options": STARTER_OPTIONS, "rounds": 4, "start_rounds": 0},
    # A fifth of DBP15K's entities as negatives: a cheaper step, the same Hit@1 at 1 % seeds (bench/supervised.py).
    "full": {
        "encoder": "dual_amn", "encoder_options": {"num_negatives": 8192}, "rounds": 5, "start_rounds": 3,
        "first_epochs": 5,
    },
}  # fmt: skip


class SelfTraining:
    """Self-training of an encoder on a pair of graphs.

    Args:
        pair: graphs and seeds (`pair.train`).
        encoder: a name ("propagation", "dual_amn", "rrea", "alinet", "gcn_align") or an object with the members of
            `stea_fast.encoders.base.Encoder`.
        method: "stea" (check the guesses against their neighbours and keep the compatible ones), "supervised" (train
            on the seeds only), or one of the paper's baselines "sim_threshold", "one_to_one", "mutual_nearest".
        preset: "fast" (propagation in 1,024 dimensions, 4 rounds) or "full" (three rounds of propagation, then three of
            Dual-AMN with 8,192 negatives drawn for every step). Its options of the encoder hold wherever this
            encoder is used with the preset.
        rounds: how often pseudo mappings are selected and trained on.
        start_rounds: so many of the first rounds use propagation, which needs no training: from few seeds a trained
            encoder learns little, and from the pairs that these rounds find it learns at once. Only for "stea"; the
            last round is never one of them.
        first_epochs, round_epochs: epochs of the first and of every later training; default: the encoder's.
        k, csls: of the search.
        threshold: of the baselines "sim_threshold" and "one_to_one"; default: the median score of the pairs that
            are each other's nearest.
        validation: share of the seeds that no training sees; β is fitted to them. They count as seeds elsewhere.
        relations: "estimated" (from seeds and predictions), or "oracle": from all links, test links included. Only
            for comparison; `audit` fails on it.
        tolerance: stop when at most this share of the pairs has changed since the round before.
        schedule: of the joint refinement; see `Schedule`.
        refine_options: options of `refine` that replace those of the schedule. `{"paper": True}` for the paper's step;
            with it, or with `combine`, the schedule plays no part.
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
        start_rounds: int | None = None,
        first_epochs: int | None = None,
        round_epochs: int | None = None,
        k: int = 10,
        csls: int = 10,
        threshold: float | None = None,
        validation: float = 0.0,
        relations: str = "estimated",
        tolerance: float = 0.0,
        schedule: Schedule | None = None,
        refine_options: dict[str, Any] | None = None,
        encoder_options: dict[str, Any] | None = None,
        seed: int = 0,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        callbacks: Sequence[Callable[[Round], object]] = (),
        progress: bool | None = None,
    ) -> None:
        defaults = PRESETS[validate.choice(preset, "preset", tuple(PRESETS))]
        _check_graphs(pair)
        self.pair = pair
        self.method = validate.choice(method, "method", METHODS)
        self.rounds = validate.count(defaults["rounds"] if rounds is None else rounds, "rounds", maximum=1000)
        self.k = validate.count(k, "k", minimum=1)
        self.csls = validate.count(csls, "csls")
        self.threshold = None if threshold is None else validate.number(threshold, "threshold")
        self.relations = validate.choice(relations, "relations", ("estimated", "oracle"))
        self.tolerance = validate.number(tolerance, "tolerance", minimum=0.0, maximum=1.0)
        self.refine_options = dict(refine_options or {})
        free = self.method == "stea" and not {"paper", "combine"} & set(self.refine_options)
        self.schedule = (schedule or Schedule()) if free else None
        self.callbacks, self.progress = tuple(callbacks), progress
        self.seeds, self.held_out = _split(
            pair, validate.number(validation, "validation", minimum=0.0, maximum=0.9), seed
        )
        chosen = defaults["encoder"] if encoder is None else encoder
        if chosen == defaults["encoder"]:
            encoder_options = {**defaults["encoder_options"], **(encoder_options or {})}
        self.encoder = (
            make(chosen, pair.kg1, pair.kg2, seed=seed, device=device, **(encoder_options or {}))
            if isinstance(chosen, str)
            else chosen
        )
        asked = defaults["start_rounds"] if start_rounds is None else start_rounds
        asked = min(validate.count(asked, "start_rounds", maximum=1000), self.rounds)  # the last is the encoder's
        self.start_rounds = asked if self.method == "stea" else 0
        self.starter = make(STARTER, pair.kg1, pair.kg2, seed=seed, **STARTER_OPTIONS) if self.start_rounds else None
        if first_epochs is None and self.start_rounds:
            first_epochs = defaults.get("first_epochs")
        self.first_epochs = epochs_of(first_epochs, "first_epochs", self.encoder)
        self.round_epochs = epochs_of(round_epochs, "round_epochs", self.encoder)
        settings = {
            "encoder": chosen if isinstance(chosen, str) else type(chosen).__name__,
            "encoder_options": {name: repr(value) for name, value in (encoder_options or {}).items()},
            "refine_options": {name: repr(value) for name, value in self.refine_options.items()},
            "schedule": repr(self.schedule),
            **{
                name: getattr(self, name)
                for name in ("method", "rounds", "start_rounds", "k", "csls", "threshold", "relations", "tolerance")
            },
            "epochs": [self.first_epochs, self.round_epochs], "validation": validation, "seed": seed,
        }  # fmt: skip
        self.checkpoint = None if checkpoint is None else Checkpoint(Path(checkpoint), pair, settings)

    def run(self) -> SelfTrainingResult:
        """Train, and self-train until the rounds are over or the pairs settle."""
        state = State(Monitor(self.pair))
        if self.checkpoint is not None and self.checkpoint.exists():
            self._resume(state)
        else:
            self._train(state, self.seeds)
        while True:
            number = len(state.history)
            last = self.method == "supervised" or number >= self.rounds
            with state.stage("topk"):
                embeddings = checked_embeddings(self._encoder(number), self.pair.kg1, self.pair.kg2)
                self._save(state)  # not before: a state without usable embeddings must not replace the last good one
                beta = None if self.schedule is None or len(self.held_out) else self.schedule.beta
                candidates = topk(*embeddings, self.k, self.csls, beta=beta, progress=self.progress)
            with state.stage("select"):
                refinement, pairs, probs = self._select(candidates, state.pairs, number, last)
                if not last and number > self.start_rounds and _changed(pairs, state.pairs) <= self.tolerance:
                    last = True
                    refinement, pairs, probs = self._select(candidates, state.pairs, number, last)
            record = state.finish_round(candidates, refinement, pairs)
            logger.info("round %d: %d pairs, %s", record.number, record.num_pairs, record.metrics)
            for callback in self.callbacks:
                callback(record)
            state.pairs = pairs
            if last:
                return SelfTrainingResult(tuple(state.history), pairs, probs, candidates, refinement, embeddings)
            self._train(state, np.concatenate([self.seeds, pairs]))

    def _encoder(self, number: int) -> Encoder:
        """The encoder of a round."""
        return self.encoder if self.starter is None or number >= self.start_rounds else self.starter

    def _train(self, state: State, pairs: np.ndarray) -> None:
        """Train the encoder of the coming round."""
        number = len(state.history)
        epochs = self.first_epochs if number <= self.start_rounds else self.round_epochs
        with state.stage("train"):
            train(self._encoder(number), pairs, epochs, self.progress)

    def _save(self, state: State) -> None:
        if self.checkpoint is not None:
            measured = {"seconds": state.seconds, "stage_mb": state.stage_mb}
            self.checkpoint.save(self._encoder(len(state.history)).state(), state.pairs, state.history, measured)

    def _resume(self, state: State) -> None:
        assert self.checkpoint is not None
        saved = self.checkpoint.load()
        self._encoder(len(saved.history)).load_state(saved.encoder)
        state.pairs, state.seconds, state.stage_mb = saved.pairs, saved.measured["seconds"], saved.measured["stage_mb"]
        state.history = [Round(**record) for record in saved.history]
        logger.info("continuing after round %d of %s", len(state.history) - 1, self.checkpoint.folder)

    def _select(
        self, candidates: TopK, previous: np.ndarray, number: int, last: bool
    ) -> tuple[Refinement | None, np.ndarray, np.ndarray]:
        """The refinement, if there is one, and the selected pairs with their probability or score."""
        known = self.pair.train
        if self.method == "stea":
            relations = oracle_relations(self.pair) if self.relations == "oracle" else None
            scheduled = {} if self.schedule is None else self.schedule.options(number, last=last)
            options = {**scheduled, **self.refine_options}
            out = refine(
                candidates, self.pair.kg1, self.pair.kg2, seeds=known, holdout=self.held_out, relations=relations,
                **options,
            )  # fmt: skip
            pairs, probs = to_numpy(out.pairs, "pairs"), to_numpy(out.pair_probs, "pair_probs")
            if last and self.schedule is not None:
                kept = _supported(out, pairs, options["threshold"])
                pairs, probs = pairs[kept], probs[kept]
            return out, pairs, probs
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


def _supported(out: Refinement, pairs: np.ndarray, threshold: float | None) -> np.ndarray:
    """bool [m]: pairs that stand out by themselves. The others teach an encoder, but are not given out."""
    indices, support = to_numpy(out.forward.indices, "indices"), to_numpy(out.forward.support, "support")
    listed = indices[pairs[:, 0]] == pairs[:, 1, None]
    return np.where(listed, support[pairs[:, 0]], 0.0).max(axis=1) > (threshold or 0.0)


def _usual_score(candidates: TopK, seeds: np.ndarray) -> float:
    """The median score of the pairs that are each other's nearest; seeds are nearer than pairs yet to be found."""
    scores = to_numpy(mutual_nearest(candidates, seeds=seeds)[1], "scores")
    return float(np.median(scores)) if len(scores) else 0.0


def _changed(pairs: np.ndarray, before: np.ndarray) -> float:
    """The share of pairs that are only in one of the two."""
    new, old = set(map(tuple, pairs.tolist())), set(map(tuple, before.tolist()))
    return len(new ^ old) / max(len(new | old), 1)
