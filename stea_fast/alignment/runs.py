"""The runs of self-training behind an alignment: those that calibrate, and the last, which gives the links."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from stea_fast._executors.base import Executor
from stea_fast.clues.types import Clues
from stea_fast.data.pair import Pair
from stea_fast.selftraining.checkpoint import LOGGER
from stea_fast.selftraining.config import SelfTrainingConfig
from stea_fast.selftraining.history import Round, SelfTrainingResult
from stea_fast.selftraining.loop import SelfTraining

logger = logging.getLogger(LOGGER)


class Runs:
    """Makes the runs one after the other. Each has a folder for its checkpoint, so that none is made twice.

    Args:
        config, progress: of every run; see `align`.
        calibration: how the probabilities are calibrated; part of the names of the folders, since the runs of one way
            are not those of another.
        total: how many runs there will be.
        checkpoint: the folder of the last run, in which those of the others lie; None writes nothing.
        callbacks: functions that are called with every round, which says of which run it is.
        executor: where the heavy work is done.
    """

    def __init__(
        self,
        config: SelfTrainingConfig,
        *,
        progress: bool | None,
        calibration: str,
        total: int,
        checkpoint: str | Path | None,
        callbacks: Sequence[Callable[[Round], object]],
        executor: Executor | None,
    ) -> None:
        self.config, self.progress, self.executor = config, progress, executor
        self.calibration, self.total, self.callbacks = calibration, total, callbacks
        self.folder = None if checkpoint is None else Path(checkpoint)
        self.begun = self.rounds_made = 0

    def calibrating(self, part: Pair, clues: Clues | None) -> SelfTrainingResult:
        """The next run without some of the seeds or names."""
        folder = None if self.folder is None else self.folder / f"{self.calibration}-{self.begun + 1}"
        return self._run(part, clues, folder)

    def last(self, pair: Pair, clues: Clues | None) -> SelfTrainingResult:
        """The run with all that is known."""
        result = self._run(pair, clues, self.folder)
        if not self.rounds_made:
            logger.info("all runs are finished: only the decisions are made anew")
        return result

    def _run(self, pair: Pair, clues: Clues | None, folder: Path | None) -> SelfTrainingResult:
        self.begun += 1
        return SelfTraining(
            pair, preset=self.config, clues=clues, checkpoint=folder, callbacks=[self._tell], executor=self.executor,
            progress=self.progress,
        ).run()  # fmt: skip

    def _tell(self, done: Round) -> None:
        self.rounds_made += 1
        for callback in self.callbacks:
            callback(replace(done, run=self.begun, runs=self.total))
