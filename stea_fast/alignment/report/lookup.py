"""Every entity in one page: tables of JSON, compressed, that the page unpacks when it needs them.

The first table has the names of all entities and the decisions; the page unpacks it once it has been drawn. What is
behind the decisions is in blocks, each unpacked when one of its entities is opened. So the page opens as quickly with
hundreds of thousands of entities as with ten. Entities are numbered in the order of their names.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

from stea_fast._util.sparse import concatenated_runs, offsets_of_counts
from stea_fast.alignment.joint_probabilities import joint_probabilities
from stea_fast.alignment.link_table import MIN_UNCERTAIN, STATUSES
from stea_fast.alignment.report.content import ReportContent
from stea_fast.alignment.report.names import MOST_LETTERS, NamesInOrder, packed_names
from stea_fast.alignment.report.rejected import REASONS, RejectedCandidates, best_sources, rejected_candidates
from stea_fast.refinement.facts import FactTable

SOURCES_PER_BLOCK = 2048
# Of the packed tables; with it a page stays well below 20 MB, unless there are millions of entities. Names are
# shortened until they take at most their share, then facts and candidates are left out until the rest fits.
MOST_CHARACTERS, SHARE_OF_NAMES = 15_000_000, 0.6
LETTERS = (MOST_LETTERS, 100, 50, 25)
DEPTHS = ((5, 4), (3, 2), (1, 1), (0, 0))  # facts behind a decision, rejected candidates of a source
LETTERS_OF_VALUES = 200  # that are shown of a value
PARTS = 1_000_000  # of 1, in which probabilities and scores are counted: whole numbers are short


def data_elements(report: ReportContent) -> tuple[str, tuple[int, int]]:
    """The tables as elements that a browser does not draw, and how many facts and candidates a source has at most."""
    tables = _Tables(report)
    for most in LETTERS:
        first = packed(tables.first(most))
        if len(first) <= SHARE_OF_NAMES * MOST_CHARACTERS:
            break
    for depth in DEPTHS:
        blocks = [packed(block) for block in tables.blocks(*depth)]
        if len(first) + sum(map(len, blocks)) <= MOST_CHARACTERS:
            break
    elements = [_element("table", first), *(_element(f"block-{i}", block) for i, block in enumerate(blocks))]
    return "\n".join(elements), depth


def packed(value: object) -> str:
    """JSON, compressed, in base64: letters that mean nothing to a parser of HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()


def _element(name: str, text: str) -> str:
    return f'<script type="text/plain" id="{name}">{text}</script>'


