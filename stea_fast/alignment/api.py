"""`align`: from a pair of graphs to links with calibrated probabilities, for every source entity."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast._executors.base import Executor
from stea_fast._executors.named import executor_of
from stea_fast._util import validate
from stea_fast._util.options import names_nearest
from stea_fast.alignment.calibration import (
    ProbabilityCalibrator,
    by_prior,
    cross_fit,
    number_of_parts,
    with_anchors,
)
from stea_fast.alignment.joint_probabilities import joint_probabilities
from stea_fast.alignment.link_features import describe_links
from stea_fast.alignment.link_table import STATUSES, LinkTable, chosen_targets, link_table, threshold_for_precision
from stea_fast.alignment.relation_rows import relation_rows
from stea_fast.alignment.report import ReportContent, write_report
from stea_fast.alignment.runs import Runs
from stea_fast.clues.api import find_clues
from stea_fast.clues.types import Clues
from stea_fast.data.pair import Pair
from stea_fast.evaluation.quality import QualityTable, quality_table
from stea_fast.formats.links import write_link_rows
from stea_fast.formats.relations import write_relation_rows
from stea_fast.selftraining.config import SearchConfig, SelfTrainingConfig
from stea_fast.selftraining.history import Round, SelfTrainingResult
from stea_fast.selftraining.methods import Stea, Structural
from stea_fast.selftraining.presets import configured, usual_preset
from stea_fast.types import HasScores

logger = logging.getLogger("stea_fast")
FOLDS = {"holdout": 1, "crossfit": 5, "none": 0}  # runs without some of the seeds
CALIBRATIONS = ("auto", *FOLDS)
MIN_PROB = 0.5
CROSSFIT_ENTITIES = 5_000  # of both graphs together, up to which cross-fitting is a matter of seconds


@dataclass(frozen=True, eq=False)
class Alignment:
    """The result of `align`: a decision for every source entity, and ways to write it to files.

    Attributes:
        pair: The graphs and seeds that were aligned.
        links: The decision for every source entity.
        calibrator: How the probabilities were calibrated, and how well.
        result: The run of self-training behind it, with its history, refinement and rankings.
        settings: The options as plain data, to run it again.
        expected_precision: The expected share of right links among those beyond the seeds, and the two ends of an
            interval that holds it with 95 %.
        clues: What names said; None where they were not used.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> alignment = sf.align(pair, rounds=1, calibration="none")
        >>> alignment.write_links("links.tsv")
        >>> open("links.tsv").readline().split()
        ['source', 'target', 'probability', 'rank', 'agreement', 'status', 'calibration']
    """

    pair: Pair
    links: LinkTable
    calibrator: ProbabilityCalibrator
    result: SelfTrainingResult
    settings: dict[str, Any]
    expected_precision: tuple[float, float, float]
    clues: Clues | None = None

    @property
    def pairs(self) -> np.ndarray:
        """The links beyond the seeds, int64 [m, 2] of (source, target), for `evaluate`."""
        chosen = self.links.status == STATUSES.index("link")
        return np.stack([self.links.sources[chosen], self.links.targets[chosen]], axis=1)

    @property
    def forward(self) -> HasScores:
        """The ranking of every source entity, for `evaluate`."""
        return self.result.forward

    @property
    def backward(self) -> HasScores | None:
        """The ranking of every target entity, for `evaluate`."""
        return self.result.backward

    def quality(self) -> QualityTable | None:
        """Judge the result by the test links.

        Returns:
            A table of ranking quality, precision, recall and F1 that prints itself; None where no test link is known.
        """
        return quality_table(self.pair, self.result.candidates, self)

    def write_links(
        self, path: str | os.PathLike[str], *, format: str | None = None, spreadsheet_safe: bool = False
    ) -> None:
        """Write a row for every source entity to a file, whole or not at all.

        Args:
            path: The file to write; one that is there is replaced when the new one is complete.
            format: "tsv", "csv", "jsonl", "parquet", "arrow", "nt" or "sssom". The default, None, goes by the suffix of
                the file's name; `.gz` and `.zst` compress.
            spreadsheet_safe: Whether names in TSV and CSV that a spreadsheet would take for a formula, such as
                `=1+1`, are spelt as `urn:stea-fast:n…`; they are read back as what they were.

        Raises:
            ValueError: The suffix or the format is unknown.
            OSError: The file cannot be written; what was there before is untouched.
        """
        rows = list(self.links.rows())
        write_link_rows(
            rows, path, format=format, name=self.pair.name, comment=self.calibrator.note,
            spreadsheet_safe=spreadsheet_safe,
        )  # fmt: skip

    def write_relations(
        self, path: str | os.PathLike[str], *, format: str | None = None, spreadsheet_safe: bool = False
    ) -> None:
        """Write the relation alignment to a file, whole or not at all.

        Args:
            path: The file to write; one that is there is replaced when the new one is complete.
            format: "tsv", "csv", "jsonl", "parquet", "arrow" or "nt". The default, None, goes by the suffix of the
                file's name.
            spreadsheet_safe: Whether names in TSV and CSV that a spreadsheet would take for a formula, such as
                `=1+1`, are spelt as `urn:stea-fast:n…`; they are read back as what they were.

        Raises:
            ValueError: The suffix or the format is unknown.
            OSError: The file cannot be written; what was there before is untouched.
        """
        refinement = self.result.refinement
        rows = [] if refinement is None else relation_rows(self.pair.kg1, self.pair.kg2, refinement.relations)
        write_relation_rows(rows, path, format=format, spreadsheet_safe=spreadsheet_safe)

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page about the result, whole or not at all.

        Args:
            path: The file to write; one that is there is replaced when the new one is complete.

        Raises:
            OSError: The file cannot be written; what was there before is untouched.
        """
        content = ReportContent(
            self.pair, self.links, self.calibrator, self.result, self.quality(), self.expected_precision, self.settings
        )
        write_report(content, path)


