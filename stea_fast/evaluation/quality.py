"""What test links say of an alignment, for the command line and the report. Test links are passed on to `evaluate`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stea_fast.data.pair import Pair
from stea_fast.evaluation.metrics import evaluate


@dataclass(frozen=True)
class RankingQuality:
    """Of one ranking: what was ranked among what."""

    what: str
    hit1: float
    hit10: float
    mrr: float


@dataclass(frozen=True)
class Quality:
    """Of the rankings, and of the links that were output."""

    rankings: tuple[RankingQuality, ...]
    precision: float
    recall: float
    f1: float
    num_links: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{'':32}{'Hit@1':>8}{'Hit@10':>8}{'MRR':>8}"]
        lines += [f"{each.what:32}{each.hit1:8.3f}{each.hit10:8.3f}{each.mrr:8.3f}" for each in self.rankings]
        lines.append(f"{'links':32}precision {self.precision:.3f}  recall {self.recall:.3f}  F1 {self.f1:.3f}")
        return "\n".join(lines)


def quality(pair: Pair, candidates: Any, result: Any) -> Quality | None:
    """Judge what the encoder guessed (`candidates`) and what came out (`result`); None where no test link is known."""
    test = pair.test
    if len(test) == 0:
        return None
    judged = {
        "encoder": evaluate(candidates, test),
        "refined, among test targets": evaluate(result, test),
        "refined, among all targets": evaluate(result, test, "all"),
    }
    links = judged["refined, among test targets"]
    rankings = tuple(RankingQuality(what, m.hit1, m.hit10, m.mrr) for what, m in judged.items())
    return Quality(rankings, links.precision, links.recall, links.f1, links.num_links)
