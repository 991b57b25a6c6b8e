"""Training-free propagation in the manner of LightEA: what reaches every entity from the known pairs.

Each pair shares one random unit vector; everything else begins at zero. Two hops over entities and relations
give features e = l2([e⁰; e¹; e²]) and ρ = l2([r⁰; r¹; r²]). Then the triple view: random features of the tensor
product of every neighbour with the relations that lead to it, summed over the neighbours. Needs only NumPy and SciPy.

Sinkhorn decoding and rounds of new pairs are left to whoever calls it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.sparse import csr_array, diags_array

from stea_fast._util import validate
from stea_fast.data.graph import KG
from stea_fast.encoders.base import Progress, check_pairs, check_seed, check_state

HOPS = 2
BLOCK = 16  # random features of one relation dimension
BATCH = 8  # relation dimensions per matrix product
ROWS = 4096  # rows normalised at a time
# The sizes of the original, and the bytes for which they are reduced: of the propagated vectors of the larger
# graph, and of both graphs' embeddings.
DIM, RELATION_DIM = 1024, 512
VECTOR_BYTES, EMBEDDING_BYTES = 1.0e9, 3.0e9


class Propagation:
    """Training-free embeddings; `fit` takes milliseconds to minutes, and its epochs mean nothing.

    Args:
        kg1, kg2: the graphs.
        seed: of the random vectors; the same seed and pairs give the same embeddings.
        device: "cpu"; there is no other.
        dim: of the random vector of a pair; if not given 1024, or fewer where propagated vectors would pass 1 GB.
        relation_dim: relation dimensions of the triple view; embeddings have 16 · relation_dim columns. If not
            given 512, or fewer where the embeddings of both graphs would pass 3 GB.
        warm_start: accepted for uniformity; nothing is carried over.
    """

    first_epochs = 1
    round_epochs = 1

    def __init__(
        self, kg1: KG, kg2: KG, *, seed: int = 0, device: str = "cpu", warm_start: bool = False,
        dim: int | None = None, relation_dim: int | None = None,
    ) -> None:  # fmt: skip
        if str(device) != "cpu":
            raise ValueError(f"propagation runs on device 'cpu' only, got {device!r}")
        self.kg1, self.kg2 = kg1, kg2
        self.seed = check_seed(seed)
        self.warm_start = warm_start
        sizes = kg1.num_entities, kg2.num_entities
        fitting = min(DIM, int(VECTOR_BYTES / (4 * (HOPS + 1) * max(sizes))))
        self.dim = validate.count(max(1, fitting) if dim is None else dim, "dim", minimum=1)
        fitting = min(RELATION_DIM, int(EMBEDDING_BYTES / (4 * BLOCK * sum(sizes))))
        chosen = max(1, fitting) if relation_dim is None else relation_dim
        self.relation_dim = validate.count(chosen, "relation_dim", minimum=1)
        self.pairs: np.ndarray | None = None

    def fit(self, pairs: object, epochs: int = 1, *, progress: Progress | None = None) -> None:
        """Take these pairs (m, 2) as known. The work is done by `embeddings`."""
        self.pairs = check_pairs(pairs, self.kg1, self.kg2)
        if progress is not None:
            progress(epochs, epochs)

    def embeddings(self) -> tuple[np.ndarray, np.ndarray]:
        """float32 [n1, 16 · relation_dim] and [n2, 16 · relation_dim], unit rows; zero where nothing arrives."""
        if self.pairs is None:
            raise RuntimeError("no pairs yet: call fit(pairs) before embeddings()")
        first, second = (
            _embed(kg, self.pairs[:, side], self.dim, self.relation_dim, self.seed)
            for side, kg in enumerate((self.kg1, self.kg2))
        )
        return first, second

    def state(self) -> dict[str, np.ndarray]:
        """The pairs; everything else follows from them and the seed."""
        return {"pairs": np.empty((0, 2), dtype=np.int64) if self.pairs is None else self.pairs.copy()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from `state()`."""
        pairs = validate.columns(state.get("pairs", ()), "state['pairs']", 2)
        check_state({**state, "pairs": pairs}, {"pairs": pairs})
        self.pairs = check_pairs(pairs, self.kg1, self.kg2) if len(pairs) else None


