"""The C++ backend: `stea_fast._core`. Contracts as in `reference.py`."""

from __future__ import annotations

import os
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

import stea_fast._core as _core
from stea_fast._backends import native_pairs
from stea_fast._backends.counts import RelationCounts, scale_bits
from stea_fast._backends.witnesses import by_neighbour
from stea_fast.data.graph import KG
from stea_fast.types import Beliefs, RelationAlignment

Arrays = tuple[np.ndarray, ...]
pairs = native_pairs
_GRAPHS: WeakKeyDictionary[KG, _core.Graph] = WeakKeyDictionary()


def tier() -> str:
    """The instruction-set tier in use: `STEA_TIER`, or the best one this CPU runs."""
    usable = _core.tiers()
    wanted = os.environ.get("STEA_TIER")
    if wanted and wanted not in usable:
        raise ValueError(f"STEA_TIER={wanted!r} cannot run here; usable tiers: {', '.join(usable)}")
    return wanted or usable[-1]


def int8_tier() -> str | None:
    """The best tier whose 8-bit products are faster than float32; None if there is none, or `STEA_TIER` is given."""
    fast = _core.int8_tiers(True)
    return None if os.environ.get("STEA_TIER") or not fast else fast[-1]


def describe() -> str:
    """What `python -m stea_fast info` says of this backend."""
    return f"tier {tier()} of {', '.join(_core.tiers())}"


def _graph(kg: KG) -> _core.Graph:
    """The graph as the kernels take it: its arrays are looked through once, before the first call."""
    checked = _GRAPHS.get(kg)
    if checked is None:
        checked = _GRAPHS[kg] = _core.Graph(kg.indptr, kg.edges)
    return checked


def _beliefs(beliefs: Beliefs) -> Arrays:
    return beliefs.indptr, beliefs.targets, beliefs.weights


def strengths(relations: RelationAlignment, kg1: KG, kg2: KG) -> _core.RelationTable:
    """The relation table; one serves both directions."""

    def sparse(matrix: object) -> Arrays:
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data  # type: ignore[attr-defined]

    return _core.RelationTable(
        sparse(relations.sub12),
        sparse(relations.sub21),
        kg1.inverse_functionality,
        kg2.inverse_functionality,
        relations.default,
    )


def evidence(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, strengths: _core.RelationTable,
    *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> np.ndarray:  # fmt: skip
    """L(e, e') for every row e and candidate e'."""
    return _core.evidence(
        _graph(source), _graph(target), candidates, _beliefs(beliefs), strengths, forward, *rows, n_threads, tier(),
        by_neighbour(witnesses), False,
    )[0]  # fmt: skip


def evidence_and_witnesses(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, strengths: _core.RelationTable,
    *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """L(e, e') and the number of neighbour pairs that add to it; for statements two passes, for neighbours one."""
    given = _graph(source), _graph(target), candidates, _beliefs(beliefs), strengths, forward, *rows, n_threads, tier()
    strongest, count = _core.evidence(*given, True, True)
    return strongest if by_neighbour(witnesses) else _core.evidence(*given, False, False)[0], count


def evidence_of_pairs(
    source: KG, target: KG, indptr: np.ndarray, columns: np.ndarray, beliefs: Beliefs, strengths: _core.RelationTable,
    *, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """L(e, e') of sparse pairs, and the number of neighbour pairs that add to it; as many passes as above."""
    sides = _graph(source), _graph(target)
    given = *sides, indptr, columns, _beliefs(beliefs), strengths, True, *rows, n_threads, tier()
    strongest, count = _core.evidence_of_pairs(*given, True, True)
    return strongest if by_neighbour(witnesses) else _core.evidence_of_pairs(*given, False, False)[0], count


def blanket(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, belief_evidence: np.ndarray,
    strengths: _core.RelationTable, *, forward: bool, rows: tuple[int, int], n_threads: int = 1,
    witnesses: str = "statement",
) -> np.ndarray:  # fmt: skip
    """The neighbours' factors of the Markov blanket."""
    return _core.blanket(
        _graph(source), _graph(target), candidates, _beliefs(beliefs), belief_evidence, strengths, forward, *rows,
        n_threads, tier(), by_neighbour(witnesses),
    )  # fmt: skip


def proposals(
    source: KG, target: KG, beliefs: Beliefs, strengths: _core.RelationTable, open_rows: np.ndarray,
    open_targets: np.ndarray, *, k: int, budget: int, forward: bool, rows: tuple[int, int], n_threads: int = 1,
    witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The k targets of every row for which its neighbours' beliefs speak most."""
    masks = open_rows.view(np.uint8), open_targets.view(np.uint8)
    return _core.proposals(
        _graph(source), _graph(target), _beliefs(beliefs), strengths, *masks, k, budget, forward, *rows, n_threads,
        tier(), by_neighbour(witnesses),
    )  # fmt: skip


def changes_around(
    source: KG, shares: np.ndarray, changes: np.ndarray, moved: np.ndarray, weights: np.ndarray,
    *, rows: tuple[int, int], n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """How much of what the neighbours of every row say has changed."""
    return _core.changes_around(_graph(source), shares, changes, moved, weights, *rows, n_threads)


def relation_counts(
    source: KG, target: KG, beliefs: Beliefs, *, rows: tuple[int, int], n_threads: int = 1
) -> RelationCounts:
    """num(r, r') and den(r) over the triples whose head is in the range of rows."""
    bits = scale_bits(source)
    keys, num, den = _core.relation_counts(
        _graph(source), _graph(target), _beliefs(beliefs), source.num_relations, target.num_relations, bits, *rows,
        n_threads, tier(),
    )  # fmt: skip
    return RelationCounts.observed(keys, num, den, bits)


def containment(counts: RelationCounts, num_target_relations: int, smoothing: float, prior: float) -> csr_array:
    """[2R, 2R'] float32: the smoothed probability of every observed pair, completed by the inverses."""
    indptr, columns, probs = _core.containment(
        counts.keys, counts.num, counts.den, counts.scale_bits, num_target_relations, smoothing, prior
    )
    return csr_array((probs, columns, indptr), shape=(2 * len(counts.den), 2 * num_target_relations))
