"""What the page is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stea_fast.alignment.calibration import ProbabilityCalibrator
from stea_fast.alignment.link_table import LinkTable
from stea_fast.data.pair import Pair
from stea_fast.evaluation.quality import QualityTable
from stea_fast.selftraining.history import SelfTrainingResult


@dataclass(frozen=True, eq=False)
class ReportContent:
    """What the page is made of.

    Attributes:
        pair: what was aligned; its test links are not read here.
        links: a decision for every source entity.
        calibrator: how probabilities were calibrated.
        result: the run behind it, with its rounds, which may be none, and its refinement, which explains links.
        quality: what test links say of the result; None where none is known.
        expected_precision: of the links, with the two ends of an interval that holds it with 95 %.
        settings: the options, to run it again; `min_prob` and `one_to_one` among them.
    """

    pair: Pair
    links: LinkTable
    calibrator: ProbabilityCalibrator
    result: SelfTrainingResult
    quality: QualityTable | None
    expected_precision: tuple[float, float, float]
    settings: Mapping[str, object]
