"""Finished cells and published figures, looked up by what they are of."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import stea_fast as sf
from bench.paper import store
from bench.paper.cells import OURS, OWN_ENCODER
from bench.paper.compute import unpacked_hits

PUBLISHED = store.RESULTS / "published.csv"
METRICS = ("hit1", "hit10", "mrr")


class Kind(NamedTuple):
    """Cells that differ only in their split."""

    dataset: str
    fraction: float
    method: str
    encoder: str = "dual_amn"
    variant: str = ""


def of_method(dataset: str, fraction: float, method: str, encoder: str | None = None, variant: str = "") -> Kind:
    """The kind of a method, with its own encoder where none is named."""
    return Kind(dataset, fraction, method, encoder or OWN_ENCODER.get(method, "dual_amn"), variant)


class Results:
    """The finished cells by kind, each with its splits in order; of a cell that was run again the last line."""

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        last = {(Kind(*(record[name] for name in Kind._fields)), record["split"]): record for record in records}
        self.kinds: dict[Kind, list[dict[str, Any]]] = {}
        for (kind, _), record in sorted(last.items(), key=lambda item: item[0][1]):
            self.kinds.setdefault(kind, []).append(record)

    def __len__(self) -> int:
        return sum(map(len, self.kinds.values()))

    def __getitem__(self, kind: Kind) -> list[dict[str, Any]]:
        return self.kinds.get(kind, [])

    def values(self, kind: Kind, metric: str, *, pool: str = "closed", ranking: str | None = None) -> list[float]:
        """A metric of every split; `ranking` None is the one that the method is judged by."""
        name = ranking or judged_by(kind.method)
        return [record["metrics"][name][pool][metric] for record in self[kind] if name in record["metrics"]]

    def mean(self, kind: Kind, metric: str) -> float | None:
        """Over the splits; None if there is none."""
        values = self.values(kind, metric)
        return float(np.mean(values)) if values else None

    def of_pairs(self, kind: Kind, metric: str) -> list[float]:
        """Precision, recall or F1 of the links output, of every split."""
        return [record["pairs"][metric] for record in self[kind] if record["pairs"]]

    def compare(self, one: Kind, other: Kind) -> sf.PairedTest | None:
        """Paired two-sided t-test of Hit@1 over the entities of all splits that both have."""
        records = [{record["split"]: record for record in self[kind]} for kind in (one, other)]
        splits = sorted(records[0].keys() & records[1].keys())
        if not splits:
            return None
        hits = [np.concatenate([_hits(by_split[split]) for split in splits]) for by_split in records]
        links = np.repeat(np.arange(len(hits[0]))[:, None], 2, axis=1)
        return sf.paired_t_test(_as_ranking(hits[0]), _as_ranking(hits[1]), links)


def judged_by(method: str) -> str:
    """The paper ranks by the similarity of the trained encoder; our presets by the refined probability."""
    return "refined" if method in OURS else "encoder"


def _hits(record: dict[str, Any]) -> np.ndarray:
    return unpacked_hits(record["hits"][judged_by(record["method"])], record["sizes"]["test"])


def _as_ranking(hits: np.ndarray) -> sf.Candidates:
    """A ranking in which row i has candidate i where it was a hit, and none where it was not."""
    found = np.where(hits, np.arange(len(hits)), -1)[:, None]
    return sf.Candidates(sf.Ranking(found, np.ones(found.shape, dtype=np.float32)))


@cache
def published() -> dict[tuple[str, Kind], dict[str, float]]:
    """The paper's figures by table and kind."""
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (
            row["table"],
            Kind(row["dataset"], int(row["seed_percent"]) / 100, row["method"], row["encoder"], row["variant"]),
        ): {metric: float(row[metric]) for metric in METRICS if row[metric]}
        for row in rows
    }
