"""The small records that the stages exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy

if TYPE_CHECKING:
    import torch
    from scipy.sparse import csr_array

    # What is stored and given back; `ArrayLike` is what is taken: also nested sequences of numbers, such as [[0, 3]].
    Array: TypeAlias = np.ndarray | torch.Tensor
    ArrayLike: TypeAlias = Array | Sequence[Any]
else:
    Array = ArrayLike = Any  # torch is not imported for the name of a type

PairScores = Callable[[np.ndarray, np.ndarray], np.ndarray]


class HasRelations(Protocol):
    """Anything that says how many relations it has, such as a `KG`."""

    num_relations: int


class HasScores(Protocol):
    """Scored candidates of every row, best first, such as a `Ranking`."""

    @property
    def indices(self) -> Array:
        """int [n, k], candidate ids; -1 means "none"."""

    @property
    def scores(self) -> Array:
        """float [n, k], what the candidates are ranked by."""


class HasRankings(Protocol):
    """Candidates in both directions, or in one: what `topk`, `refine`, `align` and `SelfTraining.run` return."""

    @property
    def forward(self) -> HasScores:
        """A row per source entity."""

    @property
    def backward(self) -> HasScores | None:
        """A row per target entity; None where only one direction is there."""


class HasPairs(Protocol):
    """Anything that has decided on links."""

    @property
    def pairs(self) -> ArrayLike:
        """int [m, 2], (source, target)."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Scored candidates of every row, best first.

    Attributes:
        indices: int [n, k], candidate ids; -1 means "none".
        scores: float [n, k]; not read where the index is -1.
    """

    indices: Any
    scores: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.indices, self.scores))


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates in both directions: `forward` has a row per source entity, `backward` per target entity."""

    forward: Ranking
    backward: Ranking | None = None


@dataclass(frozen=True, eq=False)
class TopK(Candidates):
    """What `topk` returns: candidates in both directions, and what was learned on the way.

    Attributes:
        log_partition: log Σ exp(β·score) of every row, and of every column, over the whole other side; None unless
            `beta` was given.
        beta: the inverse temperature of these sums.
        engine: which engine searched.
        recall: of approximate search, the share of the true nearest found in each direction, on a sample.
        score: function of (rows, columns) that gives the scores of any pairs; it keeps the embeddings alive.
    """

    log_partition: tuple[Any, Any] | None = None
    beta: float | None = None
    engine: str = ""
    recall: tuple[float, float] | None = None
    score: PairScores | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class RefinedRanking:
    """Refined candidates of every row, best first.

    Attributes:
        indices: int [n, k], candidate ids; -1 means "none".
        probs: float32 [n, k], the refined probability q*; the rest of the row's mass lies on other targets.
        evidence: float32 [n, k], the evidence L of each candidate.
        support: of combine="joint", float32 [n, k]: the probability before rows and columns were balanced. Entities
            without counterpart that are left over for each other have a high probability and little support.
    """

    indices: Any
    probs: Any
    evidence: Any
    support: Any = None

    @property
    def scores(self) -> Any:
        """What the candidates are ranked by: the refined probability."""
        return self.probs


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What every entity is believed to be: sparse rows of weights w(n, n') in [0, 1].

    Attributes:
        indptr: int64 [n + 1]
        targets: int32 [nnz], no target twice in a row.
        weights: float32 [nnz]
    """

    indptr: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    def row(self, entity: int) -> tuple[np.ndarray, np.ndarray]:
        """Targets and weights of one entity."""
        span = slice(self.indptr[entity], self.indptr[entity + 1])
        return self.targets[span], self.weights[span]


class RelationAlignment:
    """How far the relations of two graphs contain each other.

    Args:
        sub12: [2R1, 2R2], P(r ⊆ r'); dense array or SciPy sparse matrix.
        sub21: [2R2, 2R1], P(r' ⊆ r).
        default: probability of pairs stored in neither matrix.
    """

    sub12: csr_array
    sub21: csr_array
    default: float

    def __init__(self, sub12: Any, sub21: Any, default: float = 0.0) -> None:
        self.sub12 = _as_csr(sub12, "sub12")
        self.sub21 = _as_csr(sub21, "sub21")
        self.default = validate.number(default, "default", minimum=0.0, maximum=1.0)
        if self.sub12.shape != self.sub21.shape[::-1]:
            raise ValueError(
                f"sub21 must have the shape of sub12 transposed, {self.sub12.shape[::-1]}; got {self.sub21.shape}"
            )

    @classmethod
    def trusted(cls, sub12: csr_array, sub21: csr_array, default: float = 0.0) -> RelationAlignment:
        """Without checks and copies: float32 CSR with sorted columns, no zeros, values in [0, 1]."""
        alignment = cls.__new__(cls)
        alignment.sub12, alignment.sub21, alignment.default = sub12, sub21, default
        return alignment

    @classmethod
    def uniform(cls, kg1: HasRelations, kg2: HasRelations, prob: float = 0.1) -> RelationAlignment:
        """The same probability for every pair: what PARIS assumes before anything is known."""
        from scipy.sparse import csr_array

        shape = (2 * kg1.num_relations, 2 * kg2.num_relations)
        return cls(csr_array(shape, dtype=np.float32), csr_array(shape[::-1], dtype=np.float32), prob)

    @property
    def shape(self) -> tuple[int, int]:
        """(2R1, 2R2)."""
        return self.sub12.shape

    def swapped(self) -> RelationAlignment:
        """The same alignment seen from the other graph."""
        return RelationAlignment.trusted(self.sub21, self.sub12, self.default)

    def __repr__(self) -> str:
        return f"RelationAlignment({self.sub12.shape[0]} x {self.sub12.shape[1]}, {self.sub12.nnz:,} pairs)"


def _as_csr(matrix: Any, name: str) -> csr_array:
    from scipy.sparse import csr_array, issparse

    if not issparse(matrix):
        matrix = to_numpy(matrix, name)
        if matrix.ndim != 2:
            raise ValueError(f"{name} must be a matrix, got shape {matrix.shape}")
        if matrix.dtype.kind not in "fiub":
            raise TypeError(f"{name} must hold numbers, got dtype {matrix.dtype}")
    csr = csr_array(matrix, dtype=np.float32, copy=True)  # what follows works in place
    csr.sum_duplicates()
    csr.eliminate_zeros()
    if csr.nnz and not (np.isfinite(csr.data).all() and csr.data.min() >= 0 and csr.data.max() <= 1):
        raise ValueError(f"{name} must hold probabilities in [0, 1], got {csr.data.min()} to {csr.data.max()}")
    return csr
