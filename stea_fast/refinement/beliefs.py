"""From candidate probabilities to beliefs w(n, n'): what a neighbour is taken to be.

All functions take NumPy arrays or tensors of one device; the beliefs are of the same kind.
"""

from __future__ import annotations

from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.rankings import best_candidates, mutual_rows
from stea_fast._util.sparse import offsets, offsets_of_counts, rows_of
from stea_fast.types import Beliefs

KINDS = ("soft", "argmax", "mutual")


def soft(indices: Array, probs: Array) -> Beliefs:
    """Every candidate with its probability."""
    ops = ops_of(indices)
    chosen = (indices >= 0) & (probs > 0)
    indptr = offsets_of_counts(chosen.sum(1))
    return Beliefs(indptr, ops.int32(indices[chosen]), ops.single(probs[chosen]))


def argmax(indices: Array, probs: Array) -> Beliefs:
    """The most probable candidate of every row, with weight 1 (the paper's indicator)."""
    best, prob = best_candidates(indices, probs)
    rows = ops_of(best).nonzero(prob > 0)
    return from_pairs(rows, best[rows], prob[rows] ** 0, len(best))


def mutual(forward: tuple[Array, Array], backward: tuple[Array, Array]) -> tuple[Beliefs, Beliefs]:
    """Pairs that are each other's most probable candidate, with weight √(q(e → e')·q(e' → e)), seen from both sides."""
    (best1, prob1), (best2, prob2) = best_candidates(*forward), best_candidates(*backward)
    ops = ops_of(best1)
    sources = mutual_rows(ops.where(prob1 > 0, best1, -1), ops.where(prob2 > 0, best2, -1))
    targets = best1[sources]
    weights = ops.sqrt(prob1[sources] * prob2[targets])
    return from_pairs(sources, targets, weights, len(best1)), from_pairs(targets, sources, weights, len(best2))


def of_directions(directions: list[tuple[Array, Array]], kind: str, num_targets: int) -> tuple[Beliefs, Beliefs]:
    """Beliefs of the entities of both graphs, of one of the `KINDS`.

    Args:
        directions: (indices, probs) of the source entities, and of the target entities if that direction is known;
            else the beliefs of the second graph are those of the first, transposed.
        num_targets: how many entities the target graph has.
    """
    if kind == "mutual":
        if len(directions) < 2:
            raise ValueError("evidence='mutual' needs candidates in both directions; only one was given")
        return mutual(*directions)
    make = soft if kind == "soft" else argmax
    forward = make(*directions[0])
    return forward, make(*directions[1]) if len(directions) == 2 else transpose(forward, num_targets)


def from_pairs(rows: Array, targets: Array, weights: Array, num_rows: int) -> Beliefs:
    """Beliefs of (row, target, weight) triples."""
    ops = ops_of(rows)
    order = ops.order(rows)
    return Beliefs(offsets(rows, num_rows), ops.int32(targets[order]), ops.single(weights[order]))


def transpose(beliefs: Beliefs, num_targets: int) -> Beliefs:
    """The same weights seen from the other side."""
    return from_pairs(beliefs.targets, rows_of(beliefs.indptr), beliefs.weights, num_targets)
