"""The definition of correct: short, obvious NumPy. Never chosen automatically.

Every backend offers the functions of this module with these arguments:

    source, target   the graph of the rows and the graph of the candidates
    candidates       int32 [rows, k], -1 = none
    beliefs          w(n, n') for every entity n of the source graph
    strengths        what `strengths()` returned for (relations, kg1, kg2)
    forward          True if source is kg1, False if it is kg2
    rows             (begin, end), the range of source rows to compute
    n_threads        ignored here
    witnesses        "statement": every two statements that agree are an independent witness; "neighbour": every pair
                     of neighbours (n, n') is one, and of all statements about it only the strongest counts
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stea_fast._backends import reference_pairs
from stea_fast._backends.counts import RelationCounts, scale_bits
from stea_fast._backends.counts import containment as containment
from stea_fast._backends.factors import ENOUGH_FACTS, ENOUGH_SHARE, minus_log
from stea_fast._backends.witnesses import by_neighbour
from stea_fast._util.sparse import padded_rows
from stea_fast.data.graph import KG
from stea_fast.types import Beliefs, RelationAlignment

pairs = reference_pairs


class Strengths(NamedTuple):
    """Dense float64 [2R1, 2R2]: P(r' ⊆ r)·fun⁻¹(r) and P(r ⊆ r')·fun⁻¹(r')."""

    from1: np.ndarray
    from2: np.ndarray


def describe() -> str:
    """What `python -m stea_fast info` says of this backend."""
    return f"NumPy {np.__version__}; for tests, never automatic"


def strengths(relations: RelationAlignment, kg1: KG, kg2: KG) -> Strengths:
    """Probability times inverse functionality, rounded to float32 like in every backend."""
    stored = _pattern(relations)
    sub12 = np.where(stored, relations.sub12.toarray(), np.float32(relations.default))
    sub21 = np.where(stored, relations.sub21.toarray().T, np.float32(relations.default))
    from1 = sub21 * kg1.inverse_functionality[:, None]
    from2 = sub12 * kg2.inverse_functionality[None, :]
    return Strengths(from1.astype(np.float64), from2.astype(np.float64))


def _pattern(relations: RelationAlignment) -> np.ndarray:
    stored = np.zeros(relations.sub12.shape, dtype=bool)
    stored[relations.sub12.nonzero()] = True
    stored.T[relations.sub21.nonzero()] = True
    return stored


def evidence(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, strengths: Strengths,
    *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> np.ndarray:  # fmt: skip
    """L(e, e') for every row e and candidate e': float32 [rows, k]."""
    return evidence_and_witnesses(
        source, target, candidates, beliefs, strengths, forward=forward, rows=rows, witnesses=witnesses
    )[0]


def evidence_and_witnesses(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, strengths: Strengths,
    *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """L(e, e'), float32 [rows, k], and the number of neighbour pairs (n, n') that add to it, int32 [rows, k].

    With either kind of witnesses it is neighbour pairs that are counted: those whose strongest two statements give
    evidence above 0 in float32.
    """
    out = np.zeros(candidates.shape, dtype=np.float32)
    count = np.zeros(candidates.shape, dtype=np.int32)
    for i, e in enumerate(range(*rows)):
        for c, e2 in enumerate(candidates[i]):
            if e2 >= 0:
                shares = pair_evidence(source, target, e, e2, beliefs, strengths, forward=forward)
                strongest = strongest_statements(shares, source.edges_of(e)[:, 0], target.edges_of(e2)[:, 0])
                out[i, c] = (strongest if by_neighbour(witnesses) else shares).sum()
                count[i, c] = (strongest.astype(np.float32) > 0).sum()
    return out, count


def strongest_statements(shares: np.ndarray, neighbors: np.ndarray, neighbors2: np.ndarray) -> np.ndarray:
    """The largest share of each pair of neighbours, from those of all pairs of edges: [distinct n, distinct n']."""
    if shares.size == 0:
        return np.zeros((0, 0))
    first, first2 = (np.unique(entities, return_index=True)[1] for entities in (neighbors, neighbors2))
    return np.maximum.reduceat(np.maximum.reduceat(shares, first, axis=0), first2, axis=1)


def pair_evidence(
    source: KG, target: KG, e: int, e2: int, beliefs: Beliefs, strengths: Strengths, *, forward: bool
) -> np.ndarray:
    """The share of every (edge of e, edge of e2) in L(e, e2): float64 [degree, degree']."""
    edges, edges2 = source.edges_of(e), target.edges_of(e2)
    weights = beliefs.between(edges[:, 0], edges2[:, 0])
    r, r2 = edges[:, 1][:, None], edges2[:, 1][None, :]
    pair = (r, r2) if forward else (r2, r)
    return minus_log(strengths.from1[pair] * weights) + minus_log(strengths.from2[pair] * weights)


def evidence_of_pairs(
    source: KG, target: KG, indptr: np.ndarray, columns: np.ndarray, beliefs: Beliefs, strengths: Strengths,
    *, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """float32 and int32 [pairs]: L(e, e') of sparse pairs, and the number of neighbour pairs that add to it.

    `indptr` says where the pairs of every row of the range begin.
    """
    candidates, places = padded_rows(indptr, columns, -1)
    found, number = evidence_and_witnesses(
        source, target, candidates, beliefs, strengths, forward=True, rows=rows, n_threads=n_threads,
        witnesses=witnesses,
    )  # fmt: skip
    return found[places], number[places]


def blanket(
    source: KG, target: KG, candidates: np.ndarray, beliefs: Beliefs, belief_evidence: np.ndarray,
    strengths: Strengths, *, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> np.ndarray:  # fmt: skip
    """Σ over neighbours n ≠ e and n' of w(n, n')·g(n, n' | y_e = e'): float32 [rows, k].

    `belief_evidence` is the evidence of every belief with the same kind of witnesses.
    """
    out = np.zeros(candidates.shape, dtype=np.float32)
    for i, e in enumerate(range(*rows)):
        neighbors = [n for n in np.unique(source.edges_of(e)[:, 0]) if n != e]
        for c, e2 in enumerate(candidates[i]):
            if e2 < 0:
                continue
            certain = _with_row(beliefs, e, e2)
            for n in neighbors:
                for n2, weight in zip(*beliefs.row(n), strict=True):
                    shares = pair_evidence(source, target, n, n2, certain, strengths, forward=forward)
                    if by_neighbour(witnesses):
                        shares = strongest_statements(shares, source.edges_of(n)[:, 0], target.edges_of(n2)[:, 0])
                    out[i, c] += weight * (1 - np.exp(-shares.sum()))
    return out


def _with_row(beliefs: Beliefs, entity: int, target: int) -> Beliefs:
    """The beliefs with the row of one entity replaced by certainty about one target."""
    begin, end = beliefs.indptr[entity], beliefs.indptr[entity + 1]
    indptr = beliefs.indptr.copy()
    indptr[entity + 1 :] += 1 - (end - begin)
    targets = np.concatenate([beliefs.targets[:begin], [target], beliefs.targets[end:]])
    weights = np.concatenate([beliefs.weights[:begin], [1.0], beliefs.weights[end:]])
    return Beliefs(indptr, targets, weights)


def proposals(
    source: KG, target: KG, beliefs: Beliefs, strengths: Strengths, open_rows: np.ndarray, open_targets: np.ndarray,
    *, k: int, budget: int, forward: bool, rows: tuple[int, int], n_threads: int = 1, witnesses: str = "statement",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The k targets of every row for which its neighbours' beliefs speak most: int32 and float32 [rows, k].

    Facts are followed in the order of the bit length of the number of target edges behind them, then of their
    position, until the next one would exceed the budget, or enough have been followed (`ENOUGH_FACTS`) over enough
    edges (`budget // ENOUGH_SHARE`). Targets that are not open are never proposed, and rows that are not open get no
    proposals. Ties go to the lower id.
    """
    indices = np.full((rows[1] - rows[0], k), -1, dtype=np.int32)
    values = np.zeros(indices.shape, dtype=np.float32)
    degrees = np.diff(target.indptr)
    for i, e in enumerate(range(*rows)):
        if not open_rows[e]:
            continue
        edges = source.edges_of(e).tolist()
        fan_out = [int(degrees[beliefs.row(n)[0]].sum()) for n, _ in edges]
        order = sorted((j for j in range(len(edges)) if fan_out[j]), key=lambda j: fan_out[j].bit_length())
        walked = np.cumsum([0] + [fan_out[j] for j in order])
        enough = (walked[:-1] >= budget // ENOUGH_SHARE) & (np.arange(len(order)) >= ENOUGH_FACTS)
        within = (walked[1:] <= budget) & ~enough
        facts = [edges[j] for j, ok in zip(order, within, strict=True) if ok]
        found: dict[int, float] = {}
        shares = _reached(target, facts, beliefs, strengths, forward=forward)
        if by_neighbour(witnesses):  # sorted by its share, the strongest of a key is what the dictionary keeps
            shares = list(dict(sorted(shares, key=lambda item: item[1])).items())
        for (_, _, e2), share in shares:
            if open_targets[e2] and share > 0:
                found[e2] = found.get(e2, 0.0) + share
        best = sorted(found, key=lambda e2: (-np.float32(found[e2]), e2))[:k]
        indices[i, : len(best)] = best
        values[i, : len(best)] = [found[e2] for e2 in best]
    return indices, values


def _reached(
    target: KG, facts: list[list[int]], beliefs: Beliefs, strengths: Strengths, *, forward: bool
) -> list[tuple[tuple[int, int, int], float]]:
    """(n, n', e') and the share, for every two statements that lead from the row over n and n' to the target e'."""
    shares = []
    for n, r in facts:
        for n2, weight in zip(*(part.tolist() for part in beliefs.row(n)), strict=True):
            for e2, back in target.edges_of(n2).tolist():
                r2 = (back + target.num_relations) % (2 * target.num_relations)
                pair = (r, r2) if forward else (r2, r)
                share = minus_log(strengths.from1[pair] * weight) + minus_log(strengths.from2[pair] * weight)
                shares.append(((n, n2, e2), float(share)))
    return shares


def changes_around(
    source: KG, shares: np.ndarray, changes: np.ndarray, moved: np.ndarray, weights: np.ndarray,
    *, rows: tuple[int, int], n_threads: int = 1,
) -> np.ndarray:  # fmt: skip
    """float32 [rows]: Σ over N(e) of share(r)·(moved(n) + change(r)·weight(n)), added up in the order of the edges.

    Shares and changes are float32 [2R], of relations; `moved` and `weights` float32 [entities].
    """
    begin, end = rows
    places = slice(source.indptr[begin], source.indptr[end])
    neighbours, relations = source.edges[places].T
    changed = moved[neighbours].astype(np.float64) + changes[relations].astype(np.float64) * weights[neighbours]
    owners = np.repeat(np.arange(end - begin), np.diff(source.indptr[begin : end + 1]))
    return np.bincount(owners, shares[relations] * changed, minlength=end - begin).astype(np.float32)


def relation_counts(
    source: KG, target: KG, beliefs: Beliefs, *, rows: tuple[int, int], n_threads: int = 1
) -> RelationCounts:
    """num(r, r') and den(r) over the triples whose head is in the range of rows."""
    scale = 2.0 ** scale_bits(source)
    between: dict[tuple[int, int], list[int]] = {}
    for x2 in range(target.num_entities):
        for y2, r2 in target.edges_of(x2).tolist():
            between.setdefault((x2, y2), []).append(r2)
    num: dict[int, int] = {}
    den = np.zeros(source.num_relations, dtype=np.int64)
    for x in range(*rows):
        for y, r in source.edges_of(x).tolist():
            if r >= source.num_relations:
                continue
            products, product_of_all = _statement(x, y, beliefs, between)
            den[r] += int((1 - product_of_all) * scale + 0.5)
            for r2, product in products.items():
                key = r * 2 * target.num_relations + r2
                num[key] = num.get(key, 0) + int((1 - product) * scale + 0.5)
    keys = np.array(sorted(num), dtype=np.int64)
    values = np.array([num[key] for key in keys.tolist()], dtype=np.int64)
    return RelationCounts.observed(keys, values, den, scale_bits(source))


def _statement(
    x: int, y: int, beliefs: Beliefs, between: dict[tuple[int, int], list[int]]
) -> tuple[dict[int, float], float]:
    """For one statement r(x, y): Π (1 - w(x, x')·w(y, y')) over r'(x', y') for each r', and over all (x', y')."""
    products: dict[int, float] = {}
    product_of_all = 1.0
    targets, target_weights = (part.tolist() for part in beliefs.row(y))
    for x2, weight in zip(*(part.tolist() for part in beliefs.row(x)), strict=True):
        for y2, weight2 in zip(targets, target_weights, strict=True):
            product_of_all *= 1 - weight * weight2
            for r2 in between.get((x2, y2), ()):
                products[r2] = products.get(r2, 1.0) * (1 - weight * weight2)
    return products, product_of_all
