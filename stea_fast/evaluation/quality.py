"""What test links say of an alignment, for the command line and the report. Test links are passed on to `evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stea_fast.data.pair import Pair
from stea_fast.evaluation.metrics import PAIR_METRICS, RANKING_METRICS, Metrics, evaluate
from stea_fast.types import HasRankings


@dataclass(frozen=True)
class QualityTable:
    """What test links say of an alignment.

    Attributes:
        rankings: metrics by what was ranked among what; those of the encoder first.
        links: metrics of the links that were output.
    """

    rankings: dict[str, Metrics]
    links: Metrics

    def to_dict(self) -> dict[str, Any]:
        """For JSON: of rankings their quality, of links theirs."""
        return {
            "rankings": [{"what": what, **metrics.to_dict(RANKING_METRICS)} for what, metrics in self.rankings.items()],
            **self.links.to_dict((*PAIR_METRICS, "num_links")),
        }

    def __str__(self) -> str:
        lines = [f"{'':32}{'Hit@1':>8}{'Hit@10':>8}{'MRR':>8}"]
        lines += [f"{what:32}{m.hit1:8.3f}{m.hit10:8.3f}{m.mrr:8.3f}" for what, m in self.rankings.items()]
        links = self.links
        lines.append(f"{'links':32}precision {links.precision:.3f}  recall {links.recall:.3f}  F1 {links.f1:.3f}")
        return "\n".join(lines)


def quality_table(pair: Pair, candidates: HasRankings, result: HasRankings) -> QualityTable | None:
    """Judge what the encoder guessed (`candidates`) and what came out (`result`); None where no test link is known."""
    test = pair.test
    if len(test) == 0:
        return None
    closed = evaluate(result, test)
    rankings = {
        "encoder": evaluate(candidates, test),
        "refined, among test targets": closed,
        "refined, among all targets": evaluate(result, test, "all"),
    }
    return QualityTable(rankings, closed)
