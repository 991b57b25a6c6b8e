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

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.made_once import MadeOnce
from stea_fast.refinement.surroundings import Surroundings
from stea_fast.types import Beliefs, RelationAlignment

MAX_EDGES_PER_PROPOSAL = 5_000  # that the proposals of one entity may walk
TOLERATED_CHANGE = 0.3  # as a share of the evidence of an entity's best proposal
SETTLED_BELIEF = 0.9  # above it in two sweeps, an entity is not walked again

# What all shards of a process share.
_FIRST, _MOVED, _CHANGES = MadeOnce(), MadeOnce(), MadeOnce()


class First:
    """The first target of everyone, and how much it is believed.

    Attributes:
        targets: int32 [nodes], -1 for none.
        weights: float32 [nodes], 0 for none.
    """

    def __init__(self, matched: Beliefs) -> None:
        count = len(matched.indptr) - 1
        self.ops = ops_of(matched.indptr)
        self.targets, self.weights = self.ops.full(count, -1, "int32"), self.ops.full(count, 0.0, "float32")
        some = self.ops.nonzero(matched.indptr[1:] > matched.indptr[:-1])
        first = matched.indptr[some]
        self.targets[some], self.weights[some] = matched.targets[first], matched.weights[first]

    def moved_since(self, before: First) -> Array:
        """float32 [nodes]: by how much the belief in the first target has changed; what was replaced, by the larger."""
        return _since(before, _MOVED, self, self._moved)

    def _moved(self, before: First) -> Array:
        larger = self.ops.lib.maximum(self.weights, before.weights)
        return self.ops.where(self.targets == before.targets, abs(self.weights - before.weights), larger)

    def settled_since(self, before: First, rows: slice) -> Array:
        """bool: who of some nodes is believed to be the same target, now and before."""
        weights = self.ops.lib.minimum(self.weights[rows], before.weights[rows])
        return (self.targets[rows] == before.targets[rows]) & (weights > SETTLED_BELIEF)


class Proposer:
    """What is proposed for a range of entities of one graph, and what has changed around them since.

    Args:
        around: both graphs, with their values.
        side: 0 for entities of the first graph, 1 for those of the second.
        rows: the range of these entities, begin and end.
        open_entities: bool for the entities of both graphs: which of them may get counterparts.
    """

    def __init__(self, around: Surroundings, side: int, rows: tuple[int, int], open_entities: Sequence[Array]) -> None:
        self.side, self.rows, self.around = side, rows, around
        self.ops = ops_of(open_entities[0])
        self.source, self.target = around.graphs if side == 0 else around.graphs[::-1]
        masks = tuple(around.open(each, mask) for each, mask in enumerate(open_entities))
        self.open_rows, self.open_targets = masks[side], masks[1 - side]
        self.indices = self.ops.full((0, 0), -1, "int32")
        self.strongest = self.ops.full(rows[1] - rows[0], 0.0, "float32")  # the evidence of the best when proposed
        self.changed = self.ops.full(rows[1] - rows[0], 0.0, "float32")  # d, since then
        self.held: First | None = None
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
    ) -> Array:
        """int32 [rows, k]: the targets for which the matched neighbours of every entity speak most, -1 for none.

        Args:
            kernels: the backend.
            matched: for every entity of this side the target that it is matched with; values have all of theirs.
            alignment: of the relations of the first graph with those of the second.
            strengths: what the backend made of it.
            least: targets with less evidence are not proposed.
            options: `k`, `n_threads` and `witnesses` of the kernel.
        """
        stale = self._stale(kernels, matched, alignment, options["n_threads"])
        walked = ~self.ops.all_true(len(self.open_rows))
        walked[slice(*self.rows)] = stale
        found, evidence = kernels.proposals(
            self.source, self.target, matched, strengths, self.open_rows & walked, self.open_targets,
            budget=MAX_EDGES_PER_PROPOSAL, forward=self.side == 0, rows=self.rows, **options,
        )  # fmt: skip
        found[evidence < least] = -1
        if len(self.indices):
            kept = self.ops.nonzero(~stale)
            found[kept] = self.indices[kept]
        self.indices = found
        self.strongest = self.ops.where(stale, evidence[:, 0], self.strongest)  # best first
        self.changed[stale] = 0.0
        return self.indices

    def state(self) -> tuple[Array, ...]:
        """What it remembers of its own entities."""
        return self.indices, self.strongest, self.changed

    def restore(self, state: tuple[Array, ...], matched: Beliefs, alignment: RelationAlignment) -> None:
        """Go on where another one was, after it was told these."""
        self.indices, self.strongest, self.changed = state[0], state[1].copy(), state[2].copy()
        self.held, self.alignment = _first_of(matched), alignment

    def _stale(self, kernels: Any, matched: Beliefs, alignment: RelationAlignment, n_threads: int) -> Array:
        """bool [rows]: who is walked again; remembers what is believed now."""
        before, aligned = self.held, self.alignment
        now = _first_of(matched)
        self.held, self.alignment = now, alignment
        if before is None or aligned is None:
            return self.ops.all_true(len(self.changed))
        shares = self.source.inverse_functionality
        changes = 0 * shares if aligned is alignment else _changes_of(self.around, aligned, alignment)[self.side]
        self.changed += kernels.changes_around(
            self.source, shares, changes, now.moved_since(before), now.weights, rows=self.rows, n_threads=n_threads
        )
        settled = now.settled_since(before, slice(*self.rows))
        return (self.changed > TOLERATED_CHANGE * self.strongest) & ~settled


def _changes_of(around: Surroundings, before: RelationAlignment, now: RelationAlignment) -> tuple[Array, Array]:
    """How much the relations of both graphs have changed, as `Surroundings.relation_changes` says it."""
    changes: tuple[Array, Array] = _since(before, _CHANGES, now, lambda before: around.relation_changes(before, now))
    return changes


def _since(before: Any, made_once: MadeOnce, now: Any, compare: Callable[[Any], Any]) -> Any:
    """What comparing `now` with `before` gives; shards compare it with the same one, sweep by sweep."""
    return made_once.of(now, lambda: (ref(before), compare(before)), lambda made: made[0]() is before)[1]


def _first_of(matched: Beliefs) -> First:
    first: First = _FIRST.of(matched, lambda: First(matched))
    return first
