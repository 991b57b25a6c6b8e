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
    from scipy.sparse import csr_array, sparray, spmatrix

    ArrayLike: TypeAlias = np.ndarray | torch.Tensor | Sequence[Any]
    MatrixLike: TypeAlias = ArrayLike | sparray | spmatrix
else:
    ArrayLike = MatrixLike = Any  # no package is imported for the name of a type

# `ArrayLike` is what functions take: a NumPy array, a torch tensor, or nested sequences of numbers such as [[0, 3]].
# `MatrixLike` may be sparse as well.
# `Array` is what records hold: a NumPy array or a torch tensor. To a type checker it is `Any`: which of the two it is
# depends on what the user gave, and a union of both would have no arithmetic.
Array: TypeAlias = Any
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
    """The scored candidates of every row, best first.

    It unpacks as a tuple: `indices, scores = ranking`.

    Attributes:
        indices: The ids of the candidates, int [n, k]; -1 means "no candidate".
        scores: Their scores, float [n, k]; where the index is -1 they are not read.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> ranking = sf.Ranking(np.array([[2, 0], [1, -1]]), np.array([[0.9, 0.3], [0.8, 0.0]]))
        >>> ranking.indices[:, 0].tolist()  # the best candidate of every row
        [2, 1]
    """

    indices: Array
    scores: Array

    def __iter__(self) -> Iterator[Array]:
        return iter((self.indices, self.scores))


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates in both directions, or in one.

    Attributes:
        forward: The candidates of every source entity.
        backward: The candidates of every target entity; None, the default, where they are not known.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> ranking = sf.Ranking(np.array([[1], [0]]), np.array([[0.9], [0.8]]))
        >>> pairs, _ = sf.mutual_nearest(sf.Candidates(ranking, ranking))
        >>> pairs.tolist()
        [[0, 1], [1, 0]]
    """

    forward: Ranking
    backward: Ranking | None = None


@dataclass(frozen=True, eq=False)
class TopK(Candidates):
    """Candidates in both directions as `topk` finds them, and what it learns on the way.

    Attributes:
        forward: The k nearest targets of every source entity.
        backward: The k nearest sources of every target entity; never None after a search.
        log_partition: Two arrays [n1] and [n2]: log Σ exp(β·score) of every row over all targets, and of every column
            over all sources; None unless `topk` was given a `beta`.
        beta: The inverse temperature β of these sums, or None.
        engine: The name of the engine that searched.
        recall: The share of the true nearest that an approximate engine found in each direction, measured on a sample;
            None after exact search.
        score: A function of (rows, columns) that gives the scores of any pairs, or None. It keeps the embeddings alive.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> found = sf.topk(np.eye(3), np.eye(3), k=2, csls=0, beta=5.0)
        >>> found.forward.indices.shape, found.log_partition[0].shape, found.recall
        ((3, 2), (3,), None)
    """

    log_partition: tuple[Array, Array] | None = None
    beta: float | None = None
    engine: str = ""
    recall: tuple[float, float] | None = None
    score: PairScores | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class RefinedRanking:
    """The refined candidates of every row, best first.

    Attributes:
        indices: The ids of the candidates, int [n, k]; -1 means "no candidate".
        probs: Their refined probabilities q*, float32 [n, k]; the rest of a row's mass lies on other targets.
        evidence: The evidence L of every candidate, float32 [n, k].
        support: The probability of every candidate before rows and columns were balanced, float32 [n, k]; None for
            methods that do not balance. Entities without counterpart that are left over for each other have a high
            probability and little support.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> ranking = sf.refine(sf.demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train).forward
        >>> bool((ranking.probs[:, 0] >= ranking.probs[:, 1]).all())
        True
    """

    indices: Array
    probs: Array
    evidence: Array
    support: Array | None = None

    @property
    def scores(self) -> Array:
        """What the candidates are ranked by: the refined probability, float32 [n, k]."""
        return self.probs


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What every entity is believed to be: sparse rows of weights w(n, n') in [0, 1].

    The arrays are NumPy arrays, or tensors of one device while a refinement goes on there.

    Attributes:
        indptr: The start of every entity's row, int64 [n + 1].
        targets: The entities of the other graph, int32 [nnz]; no target occurs twice in a row.
        weights: The weight of every target, float32 [nnz].

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> targets, weights = np.array([4, 7], dtype=np.int32), np.array([0.9, 0.1], dtype=np.float32)
        >>> beliefs = sf.Beliefs(np.array([0, 2, 2]), targets, weights)  # nothing is believed of the second entity
        >>> beliefs.row(0)[0].tolist(), beliefs.row(1)[0].tolist()
        ([4, 7], [])
    """

    indptr: Any
    targets: Any
    weights: Any

    def __iter__(self) -> Iterator[Array]:
        return iter((self.indptr, self.targets, self.weights))

    def on_host(self) -> Beliefs:
        """Copy the beliefs to the host.

        Returns:
            The same beliefs as NumPy arrays.
        """
        return Beliefs(*(to_numpy(part, "beliefs") for part in self))

    def row(self, entity: int) -> tuple[np.ndarray, np.ndarray]:
        """Read the beliefs about one entity.

        Args:
            entity: The id of the entity.

        Returns:
            The targets, int32 [m], and their weights, float32 [m].
        """
        span = slice(self.indptr[entity], self.indptr[entity + 1])
        return self.targets[span], self.weights[span]

    def between(self, entities: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Look up the weights between some entities and some targets.

        Args:
            entities: The entities n, int [m].
            targets: The targets n', int [l].

        Returns:
            The weights w(n, n'), float64 [m, l]; 0 where nothing is believed.
        """
        weights = np.zeros((len(entities), len(targets)))
        for i, entity in enumerate(entities):
            believed, weight = self.row(entity)
            where, which = np.nonzero(targets[:, None] == believed[None, :])
            weights[i, where] = weight[which]
        return weights


class RelationAlignment:
    """How far the relations of two graphs contain each other, as sparse probabilities.

    With R relations a graph has 2R directed relations: the inverse of relation r has the id r + R.

    Args:
        sub12: The probabilities P(r ⊆ r'), [2R1, 2R2], as a dense array or a SciPy sparse matrix.
        sub21: The probabilities P(r' ⊆ r), [2R2, 2R1].
        default: The probability of pairs that are stored in neither matrix.

    Raises:
        ValueError: The shapes do not fit each other, or a number is not a probability.
        TypeError: A matrix does not hold numbers.

    Example:
        >>> import stea_fast as sf
        >>> relations = sf.RelationAlignment([[0.9, 0.0], [0.0, 0.9]], [[0.8, 0.0], [0.0, 0.8]])
        >>> relations
        RelationAlignment(2 x 2, 2 pairs)
    """

    sub12: csr_array
    sub21: csr_array
    default: float

    def __init__(self, sub12: MatrixLike, sub21: MatrixLike, default: float = 0.0) -> None:
        self.sub12 = _as_csr(sub12, "sub12")
        self.sub21 = _as_csr(sub21, "sub21")
        self.default = validate.number(default, "default", minimum=0.0, maximum=1.0)
        if self.sub12.shape != self.sub21.shape[::-1]:
            raise ValueError(
                f"sub21 must have the shape of sub12 transposed, {self.sub12.shape[::-1]}; got {self.sub21.shape}"
            )

    @classmethod
    def trusted(cls, sub12: csr_array, sub21: csr_array, default: float = 0.0) -> RelationAlignment:
        """Make an alignment without checks and copies, of matrices that are known to be right.

        Args:
            sub12: P(r ⊆ r') as float32 CSR with sorted columns, no stored zeros and values in [0, 1], [2R1, 2R2].
            sub21: P(r' ⊆ r) likewise, [2R2, 2R1].
            default: The probability of pairs that are stored in neither matrix.

        Returns:
            The alignment, which shares the matrices.
        """
        alignment = cls.__new__(cls)
        alignment.sub12, alignment.sub21, alignment.default = sub12, sub21, default
        return alignment

    @classmethod
    def uniform(cls, kg1: HasRelations, kg2: HasRelations, prob: float = 0.1) -> RelationAlignment:
        """Make an alignment with one probability for every pair, as PARIS assumes before anything is known.

        Args:
            kg1: The source graph, with R1 relations.
            kg2: The target graph, with R2 relations.
            prob: The probability in [0, 1] of every pair of relations.

        Returns:
            An alignment of [2R1, 2R2] without stored pairs.
        """
        from scipy.sparse import csr_array

        shape = (2 * kg1.num_relations, 2 * kg2.num_relations)
        return cls(csr_array(shape, dtype=np.float32), csr_array(shape[::-1], dtype=np.float32), prob)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of directed relations of both graphs, (2R1, 2R2)."""
        return self.sub12.shape

    def swapped(self) -> RelationAlignment:
        """See the alignment from the other graph.

        Returns:
            The alignment with `sub12` and `sub21` exchanged; the matrices are shared.
        """
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
    else:
        validate.sparse_structure(matrix, name)  # SciPy's conversions trust what they are given
    csr = csr_array(matrix, dtype=np.float32, copy=True)  # what follows works in place
    validate.sparse_structure(csr, name)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    if csr.nnz and not (np.isfinite(csr.data).all() and csr.data.min() >= 0 and csr.data.max() <= 1):
        raise ValueError(f"{name} must hold probabilities in [0, 1], got {csr.data.min()} to {csr.data.max()}")
    return csr
