"""The loop of the paper: train → top-K → check the guesses → select pseudo mappings → train again.

No test link is read here. What is known of them is measured by `evaluation.monitor` and written into the history;
nothing in the loop reads the history.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast._executors.base import Executor
from stea_fast._executors.named import executor_of
from stea_fast._util.arrays import like, to_numpy
from stea_fast._util.mapped import Empty, in_a_file, in_memory
from stea_fast._util.options import names_nearest
from stea_fast.clues.name_scores import with_names
from stea_fast.clues.types import Clues, NoStartError
from stea_fast.data.pair import Pair
from stea_fast.encoders import make
from stea_fast.encoders.base import Encoder
from stea_fast.encoders.checked import checked_embeddings, computed_by, epochs_of, keep_embeddings, train
from stea_fast.evaluation.monitor import Monitor
from stea_fast.evaluation.oracle import oracle_relations
from stea_fast.refinement.api import Refinement, refined
from stea_fast.refinement.problem import Execution, problem_of
from stea_fast.refinement.selection import select
from stea_fast.refinement.structural import beside_another_view, refine_by_structure
from stea_fast.refinement.views import agreed_pairs, mean_of_views
from stea_fast.selftraining.checkpoint import LOGGER as CHECKPOINT_LOGGER
from stea_fast.selftraining.checkpoint import Checkpoint
from stea_fast.selftraining.config import (
    EncoderConfig,
    SearchConfig,
    SelfTrainingConfig,
    settings_of,
    where_options_live,
)
from stea_fast.selftraining.finished import pack_result, unpack_result
from stea_fast.selftraining.history import Round, SelfTrainingResult, State
from stea_fast.selftraining.known import check_graphs, check_start, split_links, usable_values
from stea_fast.selftraining.methods import SelfTrainingMethod, Stea, Structural, Supervised
from stea_fast.selftraining.pairs import changed_share, given_out
from stea_fast.selftraining.planning import LOGGER as PLAN_LOGGER
from stea_fast.selftraining.planning import Plan, is_long, plan_run
from stea_fast.selftraining.presets import PRESETS, STARTER, configured, usual_preset
from stea_fast.selftraining.searching import searched
from stea_fast.types import Array, TopK

logger = logging.getLogger("stea_fast")
checkpoint_logger = logging.getLogger(CHECKPOINT_LOGGER)

KNOWN_SWEEPS = 10  # of the structural view, once the round before has found pairs


class SelfTraining:
    """The loop of the paper: train an encoder, search, check the guesses, and train again on those that survive.

    Args:
        pair: The two graphs and the seeds, which are `pair.train`.
        encoder: A name ("propagation", "dual_amn", "rrea", "alinet" or "gcn_align"), an `sf.EncoderConfig`, or an
            object of your own with the members of `stea_fast.encoders.base.Encoder`. The default, None, takes the
            preset's.
        preset: "structural", "fast", "large", "full", or a whole `sf.SelfTrainingConfig`; see `preset`. The default,
            None, takes "fast", and "large" where a graph has more than 60,000 entities.
        method: How pseudo mappings are found: "stea" (check the guesses against their neighbours), "supervised" (train
            on the seeds only), "structural" (no encoder at all), one of the paper's baselines "sim_threshold",
            "one_to_one" and "mutual_nearest", or an object of their classes, such as `sf.Stea(...)`. The default, None,
            takes the preset's.
        search: How candidates are searched; the default, None, takes the preset's.
        rounds: How many times pseudo mappings are selected and trained on; the default, None, takes the preset's.
        seed: The seed of all random numbers; the default, None, takes the preset's.
        clues: What names and values say, from `find_clues`: pairs by equal names count as seeds, so that no seed is
            needed, the similarity of names is added to that of the encoder, and equal values are evidence as neighbours
            are. The default, None, uses graphs and seeds alone.
        device: The torch device of the encoder, such as "cpu" or "cuda"; the default, None, takes the preset's.
        memory: The memory that the process may take, such as "8GB". A run that is estimated to need more keeps the
            embeddings of propagation in temporary files, to the same bits; where that does not suffice, it is refused
            before it begins. The default, None, takes what the machine has left.
        checkpoint: A folder. After every training the state is written there, and in the end the result. A run that
            finds a state of the same data and configuration continues from it, to the same bits on the same machine
            with as many threads; of a finished run it returns the result at once. The default, None, writes nothing.
        callbacks: Functions that are called with every `Round` when it is finished.
        executor: Where sweeps, propagation and searches by cells run, as for `refine`; the default, None: this process.
        progress: True shows the progress of training, embeddings, search and sweeps, whoever computes them, False shows
            none; the default, None, shows it on a terminal only.

    Raises:
        ValueError: An argument has an unusable value: there are no seeds, or a graph has no triples.
        TypeError: An argument is of the wrong type or does not exist; the message names the nearest one.
        ModuleNotFoundError: The encoder needs torch, or checkpoints need safetensors; the message says how to install
            it.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> result = sf.SelfTraining(pair, rounds=1).run()
        >>> [done.number for done in result.history]
        [0, 1]
    """

    @names_nearest(where_options_live)
    def __init__(
        self,
        pair: Pair,
        encoder: str | EncoderConfig | Encoder | None = None,
        *,
        preset: str | SelfTrainingConfig | None = None,
        method: str | SelfTrainingMethod | None = None,
        search: SearchConfig | None = None,
        rounds: int | None = None,
        seed: int | None = None,
        clues: Clues | None = None,
        device: str | None = None,
        memory: str | float | None = None,
        checkpoint: str | Path | None = None,
        callbacks: Sequence[Callable[[Round], object]] = (),
        executor: str | Executor | None = None,
        progress: bool | None = None,
    ) -> None:
        structure = check_graphs(pair, clues)
        self.pair, self.callbacks, self.progress = pair, tuple(callbacks), progress
        if preset is None:
            preset = usual_preset(pair, has_seeds=True)
        self.config = configured(
            preset, encoder=encoder, method=method, search=search, rounds=rounds, seed=seed, device=device,
            memory=memory,
        )  # fmt: skip
        if not structure:  # then there is nothing that an encoder could learn
            self.config = replace(PRESETS["structural"], search=self.config.search, seed=self.config.seed)
        self.method = self.config.method
        device = self.config.encoder.device
        self.execution = Execution(executor=executor_of(executor), device=device, progress=progress)
        self.empty: Empty = in_memory
        self.names = None if clues is None else clues.names
        self.values = usable_values(pair, clues, self.method)
        anchors = np.zeros((0, 2), dtype=np.int64) if clues is None else clues.anchors_beside(pair.train)
        self.anchors = anchors
        self.certain = np.concatenate([pair.train, anchors])
        check_start(self.certain, clues, self.method)
        self.seeds, self.held_out = split_links(pair, anchors, self.config.validation, self.config.seed)
        own = encoder is not None and not isinstance(encoder, (str, EncoderConfig))
        self.encoder: Encoder = encoder if own else self._made(self.config.encoder)  # type: ignore[assignment]
        # The last round is the encoder's.
        self.start_rounds = min(self.method.start_rounds, self.config.rounds) if isinstance(self.method, Stea) else 0
        starter = replace(STARTER, device=self.config.encoder.device)
        self.starter = self._made(starter) if self.start_rounds else None
        first_epochs = self.config.encoder.first_epochs
        if first_epochs is None and self.start_rounds and isinstance(self.method, Stea):
            first_epochs = self.method.first_epochs
        self.first_epochs = epochs_of(first_epochs, "first_epochs", self.encoder)
        self.round_epochs = epochs_of(self.config.encoder.round_epochs, "round_epochs", self.encoder)
        self.checkpoint = None
        if checkpoint is not None:
            settings = {**settings_of(self.config), "epochs": [self.first_epochs, self.round_epochs]}
            if clues is not None:
                settings["clues"] = clues.fingerprint
            self.checkpoint = Checkpoint(Path(checkpoint), pair, settings)

    def _made(self, encoder: EncoderConfig) -> Encoder:
        options = {"seed": self.config.seed, "device": encoder.device, **encoder.options}
        made = make(encoder.name, self.pair.kg1, self.pair.kg2, **options)
        return computed_by(self.execution.executor, made, self.progress)

    def plan(self) -> Plan:
        """Estimate what the run will take, by a short calibration on this machine.

        Returns:
            A `Plan`: the stages with estimated time and memory.
        """
        return plan_run(self.pair, self.config)

    def run(self) -> SelfTrainingResult:
        """Train, and self-train until the rounds are over or the pairs settle.

        Returns:
            A `SelfTrainingResult` with the final prediction, the selected pairs and the history of the rounds.

        Raises:
            CheckpointError: The checkpoint in the folder belongs to another run, or cannot be read or written, or
                another run is using the folder.
            MemoryError: The run is estimated to need more memory than there is, or than `memory` allows.
            OSError: There is no room for temporary files of embeddings or pairs; the message says how much is needed.
        """
        if self.config.memory is not None or is_long(self.pair):
            plan = self.plan()
            logging.getLogger(PLAN_LOGGER).info("%s", plan)
            plan.check_memory()
            if plan.embeddings_in_files:
                self.empty = in_a_file
                keep_embeddings(self.empty, self.encoder, self.starter)
            self.execution = self.execution._replace(pairs_in_files=plan.pairs_in_files > 0)
        with nullcontext() if self.checkpoint is None else self.checkpoint.locked():
            return self._run()

    def _run(self) -> SelfTrainingResult:
        state = State(Monitor(self.pair))
        if self.checkpoint is None or not self.checkpoint.exists():
            if (self.names is not None or self.values is not None) and isinstance(self.method, Stea):
                state.pairs = self._first_pairs(self.method)
            if not isinstance(self.method, Structural):
                self._train(state, np.concatenate([self.seeds, state.pairs]))
        elif (finished := self._resume(state)) is not None:
            return finished
        while True:
            number = len(state.history)
            last = isinstance(self.method, (Supervised, Structural)) or number >= self.config.rounds
            embeddings, candidates = self._guesses(state, number)
            with state.stage("select"):
                refinement, pairs, probs = self._select(candidates, state.pairs, number, last)
                settled = not last and number > self.start_rounds
                if settled and changed_share(pairs, state.pairs) <= self.config.tolerance:
                    last = True
                    refinement, pairs, probs = self._select(candidates, state.pairs, number, last)
            record = state.finish_round(candidates, refinement, pairs)
            logger.info("round %d: %d pairs, %s", record.number, record.num_pairs, record.metrics)
            for callback in self.callbacks:
                callback(record)
            state.pairs = pairs
            if last:
                result = SelfTrainingResult(tuple(state.history), pairs, probs, candidates, refinement, embeddings)
                if not self._reads_test_links:  # a checkpoint does not know of which test links its result would be
                    self._save(state, result)
                return result
            del embeddings, candidates, refinement  # before the next round makes its own: they may be gigabytes
            self._train(state, np.concatenate([self.seeds, pairs]))

    @property
    def _reads_test_links(self) -> bool:
        return isinstance(self.method, Stea) and self.method.relations == "oracle"

    def _encoder(self, number: int) -> Encoder:
        """The encoder of a round."""
        return self.encoder if self.starter is None or number >= self.start_rounds else self.starter

    def _train(self, state: State, pairs: np.ndarray) -> None:
        """Train the encoder of the coming round."""
        number = len(state.history)
        epochs = self.first_epochs if number <= self.start_rounds else self.round_epochs
        with state.stage("train"):
            train(self._encoder(number), pairs, epochs, self.progress)

    def _guesses(self, state: State, number: int) -> tuple[Any, TopK | None]:
        """The embeddings of a round, and the candidates among them; neither where there is no encoder."""
        if isinstance(self.method, Structural):
            return None, None
        with state.stage("topk"):
            embeddings = checked_embeddings(self._encoder(number), self.pair.kg1, self.pair.kg2)
            self._save(state)  # not before: a state without usable embeddings must not replace the last good one
            candidates, state.search = self._search(embeddings, state.pairs if number else state.pairs[:0])
            return embeddings, candidates

    def _search(self, embeddings: tuple[Array, Array], previous: np.ndarray) -> tuple[TopK, dict[str, Any]]:
        # With held-out seeds β is fitted to them, after the search.
        beta = self.method.plan.beta if isinstance(self.method, Stea) and not len(self.held_out) else None
        settled = None
        # What names add to a score must be counted among all pairs, so with names everything is searched.
        if isinstance(self.method, Stea) and self.method.two_views and len(previous) and self.names is None:
            # Two views agree on these pairs: hardly anything of a new search would change them.
            settled = np.concatenate([self.seeds, previous])
        where = self.execution.executor, self.progress
        return searched(embeddings, self.config.search, *where, settled=settled, beta=beta, empty=self.empty)

    def _save(self, state: State, result: SelfTrainingResult | None = None) -> None:
        if self.checkpoint is not None:
            measured = {"seconds": state.seconds, "stage_mb": state.stage_mb}
            encoder = self._encoder(len(state.history)).state()
            held = None if result is None else pack_result(result)
            self.checkpoint.save(encoder, state.pairs, state.history, measured, held)

    def _resume(self, state: State) -> SelfTrainingResult | None:
        """Continue from the checkpoint; of a finished run its result."""
        assert self.checkpoint is not None
        saved = self.checkpoint.load()
        encoder = self._encoder(len(saved.history))
        encoder.load_state(saved.encoder)
        state.pairs, state.seconds, state.stage_mb = saved.pairs, saved.measured["seconds"], saved.measured["stage_mb"]
        state.history = [Round(**record) for record in saved.history]
        if saved.result is not None:
            checkpoint_logger.info("the run in %s is finished: nothing of it is repeated", self.checkpoint.folder)
            return unpack_result(saved.result, state.history, encoder, self.pair, self.values)
        checkpoint_logger.info("continuing in round %d from %s", len(state.history), self.checkpoint.folder)
        return None

    def _select(
        self, candidates: TopK | None, previous: np.ndarray, number: int, last: bool
    ) -> tuple[Refinement | None, np.ndarray, np.ndarray]:
        """The refinement, if there is one, and the selected pairs with their probability or score."""
        if isinstance(self.method, Structural):
            return self._spread(self.method)
        assert candidates is not None, "an encoder has candidates"
        if isinstance(self.method, Stea):
            return self._refined(self.method, candidates, previous, number, last)
        return None, *self.method.select_pairs(candidates, previous, self.certain)

    def _refined(
        self, method: Stea, candidates: TopK, previous: np.ndarray, number: int, last: bool
    ) -> tuple[Refinement, np.ndarray, np.ndarray]:
        threshold = method.plan.threshold(number, last=last) if method.threshold is None else method.threshold
        if self.names is not None:
            candidates = with_names(candidates, self.names, self.config.search.k)
        relations = oracle_relations(self.pair) if self._reads_test_links else None
        graphs = self.pair.kg1, self.pair.kg2
        problem = problem_of(candidates, *graphs, self.certain, self.held_out, relations, self.execution)
        step = method.plan.method(number, last=last)
        out = refined(replace(problem, values=self.values), step, method.select, threshold)
        structural = self._structural_view(method, previous) if method.two_views else None
        if structural is not None and last:
            out = mean_of_views(out, structural, seeds=self.certain, strategy=method.select, threshold=threshold)
        pairs, probs = to_numpy(out.pairs, "pairs"), to_numpy(out.pair_probs, "pair_probs")
        if structural is not None and not last:
            pairs, probs = agreed_pairs(pairs, probs, structural, previous)
        return out, *(given_out(out, pairs, probs, threshold, self.anchors) if last else (pairs, probs))

    def _spread(self, method: Structural) -> tuple[Refinement, np.ndarray, np.ndarray]:
        """What seeds and anchors come to by structure alone, and the pairs that are likely enough."""
        out = refine_by_structure(
            self.pair.kg1, self.pair.kg2, self.certain, k=self.config.search.k, method=method.refinement,
            names=self.names, values=self.values, execution=self.execution,
        )  # fmt: skip
        seeds = like(out.forward.indices, self.certain)
        pairs, probs = select(method.select, out.forward, out.backward, method.threshold, seeds)
        selected = to_numpy(pairs, "pairs"), to_numpy(probs, "probs")
        return out, *given_out(out, *selected, method.threshold, self.anchors)

    def _first_pairs(self, method: Stea) -> np.ndarray:
        """Pairs to train on beside the seeds before there is an encoder: what names, values and structure agree on."""
        found = self._structural_view(method, np.zeros((0, 2), dtype=np.int64))
        threshold = method.plan.threshold(0, last=False) if method.threshold is None else method.threshold
        sure = to_numpy(found.pair_probs, "pair_probs") > (threshold or 0.0)
        if not sure.any() and not len(self.certain):
            raise NoStartError("there is nothing to start from: the values that are alike lead to no pair of entities")
        return to_numpy(found.pairs, "pairs")[sure]

    def _structural_view(self, method: Stea, known: np.ndarray) -> Refinement:
        """What seeds and the pairs of the round before come to without the encoder."""
        graphs, seeds = (self.pair.kg1, self.pair.kg2), np.concatenate([self.certain, known])
        joint = method.structure or beside_another_view(*graphs)
        # Pairs that are spread over the graphs already have a short way to go.
        joint = replace(joint, sweeps=min(joint.sweeps, KNOWN_SWEEPS)) if len(known) else joint
        return refine_by_structure(
            *graphs, seeds, k=self.config.search.k, method=joint, names=self.names, values=self.values,
            execution=self.execution,
        )  # fmt: skip
