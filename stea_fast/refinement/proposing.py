"""Proposals that are kept from sweep to sweep: an entity is walked again once what its neighbours say has changed.

What the walk of an entity e finds depends on the counterparts of its neighbours, on how much these are believed, and
on how alike the relations are. From one sweep to the next most of it stays as it is. The evidence of a target changes
by no more than about

    d(e) = Σ over (r, n) in N(e) of fun⁻¹(r) · (change of the belief in n's counterpart + belief · change of r),

where a counterpart that was replaced changes by the larger of both beliefs, and r by the largest change of a
probability that it contains another relation or is contained in one. What has changed since e was walked adds up. The
proposals of that walk are kept while it is little beside the evidence of the best of them, and once e itself is
settled: believed to be the same target in two sweeps. Only which pairs are looked at is kept: their evidence is
computed anew in every sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from stea_fast.refinement.surroundings import Surroundings
from stea_fast.types import Beliefs, RelationAlignment

MAX_EDGES_PER_PROPOSAL = 5_000  # that the proposals of one entity may walk
TOLERATED_CHANGE = 0.3  # as a share of the evidence of an entity's best proposal
SETTLED_BELIEF = 0.9  # above it in two sweeps, an entity is not walked again


class Proposer:
    """What is proposed for a range of entities of one graph, and what has changed around them since.

    Args:
        around: both graphs, with their values.
        side: 0 for entities of the first graph, 1 for those of the second.
        rows: the range of these entities, begin and end.
        open_entities: bool for the entities of both graphs: which of them may get counterparts.
    """

    def __init__(
        self, around: Surroundings, side: int, rows: tuple[int, int], open_entities: Sequence[np.ndarray]
    ) -> None:
        self.side, self.rows = side, rows
        self.source, self.target = around.graphs if side == 0 else around.graphs[::-1]
        masks = tuple(around.open(each, mask) for each, mask in enumerate(open_entities))
        self.open_rows, self.open_targets = masks[side], masks[1 - side]
        self.indices = np.empty((0, 0), dtype=np.int32)
        self.strongest = np.zeros(rows[1] - rows[0], dtype=np.float32)  # the evidence of the best when it was proposed
        self.changed = np.zeros(rows[1] - rows[0], dtype=np.float32)  # d, since then
        self.held: tuple[np.ndarray, np.ndarray] | None = None
        self.alignment: RelationAlignment | None = None

    def propose(
        self,
        kernels: Any,
        matched: Beliefs,
        alignment: RelationAlignment,
        strengths: Any,
        *,
        least: float = 0.0,
        **options: Any,
    ) -> np.ndarray:
        """int32 [rows, k]: the targets for which the matched neighbours of every entity speak most, -1 for none.

        Args:
            kernels: the backend.
            matched: for every entity of this side the target that it is matched with; values have all of theirs.
            alignment: of the relations of the first graph with those of the second.
            strengths: what the backend made of it.
            least: targets with less evidence are not proposed.
            options: `k`, `n_threads` and `witnesses` of the kernel.
        """
        stale = self._stale(matched, alignment)
        walked = np.zeros_like(self.open_rows)
        walked[slice(*self.rows)] = stale
        found, evidence = kernels.proposals(
            self.source, self.target, matched, strengths, self.open_rows & walked, self.open_targets,
            budget=MAX_EDGES_PER_PROPOSAL, forward=self.side == 0, rows=self.rows, **options,
        )  # fmt: skip
        found[evidence < least] = -1
        self.indices = np.where(stale[:, None], found, self.indices) if len(self.indices) else found
        self.strongest[stale], self.changed[stale] = evidence[stale].max(axis=1, initial=0.0), 0.0
        return self.indices

    def state(self) -> tuple[np.ndarray, ...]:
        """What it remembers of its own entities."""
        return self.indices, self.strongest, self.changed

    def restore(self, state: tuple[np.ndarray, ...], matched: Beliefs, alignment: RelationAlignment) -> None:
        """Go on where another one was, after it was told these."""
        self.indices, self.strongest, self.changed = state[0], state[1].copy(), state[2].copy()
        self.held, self.alignment = _first_of(matched), alignment

    def _stale(self, matched: Beliefs, alignment: RelationAlignment) -> np.ndarray:
        """bool [rows]: who is walked again; remembers what is believed now."""
        before, aligned = self.held, self.alignment
        targets, weights = _first_of(matched)
        self.held, self.alignment = (targets, weights), alignment
        if before is None or aligned is None:
            return np.ones(len(self.changed), dtype=bool)
        same = targets == before[0]
        moved = np.where(same, np.abs(weights - before[1]), np.maximum(weights, before[1]))
        shares = self.source.inverse_functionality
        self.changed += self._around(shares) @ moved
        if aligned is not alignment:
            self.changed += self._around(shares * relation_changes(aligned, alignment)[self.side]) @ weights
        settled = same & (np.minimum(weights, before[1]) > SETTLED_BELIEF)
        return (self.changed > TOLERATED_CHANGE * self.strongest) & ~settled[slice(*self.rows)]

    def _around(self, of_relations: np.ndarray) -> csr_array:
        """float32 [rows, nodes]: the edges of the entities, each with the number of its relation."""
        begin, end = self.rows
        edges = self.source.edges[self.source.indptr[begin] : self.source.indptr[end]]
        offsets = self.source.indptr[begin : end + 1] - self.source.indptr[begin]
        shape = end - begin, self.source.num_entities
        return csr_array((of_relations[edges[:, 1]], edges[:, 0], offsets), shape=shape)


def _first_of(matched: Beliefs) -> tuple[np.ndarray, np.ndarray]:
    """int32 and float32 [nodes]: the first target of everyone and how much it is believed; -1 and 0 for none."""
    some = np.flatnonzero(np.diff(matched.indptr))
    targets = np.full(len(matched.indptr) - 1, -1, dtype=np.int32)
    weights = np.zeros(len(targets), dtype=np.float32)
    targets[some], weights[some] = matched.targets[matched.indptr[some]], matched.weights[matched.indptr[some]]
    return targets, weights


def relation_changes(before: RelationAlignment, now: RelationAlignment) -> tuple[np.ndarray, np.ndarray]:
    """float32 [2R1] and [2R2]: the largest change of a probability in which a relation has part."""
    forward, backward = abs(now.sub12 - before.sub12), abs(now.sub21 - before.sub21)
    return _larger((forward, 1), (backward, 0)), _larger((forward, 0), (backward, 1))


def _larger(*sides: tuple[csr_array, int]) -> np.ndarray:
    """The larger of what two matrices have at most along an axis of each."""
    first, second = (matrix.max(axis=axis).toarray().ravel() for matrix, axis in sides)
    return np.maximum(first, second)
