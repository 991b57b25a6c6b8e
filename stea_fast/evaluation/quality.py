"""What test links say of an alignment, for the command line and the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast.data.pair import Pair
from stea_fast.data.sealed import SealedLinks, reveal
from stea_fast.evaluation.metrics import PAIR_METRICS, RANKING_METRICS, Metrics, PairsOnly, evaluate
from stea_fast.types import HasRankings


@dataclass(frozen=True)
class QualityTable:
    """What test links say of an alignment.

    Attributes:
        rankings: metrics by what was ranked among what; those of the encoder first.
        links: metrics of the links that were output; a link of a source outside the test links counts as wrong.
        judged: metrics of the links whose source is in the test links. Of the others nobody knows whether they are
            right, so this precision, and not that of `links`, is what an expected precision is to be compared with.
    """

    rankings: dict[str, Metrics]
    links: Metrics
    judged: Metrics

    def to_dict(self) -> dict[str, Any]:
        """For JSON: of rankings their quality, of links theirs."""
        return {
            "rankings": [{"what": what, **metrics.to_dict(RANKING_METRICS)} for what, metrics in self.rankings.items()],
            **self.links.to_dict((*PAIR_METRICS, "num_links")),
            "judged": self.judged.to_dict((*PAIR_METRICS, "num_pairs")),
        }

    def __str__(self) -> str:
        lines = [f"{'':37}{'Hit@1':>8}{'Hit@10':>8}{'MRR':>8}"]
        lines += [f"{what:37}{m.hit1:8.3f}{m.hit10:8.3f}{m.mrr:8.3f}" for what, m in self.rankings.items()]
        for what, m in (("links", self.links), ("links of sources with a known truth", self.judged)):
            lines.append(f"{what:37}precision {m.precision:.3f}  recall {m.recall:.3f}  F1 {m.f1:.3f}")
        return "\n".join(lines)


def quality_table(pair: Pair, candidates: HasRankings | None, result: HasRankings) -> QualityTable | None:
    """Judge what the encoder, if any, guessed (`candidates`) and what came out; None where no test link is known."""
    test = pair.test
    if len(test) == 0:
        return None
    closed = evaluate(result, test)
    rankings = {
        **({} if candidates is None else {"encoder": evaluate(candidates, test)}),
        "refined, among test targets": closed,
        "refined, among all targets": evaluate(result, test, "all"),
    }
    return QualityTable(rankings, closed, evaluate(_of_known_sources(result, test), test))


def _of_known_sources(result: HasRankings, test: SealedLinks) -> PairsOnly:
    """The links of a result whose source is in the test links."""
    pairs = to_numpy(getattr(result, "pairs", np.zeros((0, 2), dtype=np.int64)), "pairs")
    return PairsOnly(pairs[np.isin(pairs[:, 0], reveal(test)[:, 0])])
