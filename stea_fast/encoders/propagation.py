"""Training-free propagation in the manner of LightEA: what reaches every entity from the known pairs.

Each pair shares one random unit vector; everything else begins at zero. Two hops over entities and relations
give features e = l2([e⁰; e¹; e²]) and ρ = l2([r⁰; r¹; r²]). Then the triple view: random features of the tensor
product of every neighbour with the relations that lead to it, summed over the neighbours. Needs only NumPy and SciPy.

Sinkhorn decoding and rounds of new pairs are left to whoever calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from stea_fast._backends.dense import dense_product
from stea_fast._executors.base import Executor
from stea_fast._executors.spread import spread
from stea_fast._util import validate
from stea_fast._util.arrays import to_tensor
from stea_fast._util.devices import usable_device
from stea_fast._util.mapped import Empty, in_memory
from stea_fast._util.progress import Progress as Shown
from stea_fast._util.progress import Step, steps
from stea_fast._util.threads import thread_count
from stea_fast.data.graph import KG
from stea_fast.encoders._propagated_graph import (
    BATCH,
    HOPS,
    ROWS,
    column_blocks,
    edges_of,
    placed,
    projection,
    structure,
    unit_rows,
)
from stea_fast.encoders.base import Progress, check_pairs, check_seed, check_state
from stea_fast.encoders.kernels.propagated import FEATURES, SparseRows, TripleView
from stea_fast.types import Array

# The sizes of the original, and the bytes for which they are reduced: of the propagated vectors of the larger
# graph, and of both graphs' embeddings.
DIM, RELATION_DIM = 1024, 512
VECTOR_BYTES, EMBEDDING_BYTES = 1.0e9, 3.0e9
LEAST_RELATION_DIM = 16  # fewer say too little, whatever they save (bench/NOTES.md)
Arrays = tuple[np.ndarray, np.ndarray]


class Propagation:
    """Training-free embeddings; `fit` takes milliseconds to minutes, and its epochs mean nothing.

    Args:
        kg1, kg2: the graphs.
        seed: of the random vectors; the same seed and pairs give the same embeddings.
        device: where the embeddings are made and given out: as NumPy arrays for "cpu", else as tensors on that torch
            device, which differ from the former by rounding.
        dim: of the random vector of a pair; if not given 1024, or fewer where propagated vectors would pass 1 GB.
        relation_dim: relation dimensions of the triple view; embeddings have 16 · relation_dim columns. If not
            given 512, or fewer where the embeddings of both graphs would pass 3 GB.
        embedding_bytes: where the embeddings of both graphs would pass this, a relation_dim that is given is reduced,
            too, but not below 16; 3 GB does not count then.
        warm_start: accepted for uniformity; nothing is carried over.
    """

    first_epochs = 1
    round_epochs = 1

    def __init__(
        self, kg1: KG, kg2: KG, *, seed: int = 0, device: str = "cpu", warm_start: bool = False,
        dim: int | None = None, relation_dim: int | None = None, embedding_bytes: float | None = None,
    ) -> None:  # fmt: skip
        self.device = None if str(device) == "cpu" else usable_device(device)
        self.kg1, self.kg2 = kg1, kg2
        self.seed = check_seed(seed)
        self.warm_start = warm_start
        sizes = kg1.num_entities, kg2.num_entities
        fitting = min(DIM, int(VECTOR_BYTES / (4 * (HOPS + 1) * max(sizes))))
        self.dim = validate.count(max(1, fitting) if dim is None else dim, "dim", minimum=1)
        most = EMBEDDING_BYTES if embedding_bytes is None else validate.number(embedding_bytes, "embedding_bytes")
        fitting = max(1, min(RELATION_DIM, int(most / (4 * FEATURES * sum(sizes)))))
        chosen = fitting if relation_dim is None else validate.count(relation_dim, "relation_dim", minimum=1)
        self.relation_dim = chosen if embedding_bytes is None else min(chosen, max(fitting, LEAST_RELATION_DIM))
        self.pairs: np.ndarray | None = None
        self.executor: Executor | None = None  # where embeddings are made; None for this process
        self.empty: Empty = in_memory  # where they lie
        self.progress: Shown = False  # whether it is shown how many of their parts are done

    def fit(self, pairs: object, epochs: int = 1, *, progress: Progress | None = None) -> None:
        """Take these pairs (m, 2) as known. The work is done by `embeddings`."""
        self.pairs = check_pairs(pairs, self.kg1, self.kg2)
        if progress is not None:
            progress(epochs, epochs)

    def embeddings(self) -> tuple[Array, Array]:
        """float32 [n1, 16 · relation_dim] and [n2, 16 · relation_dim], unit rows; zero where nothing arrives."""
        if self.pairs is None:
            raise RuntimeError("no pairs yet: call fit(pairs) before embeddings()")
        sizes = self.kg1.num_entities, self.kg2.num_entities
        batches = -(-self.relation_dim // BATCH)
        with steps(self.progress, 2.0 * batches, f"embedding {sizes[0]:,} + {sizes[1]:,} entities") as step:
            first, second = (self._embedded(side, step) for side in (0, 1))
        return first, second

    def _embedded(self, side: int, step: Step) -> Array:
        """Of one graph; an executor's workers have CPUs, so what they made is copied to a device."""
        assert self.pairs is not None, "there are pairs"
        kg = (self.kg1, self.kg2)[side]
        if self.device is not None and self.executor is None:
            from stea_fast.encoders._propagation_on_device import embed

            return embed(kg, self.pairs[:, side], self.dim, self.relation_dim, self.seed, self.device, step)
        out = self.empty((kg.num_entities, self.relation_dim * FEATURES))
        _embed(kg, self.pairs[:, side], self.dim, self.seed, self.executor, out, step)
        return out if self.device is None else to_tensor(out, "embeddings", self.device)

    def state(self) -> dict[str, np.ndarray]:
        """The pairs; everything else follows from them and the seed."""
        return {"pairs": np.empty((0, 2), dtype=np.int64) if self.pairs is None else self.pairs.copy()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from `state()`."""
        pairs = validate.columns(state.get("pairs", ()), "state['pairs']", 2)
        check_state({**state, "pairs": pairs}, {"pairs": pairs})
        self.pairs = check_pairs(pairs, self.kg1, self.kg2) if len(pairs) else None


def _embed(
    kg: KG, seeds: np.ndarray, dim: int, seed: int, executor: Executor | None, out: np.ndarray, step: Step
) -> None:
    """Fill `out` with the triple view of one graph. Both graphs draw the same random numbers, in the same order."""
    rng, relation_dim = np.random.default_rng(seed), out.shape[1] // FEATURES
    anchors = projection(rng, len(seeds), dim)
    hops = _Hops.of(kg, seeds, anchors)
    strengths = dense_product(hops.relations, projection(rng, hops.relations.shape[1], relation_dim))
    view = TripleView(*edges_of(kg), kg.num_entities)
    squares = np.zeros(kg.num_entities)
    batches = _batches(rng, strengths, hops.relations.shape[1])
    made = spread(executor, _columns, batches, thread_count(None), hops.first, hops.whole, anchors, view, done=step)
    for begin, (columns, of_columns) in zip(range(0, relation_dim, BATCH), made, strict=True):
        out[:, begin * FEATURES : begin * FEATURES + columns.shape[1]] = columns
        squares += of_columns
    lengths = np.maximum(np.sqrt(squares), 1e-12).astype(np.float32)[:, None]
    for begin in range(0, len(out), ROWS):  # in place, a block at a time: no second matrix of this size
        out[begin : begin + ROWS] /= lengths[begin : begin + ROWS]


def _batches(rng: np.random.Generator, strengths: np.ndarray, depth: int) -> Iterator[Arrays]:
    """The strengths of some relation dimensions at a time, and the projections drawn for them."""
    for begin in range(0, strengths.shape[1], BATCH):
        chosen = np.ascontiguousarray(strengths[:, begin : begin + BATCH])
        draws = [projection(rng, depth, FEATURES) for _ in range(chosen.shape[1])]
        yield chosen, np.concatenate(draws, axis=1)


def _columns(
    batch: Arrays, n_threads: int, first: SparseRows, whole: SparseRows, anchors: np.ndarray, view: TripleView
) -> Arrays:
    """The columns of the triple view that belong to a batch, float32 [n, *], and the sums of their squares, [n]."""
    strengths, projection = batch
    features = _Hops(first, whole, strengths).projected(anchors, projection)
    out = np.empty((len(view.indptr) - 1, projection.shape[1]), dtype=np.float32)
    squares = np.zeros(len(out))
    view.fill(out, 0, strengths, features, squares)
    return out, squares


class _Hops(NamedTuple):
    """Two hops over a graph as sparse matrices, which apply to the anchors and to any projection of them.

    With e⁰ = I a (a the anchors [m, dim] of the seeds, I [n, m] where they stand): e¹ = D₁ A e⁰ and r¹ = F₁ H e⁰, then
    e² = D₂ (A e¹ + T r¹) and r² = F₂ H e¹; the diagonal matrices divide rows by their lengths, W those of [e⁰; e¹; e²].
    A projection P is linear: e P = W (I a P⁰ + D₁ A I a P¹ + D₂ (A e¹ + T r¹) P²).
    So a is multiplied by it, and e never is.
    """

    first: SparseRows  # [n + 2R, m]: e¹ and r¹ from a
    whole: SparseRows  # [n, 2m + n + 2R]: e P from a P⁰, a P¹, and e¹ P² and r¹ P²
    relations: np.ndarray  # [2R, 3 · dim]: [r⁰; r¹; r²], unit rows

    @classmethod
    def of(cls, kg: KG, seeds: np.ndarray, anchors: np.ndarray) -> _Hops:
        """The lengths are those of the propagated anchors, of which some columns are made at a time."""
        adjacency, heads, tails = structure(kg)
        n, there = kg.num_entities, placed(seeds, kg.num_entities)
        first = vstack([adjacency @ there, heads @ there], format="csr")
        relations = np.zeros((2 * kg.num_relations, (HOPS + 1) * anchors.shape[1]), dtype=np.float32)
        near, far = SparseRows(first), np.zeros(first.shape[0])
        for block in column_blocks(anchors.shape[1]):
            _add_squares(near @ np.ascontiguousarray(anchors[:, block]), far)
        first = _divided(first, far)
        near, again, second = SparseRows(first), SparseRows(heads), np.zeros(n)
        onward = hstack([adjacency, tails], format="csr")
        beyond = SparseRows(onward)
        for block in column_blocks(anchors.shape[1]):
            reached = near @ np.ascontiguousarray(anchors[:, block])
            for level, part in ((1, reached[n:]), (2, again @ reached[:n])):
                relations[:, level * anchors.shape[1] :][:, block] = part
            _add_squares(beyond @ reached, second)
        levels = (np.bincount(seeds, minlength=n) > 0) + (far[:n] > 0).astype(float) + (second > 0)
        parts = hstack([there, first[:n], _divided(onward, second)], format="csr")
        for level in (1, 2):
            unit_rows(relations[:, level * anchors.shape[1] : (level + 1) * anchors.shape[1]])
        return cls(near, SparseRows(_divided(parts, levels)), unit_rows(relations))

    def projected(self, anchors: np.ndarray, projection: np.ndarray) -> np.ndarray:
        """e P: float32 [n, d] from P [3 · dim, d]."""
        m, width = len(anchors), projection.shape[1]
        stacked = np.empty((self.whole.matrix.shape[1], width), dtype=np.float32)
        by_level = projection.reshape(HOPS + 1, anchors.shape[1], width)
        for level in range(HOPS):
            dense_product(anchors, by_level[level], stacked[level * m : (level + 1) * m])
        self.first.fill(stacked[HOPS * m :], dense_product(anchors, by_level[HOPS]))
        return self.whole @ stacked


def _add_squares(rows: np.ndarray, totals: np.ndarray) -> None:
    totals += np.einsum("ij,ij->i", rows, rows)


def _divided(matrix: csr_array, squares: np.ndarray) -> csr_array:
    """The rows divided by the roots of these squares; what is zero stays zero."""
    inverse = (1 / np.maximum(np.sqrt(squares), 1e-12)).astype(np.float32)
    data = matrix.data * np.repeat(inverse, np.diff(matrix.indptr))
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
