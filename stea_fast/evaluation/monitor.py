"""Quality during a run, where test links are known. It is written down, and read by nobody in the loop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from stea_fast.data.pair import Pair
from stea_fast.evaluation.metrics import Metrics, evaluate
from stea_fast.types import Candidates


class Monitor:
    """Compares predictions with the test links of a pair."""

    def __init__(self, pair: Pair) -> None:
        self._test = pair.test

    def measure(self, candidates: Candidates, refinement: Any, pairs: np.ndarray) -> dict[str, dict[str, float]]:
        """Metrics of the encoder's and the refined ranking, and of the selected pairs; empty without test links."""
        if len(self._test) == 0:
            return {}
        found = {"encoder": _ranking(evaluate(candidates, self._test))}
        if refinement is not None:
            found["refined"] = _ranking(evaluate(refinement, self._test))
        judged = evaluate(SimpleNamespace(pairs=pairs), self._test)
        found["pairs"] = {"precision": judged.precision, "recall": judged.recall, "f1": judged.f1}
        return found


def _ranking(metrics: Metrics) -> dict[str, float]:
    return {"hit1": metrics.hit1, "hit10": metrics.hit10, "mrr": metrics.mrr}