def _parts_of_the_preset() -> dict[str, str]:
    """How parts of a configuration are given to `align`, which has only a preset."""
    parts = (field.name for field in fields(SelfTrainingConfig))
    return {
        **{name: f"preset=dataclasses.replace(sf.preset('fast'), {name}=...)" for name in parts},
        "device": "preset=sf.preset('full', device=...)",
    }


@names_nearest(_parts_of_the_preset)
def align(
    pair: Pair,
    *,
    preset: str | SelfTrainingConfig | None = None,
    search: SearchConfig | None = None,
    rounds: int | None = None,
    min_prob: float = MIN_PROB,
    precision: float | None = None,
    one_to_one: bool = False,
    calibration: str = "auto",
    seed: int | None = None,
    clues: Clues | str | None = "auto",
    memory: str | float | None = None,
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callable[[Round], object]] = (),
    executor: str | Executor | None = None,
    progress: bool | None = None,
) -> Alignment:
    """Align two graphs: self-train, calibrate the probabilities, and decide for every source entity.

    Args:
        pair: The graphs and seeds, from `read_pair`, `make_pair` or `load_pair`. Where names connect the graphs there
            need not be any seeds.
        preset: "structural", "fast", "large", "full", or a whole `sf.SelfTrainingConfig` whose method is an `sf.Stea`
            or `sf.Structural`; see `preset`. The default, None, takes "structural" where there are no seeds, "large"
            where a graph has more than 60,000 entities, and "fast" otherwise.
        search: How candidates are searched; the default, None, takes the preset's.
        rounds: The number of rounds of self-training; the default, None, takes the preset's.
        min_prob: The least probability of a link. A source whose best candidate is less likely is "uncertain", or has
            no counterpart.
        precision: The share of the links that is to be right, instead of `min_prob`: as many links as possible are
            given out at this expected precision. The default, None, leaves it to `min_prob`.
        one_to_one: Whether to link no target twice, by the matching with the largest sum of probabilities.
        calibration: "holdout" runs once more without a fifth of the seeds, and without up to half where seeds are few;
            "crossfit" runs five times without a fifth each, "none" not at all; "auto" cross-fits small pairs and holds
            out seeds of larger ones.
        seed: The seed of the encoder's random numbers and of the held-out seeds; the default, None, takes the preset's.
        clues: What names say, from `find_clues`, used beside the seeds. "auto" looks for names where there are no
            seeds; None uses graphs and seeds alone.
        memory: The memory that the process may take, such as "8GB". A run that is estimated to need more keeps
            propagation's embeddings in temporary files, or is refused before it begins; the default, None, takes what
            the machine has left.
        checkpoint: A folder where every run leaves its state and its result; see `SelfTraining`. After an interruption
            the same call continues there, and if all runs are finished, only the decisions are made anew: `min_prob`,
            `precision` and `one_to_one` may be others. The default, None, writes nothing.
        callbacks: Functions that are called with every `Round` of every run, the last of which gives the result. A
            round says of which run it is; those that a checkpoint had are not told again.
        executor: Where sweeps, propagation, searches by cells and candidates by name run, as for `refine`; the default,
            None, takes the threads of this process.
        progress: True shows progress, False shows none; the default, None, shows it on a terminal only.

    Returns:
        An `Alignment`: links with probabilities, and ways to write them.

    Raises:
        ValueError: An argument has an unusable value; the message says what was expected.
        NoStartError: There are no seeds, and nothing connects the graphs; the message says what was looked at.
        TypeError: An argument is of the wrong type or does not exist; the message names the nearest one.
        CheckpointError: The checkpoint in the folder belongs to another run, or cannot be read or written.
        MemoryError: The run is estimated to need more memory than there is, or than `memory` allows.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> alignment = sf.align(pair, rounds=1, calibration="none")
        >>> len(alignment.links)
        200
    """
    min_prob = validate.number(min_prob, "min_prob", minimum=0.0, maximum=1.0)
    if precision is not None:
        validate.number(precision, "precision", minimum=0.0, maximum=1.0)
    if preset is None:
        preset = usual_preset(pair, has_seeds=len(pair.train) > 0)
    config = configured(preset, search=search, rounds=rounds, seed=seed, memory=memory)
    if not isinstance(config.method, (Stea, Structural)):
        raise ValueError(f"align needs probabilities, which only sf.Stea and sf.Structural give; got {config.method!r}")
    workers = executor_of(executor)
    known = _known(pair, clues, workers, progress)
    calibration = _resolved(calibration, pair)
    runs = Runs(
        config, progress=progress, calibration=calibration,
        total=number_of_parts(pair, FOLDS[calibration], known) + 1, checkpoint=checkpoint, callbacks=callbacks,
        executor=workers,
    )  # fmt: skip
    if calibration == "none":
        calibrator = by_prior("calibration was not asked for")
    else:
        calibrator = cross_fit(pair, runs.calibrating, clues=known, folds=FOLDS[calibration], seed=config.seed)
    result = runs.last(pair, known)
    settings = {
        "preset": preset if isinstance(preset, str) else "of its own", **config.to_dict(), "min_prob": min_prob,
        "one_to_one": one_to_one, "calibration": calibration,
        "checkpoint": None if checkpoint is None else str(checkpoint),
        **({} if known is None else {"clues": list(known.found)}),
    }  # fmt: skip
    return decided(
        pair, result, calibrator, settings, clues=known, min_prob=min_prob, precision=precision, one_to_one=one_to_one
    )


