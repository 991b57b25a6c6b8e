"""What the page is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stea_fast.alignment.calibration import ProbabilityCalibrator
from stea_fast.alignment.link_table import LinkTable
from stea_fast.data.pair import Pair
from stea_fast.evaluation.quality import QualityTable
from stea_fast.refinement.api import Refinement
from stea_fast.selftraining.history import Round


@dataclass(frozen=True, eq=False)
class ReportContent:
    """What the page is made of.

    Attributes:
        pair: what was aligned; its test links are not read here.
        links: a decision for every source entity.
        calibrator: how probabilities were calibrated.
        history: what happened in every round; may be empty.
        refinement: the final refinement, which explains links; None for methods that do not refine.
        quality: what test links say of the result; None where none is known.
        settings: the options, to run it again.
    """

    pair: Pair
    links: LinkTable
    calibrator: ProbabilityCalibrator
    history: Sequence[Round]
    refinement: Refinement | None
    quality: QualityTable | None
    settings: Mapping[str, object]