def _embed(kg: KG, seeds: np.ndarray, dim: int, relation_dim: int, seed: int) -> np.ndarray:
    """The triple view of one graph. Both graphs draw the same random numbers, in the same order."""
    rng = np.random.default_rng(seed)
    entities, relations = _propagate(kg, seeds, _projection(rng, len(seeds), dim))
    width = entities.shape[1]
    relations = relations @ _projection(rng, width, relation_dim)
    rows, columns, kinds = _edges(kg)
    indptr = np.searchsorted(rows, np.arange(kg.num_entities + 1))
    out = np.empty((kg.num_entities, relation_dim * BLOCK), dtype=np.float32)
    for begin in range(0, relation_dim, BATCH):
        count = min(BATCH, relation_dim - begin)
        features = entities @ np.concatenate([_projection(rng, width, BLOCK) for _ in range(count)], axis=1)
        for k in range(count):
            span = slice(k * BLOCK, (k + 1) * BLOCK)
            strengths = relations[kinds, begin + k]  # edges of the same pair add up in the product
            weights = csr_array((strengths, columns, indptr), shape=(kg.num_entities, kg.num_entities))
            out[:, begin * BLOCK :][:, span] = weights @ features[:, span]
    return _unit_rows(out)


def _projection(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Gaussian directions: float32 [rows, columns] with unit rows."""
    return _unit_rows(rng.standard_normal((rows, columns), dtype=np.float32))


def _propagate(kg: KG, seeds: np.ndarray, anchors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float32 [n, 3 · dim] entities and [2R, 3 · dim] relations: the levels side by side, unit rows."""
    adjacency, heads, tails = _structure(kg)
    entity = np.zeros((kg.num_entities, anchors.shape[1]), dtype=np.float32)
    entity[seeds] = anchors
    relation = np.zeros((2 * kg.num_relations, anchors.shape[1]), dtype=np.float32)
    levels = [(entity, relation)]
    for _ in range(HOPS):
        entity, relation = _unit_rows(adjacency @ entity + tails @ relation), _unit_rows(heads @ entity)
        levels.append((entity, relation))
    entities, relations = zip(*levels, strict=True)
    return _unit_rows(np.concatenate(entities, axis=1)), _unit_rows(np.concatenate(relations, axis=1))


def _structure(kg: KG) -> tuple[csr_array, csr_array, csr_array]:
    """Edge counts [n, n] with 2 · degree on the diagonal; who heads [2R, n] and who ends [n, 2R] each relation."""
    rows, columns, relations = _edges(kg)
    n, ones = kg.num_entities, np.ones(len(rows), dtype=np.float32)
    degrees = np.bincount(rows, minlength=n).astype(np.float32)
    adjacency = csr_array((ones, (rows, columns)), shape=(n, n)) + diags_array(2 * degrees)
    heads = _binary(relations, rows, (2 * kg.num_relations, n))
    tails = _binary(columns, relations, (n, 2 * kg.num_relations))
    return adjacency.tocsr().astype(np.float32), heads, tails


def _edges(kg: KG) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entity, neighbour and relation of all edges but self-loops."""
    rows = np.repeat(np.arange(kg.num_entities, dtype=np.int32), kg.degrees)
    proper = rows != kg.neighbors
    return rows[proper], kg.neighbors[proper], kg.relations[proper]


def _binary(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    matrix = csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _unit_rows(matrix: np.ndarray) -> np.ndarray:
    """Divide every row by its norm, in place; a zero row stays zero."""
    for begin in range(0, len(matrix), ROWS):
        block = matrix[begin : begin + ROWS]
        block /= np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-12)
    return matrix
