"""Quality during a run, where test links are known. It is written down, and read by nobody in the loop."""

from __future__ import annotations

from stea_fast.data.pair import Pair
from stea_fast.evaluation.metrics import PAIR_METRICS, RANKING_METRICS, Metrics, PairsOnly, evaluate
from stea_fast.types import Array, HasRankings


class Monitor:
    """Compares predictions with the test links of a pair."""

    def __init__(self, pair: Pair) -> None:
        self._test = pair.test

    def metrics(
        self, candidates: HasRankings | None, refinement: HasRankings | None, pairs: Array
    ) -> dict[str, Metrics]:
        """Of the encoder's ranking ("encoder"), of the refined one ("refined") and of the selected pairs ("pairs").

        Empty without test links; without "encoder" where there is none, and "refined" where nothing is refined.
        """
        if len(self._test) == 0:
            return {}
        results = {"encoder": candidates, "refined": refinement, "pairs": PairsOnly(pairs)}
        return {name: evaluate(result, self._test) for name, result in results.items() if result is not None}

    def measure(
        self, candidates: HasRankings | None, refinement: HasRankings | None, pairs: Array
    ) -> dict[str, dict[str, float]]:
        """The same as it is stored in histories: the quality of rankings as rankings, that of pairs as pairs."""
        return {
            name: metrics.to_dict(PAIR_METRICS if name == "pairs" else RANKING_METRICS)
            for name, metrics in self.metrics(candidates, refinement, pairs).items()
        }