class _Tables:
    """The tables as plain data."""

    def __init__(self, report: ReportContent) -> None:
        self.report, self.links = report, report.links
        self.joint = joint_probabilities(report.result)
        self.names1 = NamesInOrder.of(report.links.label1, report.pair.kg1.num_entities)
        self.names2 = NamesInOrder.of(report.links.label2, report.pair.kg2.num_entities)
        refinement = report.result.refinement
        self.graphs = (report.pair.kg1, report.pair.kg2) if refinement is None else refinement.graphs

    def first(self, most_letters: int) -> dict[str, Any]:
        """All names, what was decided for every source, and the likeliest source of every target."""
        links, order = self.links, self.names1.order
        min_prob = float(str(self.report.settings["min_prob"]))
        return {
            "statuses": STATUSES,
            "reasons": REASONS,
            "min_prob": min_prob,
            "min_uncertain": min(MIN_UNCERTAIN, min_prob),
            "sources_per_block": SOURCES_PER_BLOCK,
            "parts": PARTS,
            "entities": [packed_names(side.names, most_letters) for side in (self.names1, self.names2)],
            "relations": [
                packed_names([kg.relation_label(r) for r in range(kg.num_relations)], most_letters)
                for kg in self.graphs
            ],
            "status": _digits(links.status[order]),
            "target": self.names2.place_or_none(links.considered[order]).tolist(),
            "probability": _in_parts(np.nan_to_num(links.considered_probs[order])),
            "best_source": self.names1.place_or_none(best_sources(self.joint)[self.names2.order]).tolist(),
        }

    def blocks(self, most_facts: int, most_rejected: int) -> list[dict[str, Any]]:
        """Facts and rejected candidates of the sources, block by block."""
        one_to_one = bool(self.report.settings.get("one_to_one"))
        rejected = rejected_candidates(self.links, self.joint, one_to_one=one_to_one, most=most_rejected)
        facts = self._facts(most_facts)
        order = self.names1.order
        return [
            {"rejected": self._rejected_block(rejected, sources), "facts": self._fact_block(facts, sources)}
            for sources in np.split(order, range(SOURCES_PER_BLOCK, len(order), SOURCES_PER_BLOCK))
        ]

    def _facts(self, most: int) -> FactTable | None:
        """Behind what was considered for each source; None where nothing was refined."""
        refinement, links = self.report.result.refinement, self.links
        if refinement is None:
            return None
        judged = links.considered >= 0
        found = refinement.facts(np.stack([links.sources, links.considered], axis=1)[judged], most=most)
        counts, totals = np.zeros(len(links), dtype=np.int64), np.zeros(len(links))
        counts[judged], totals[judged] = np.diff(found.indptr), found.totals
        columns = (found.relation, found.neighbor, found.relation2, found.neighbor2, found.weight, found.evidence)
        return FactTable(offsets_of_counts(counts), totals, *columns)

    def _rejected_block(self, rejected: RejectedCandidates, sources: np.ndarray) -> dict[str, Any]:
        counts, rows = _entries(rejected.indptr, sources)
        return {
            "count": counts.tolist(),
            "target": self.names2.place[rejected.target[rows]].tolist(),
            "score": _in_parts(rejected.score[rows].round(3)),
            "reason": _digits(rejected.reason[rows]),
        }

    def _values(self, value: int, value2: int) -> list[str]:
        """Two values in quotation marks, those that are long by their beginnings."""
        texts = (kg.entity_label(node) for kg, node in zip(self.graphs, (value, value2), strict=True))
        return [text if len(text) <= LETTERS_OF_VALUES else f"{text[:LETTERS_OF_VALUES]}…" for text in texts]

    def _fact_block(self, facts: FactTable | None, sources: np.ndarray) -> dict[str, Any] | None:
        """Of the second neighbour 0 where it was considered for the first, which it mostly was; else its place + 1.

        Of values the first neighbour is -1, -2, …: the place of both in "values", counted from -1.
        """
        if facts is None:
            return None
        counts, rows = _entries(facts.indptr, sources)
        neighbor, neighbor2 = facts.neighbor[rows], facts.neighbor2[rows]
        is_value = neighbor >= len(self.names1.order)
        values = [self._values(*pair) for pair in np.stack([neighbor, neighbor2], axis=1)[is_value].tolist()]
        neighbor, neighbor2 = np.where(is_value, 0, neighbor), np.where(is_value, 0, neighbor2)
        expected = self.links.considered[neighbor] == neighbor2
        share = facts.evidence[rows] / np.repeat(facts.totals[sources], counts)
        return {
            "count": counts.tolist(),
            "relation": facts.relation[rows].tolist(),
            "neighbor": np.where(is_value, -np.cumsum(is_value), self.names1.place[neighbor]).tolist(),
            "relation2": facts.relation2[rows].tolist(),
            "neighbor2": np.where(is_value | expected, 0, self.names2.place[neighbor2] + 1).tolist(),
            "values": values,
            "share": _in_parts(share.round(2)),
        }


def _entries(indptr: np.ndarray, sources: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many entries each of the sources has, and where they are."""
    counts = indptr[sources + 1] - indptr[sources]
    return counts, concatenated_runs(indptr[sources], counts)


def _in_parts(shares: np.ndarray) -> list[int]:
    parts: list[int] = np.round(shares * PARTS).astype(np.int64).tolist()
    return parts


def _digits(codes: np.ndarray) -> str:
    """Codes below ten, as one string."""
    return "".join(map(str, codes.tolist()))
