"""`align`: from a pair of graphs to links with calibrated probabilities, for every source entity."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.options import names_nearest
from stea_fast.alignment.calibration import ProbabilityCalibrator, cross_fit
from stea_fast.alignment.joint_probabilities import joint_probabilities
from stea_fast.alignment.link_table import STATUSES, LinkTable, link_table
from stea_fast.alignment.relation_rows import relation_rows
from stea_fast.alignment.report import ReportContent, write_report
from stea_fast.data.pair import Pair
from stea_fast.evaluation.quality import QualityTable, quality_table
from stea_fast.formats.links import write_link_rows
from stea_fast.formats.relations import write_relation_rows
from stea_fast.selftraining.config import SelfTrainingConfig
from stea_fast.selftraining.history import Round, SelfTrainingResult
from stea_fast.selftraining.loop import SelfTraining
from stea_fast.selftraining.methods import Stea
from stea_fast.selftraining.presets import configured
from stea_fast.types import HasScores

CALIBRATIONS = ("auto", "holdout", "crossfit", "none")
FOLDS = 5
CROSSFIT_ENTITIES = 5_000  # of both graphs together, up to which cross-fitting is a matter of seconds


@dataclass(frozen=True, eq=False)
class Alignment:
    """What `align` returns.

    Attributes:
        pair: what was aligned.
        links: a decision for every source entity.
        calibrator: how probabilities were calibrated.
        result: the run behind it, with `history`, `refinement` and rankings.
        settings: the options, to run it again.
    """

    pair: Pair
    links: LinkTable
    calibrator: ProbabilityCalibrator
    result: SelfTrainingResult
    settings: dict[str, Any]

    @property
    def pairs(self) -> np.ndarray:
        """int64 [m, 2]: the links beyond the seeds, for `evaluate`."""
        chosen = self.links.status == STATUSES.index("link")
        return np.stack([self.links.sources[chosen], self.links.targets[chosen]], axis=1)

    @property
    def forward(self) -> HasScores:
        """The ranking of every source entity, for `evaluate`."""
        return self.result.forward

    @property
    def backward(self) -> HasScores | None:
        """The ranking of every target entity."""
        return self.result.backward

    def quality(self) -> QualityTable | None:
        """What the test links say of the result; None where no test link is known."""
        return quality_table(self.pair, self.result.candidates, self)

    def write_links(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:
        """Write the links to a file, whole or not at all; see `stea_fast.formats.links`."""
        rows = list(self.links.rows())
        write_link_rows(rows, path, format=format, name=self.pair.name, comment=self.calibrator.note)

    def write_relations(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:
        """Write the relation alignment to a file, whole or not at all; see `stea_fast.formats.relations`."""
        refinement = self.result.refinement
        rows = [] if refinement is None else relation_rows(self.pair.kg1, self.pair.kg2, refinement.relations)
        write_relation_rows(rows, path, format=format)

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML page about the result, whole or not at all."""
        result = self.result
        content = ReportContent(
            self.pair, self.links, self.calibrator, result.history, result.refinement, self.quality(), self.settings
        )
        write_report(content, path)


@names_nearest()
def align(
    pair: Pair,
    *,
    preset: str | SelfTrainingConfig = "fast",
    rounds: int | None = None,
    min_prob: float = 0.5,
    one_to_one: bool = False,
    calibration: str = "auto",
    seed: int | None = None,
    device: str = "cpu",
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callable[[Round], object]] = (),
    progress: bool | None = None,
) -> Alignment:
    """Align two graphs: self-train, calibrate, decide for every source entity.

    Args:
        pair: graphs and seeds, of `read_pair`, `make_pair` or `load_pair`.
        preset: "fast", "full", or a whole `sf.SelfTrainingConfig` whose method is "stea"; see `preset`.
        rounds: rounds of self-training; default: the preset's.
        min_prob: a source whose best candidate has a smaller calibrated probability has no counterpart.
        one_to_one: link no target twice: the matching with the largest sum of probabilities.
        calibration: "holdout" runs once more without a fifth of the seeds, "crossfit" five times without a fifth each,
            "none" not at all; "auto" cross-fits small pairs and holds out of others.
        seed: of the encoder and of the held-out seeds; default: the preset's.
        device: of the encoder: "cpu" or "cuda".
        checkpoint: a folder from which the last run continues after an interruption; see `SelfTraining`.
        callbacks: functions called with every `Round` of every run, the last of which counts.
        progress: True shows progress, False none, None (default) only on a terminal.

    Returns:
        An `Alignment`: links with probabilities, and ways to write them. The probability is that of an entity that
        has a counterpart: all held-out seeds have one.

    Raises:
        ValueError, TypeError: an argument is unusable; the message says what was expected.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> alignment = sf.align(pair, rounds=1, calibration="none")
        >>> len(alignment.links)
        200
    """
    min_prob = validate.number(min_prob, "min_prob", minimum=0.0, maximum=1.0)
    validate.choice(calibration, "calibration", CALIBRATIONS)
    config = configured(preset, rounds=rounds, seed=seed)
    if not isinstance(config.method, Stea):
        raise ValueError(f"align needs probabilities, which only sf.Stea gives; got {config.method!r}")
    if calibration == "auto":
        calibration = "crossfit" if pair.kg1.num_entities + pair.kg2.num_entities <= CROSSFIT_ENTITIES else "holdout"

    def run(part: Pair, folder: str | Path | None = None) -> SelfTrainingResult:
        return SelfTraining(
            part, preset=config, device=device, checkpoint=folder, callbacks=callbacks, progress=progress
        ).run()

    calibrator = ProbabilityCalibrator(note="not calibrated: calibration was not asked for")
    if calibration != "none":
        folds = FOLDS if calibration == "crossfit" else 1
        calibrator = cross_fit(pair, lambda part: joint_probabilities(run(part)), folds=folds, seed=config.seed)
    result = run(pair, checkpoint)
    settings = {
        "preset": preset if isinstance(preset, str) else "of its own", **config.to_dict(), "min_prob": min_prob,
        "one_to_one": one_to_one, "calibration": calibration, "device": device,
        "checkpoint": None if checkpoint is None else str(checkpoint),
    }  # fmt: skip
    links = link_table(pair, joint_probabilities(result), calibrator, min_prob=min_prob, one_to_one=one_to_one)
    return Alignment(pair, links, calibrator, result, settings)