def _known(pair: Pair, clues: Clues | str | None, executor: Executor | None, progress: bool | None) -> Clues | None:
    """The clues that were given, or that are looked for where there is nothing else to start from."""
    if not isinstance(clues, str):
        return clues
    validate.choice(clues, "clues", ("auto",))
    if len(pair.train):
        return None
    found = find_clues(pair, executor=executor, progress=progress)
    for sentence in found.found:
        logger.info("%s", sentence)
    found.check_start(pair.train)
    return found


def _resolved(calibration: str, pair: Pair) -> str:
    """The calibration that "auto" stands for."""
    if validate.choice(calibration, "calibration", CALIBRATIONS) != "auto":
        return calibration
    return "crossfit" if pair.kg1.num_entities + pair.kg2.num_entities <= CROSSFIT_ENTITIES else "holdout"


def decided(
    pair: Pair,
    result: SelfTrainingResult,
    calibrator: ProbabilityCalibrator,
    settings: dict[str, Any],
    *,
    clues: Clues | None = None,
    min_prob: float = MIN_PROB,
    precision: float | None = None,
    one_to_one: bool = False,
) -> Alignment:
    """The alignment that a finished run, calibrated, comes to; see `align` for the options."""
    joint = joint_probabilities(result)
    targets = chosen_targets(pair, joint, one_to_one=one_to_one)
    described = describe_links(with_anchors(pair, clues), joint, result, result.candidates, targets)
    probs = calibrator(described)
    if precision is not None:
        min_prob = threshold_for_precision(probs, precision)
    links = link_table(pair, joint, targets, probs, min_prob=min_prob, calibration=calibrator.basis)
    if calibrator.is_thin:
        logger.warning(
            "the probabilities have a thin basis (%s): a prior that was fitted to other graphs decides, so check some "
            "links by hand", calibrator.basis,
        )  # fmt: skip
    expected = calibrator.precision(described, links.status == STATUSES.index("link"))
    return Alignment(pair, links, calibrator, result, {**settings, "min_prob": min_prob}, expected, clues)
