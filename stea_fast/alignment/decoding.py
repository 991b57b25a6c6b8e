"""From rankings to links: each source's best, each other's best, a matching, or a sparse Sinkhorn.

Whatever the method, these candidates take no part, in either direction: those that touch a seed, and those whose
score is not above the threshold. The matching and Sinkhorn work on the union of both directions; a pair that both
directions list has the larger of its two scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import like
from stea_fast._util.rankings import best_candidates, mutual_rows
from stea_fast._util.sparse import best_matching, offsets_of_counts, reduce_groups, rows_of
from stea_fast.types import Array, ArrayLike, Candidates, HasRankings, Ranking

if TYPE_CHECKING:
    from scipy.sparse import csr_array

METHODS = ("greedy", "mutual", "one_to_one", "sinkhorn")
Ranked = tuple[np.ndarray, np.ndarray]
Found = tuple[np.ndarray, np.ndarray, np.ndarray]

_FAINTEST = -600.0  # exp of it is far above the smallest float64: no entry, and so no row or column, becomes zero
_LAST = np.int64(np.iinfo(np.int32).max)  # of 31 bits: ids, and bits of floats that are not negative
_LARGE = 1e100  # scaling factors beyond it are multiplied into the entries, whose size is bounded


@dataclass(frozen=True, eq=False)
class Links:
    """Links from sources to targets, and the sources that have none.

    Attributes:
        pairs: The links, int64 [m, 2] of (source, target), in increasing order of the source, which occurs once.
        scores: The score of each link, float32 [m].
        unmatched: The sources without a link, int64 [n - m] in increasing order. Sources of seeds are in neither.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> ranking = sf.Ranking(np.array([[1], [0], [0]]), np.array([[0.9], [0.8], [0.2]]))
        >>> links = sf.decode(sf.Candidates(ranking), threshold=0.5)
        >>> links.pairs.tolist(), links.unmatched.tolist()
        ([[0, 1], [1, 0]], [2])
    """

    pairs: Array
    scores: Array
    unmatched: Array


@dataclass(frozen=True, eq=False)
class _Usable:
    """What takes part: int32 ids (-1 = none) and float32 scores (-inf = none), [n, k] for every direction.

    `free` says of every source that it is in no seed.
    """

    forward: Ranked
    backward: Ranked | None
    num_targets: int
    free: np.ndarray


def decode(
    result: HasRankings,
    how: str = "greedy",
    *,
    threshold: float | None = None,
    seeds: ArrayLike = (),
    temperature: float = 0.02,
    iterations: int = 15,
) -> Links:
    """Decide which links to output, at most one for every source.

    Ties go to the lower target; where several matchings have the largest sum, SciPy takes one, always the same.

    Args:
        result: Anything with a `.forward` ranking, and a `.backward` one where the method uses it. Scores may be
            probabilities or similarities.
        how: "greedy" links every source to its best candidate, with the score of the ranking.
            "mutual" links pairs that are each other's best; it needs both directions, and the score is the source's.
            "one_to_one" links no target twice: it takes the largest sum of scores over the candidates of both
            directions (raised by the same amount where some are negative, so that no link counts as worse than none).
            "sinkhorn" links every source to its best candidate by the x of `sinkhorn`, which is the score.
        threshold: Candidates whose score in `result` is not above it take no part, so a source abstains where none is
            above it; the default, None, lets all take part. It never applies to the x of Sinkhorn; write
            `decode(sinkhorn(result), threshold=...)` where it should. "mutual" asks it of both directions.
        seeds: Known links, int (m, 2); their entities take no part and are not output. None by default.
        temperature: The temperature of `sinkhorn`; the other methods do not use it.
        iterations: The number of iterations of `sinkhorn`; the other methods do not use it.

    Returns:
        `Links`, whose arrays are of the kind of the rankings.

    Raises:
        ValueError: A choice is unknown, a number is outside its range, or "mutual" was given one direction only.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> ranking = sf.Ranking(np.array([[0, 1], [0, 1]]), np.array([[0.9, 0.8], [0.7, 0.1]]))
        >>> sf.decode(sf.Candidates(ranking), "greedy").pairs.tolist()
        [[0, 0], [1, 0]]
        >>> sf.decode(sf.Candidates(ranking), "one_to_one").pairs.tolist()
        [[0, 1], [1, 0]]
    """
    validate.choice(how, "how", METHODS)
    if how == "mutual" and getattr(result, "backward", None) is None:
        raise ValueError("how='mutual' needs candidates in both directions; only one was given")
    temperature, iterations = _sinkhorn_options(temperature, iterations)
    usable = _usable(result, threshold, seeds)
    if how == "one_to_one":
        sources, targets, scores = _matching(_union(usable))
    elif how == "sinkhorn":
        sources, targets, scores = _row_best(_balanced(_union(usable), temperature, iterations))
    else:
        sources, targets, scores = _best_candidates(usable, mutual=how == "mutual")
    alone = usable.free.copy()
    alone[sources] = False
    pairs = np.stack([sources, targets], axis=1).astype(np.int64)
    arrays = (pairs, scores.astype(np.float32), np.flatnonzero(alone))
    return Links(*(like(result.forward.indices, array) for array in arrays))


def sinkhorn(
    result: HasRankings,
    *,
    threshold: float | None = None,
    seeds: ArrayLike = (),
    temperature: float = 0.02,
    iterations: int = 15,
) -> Candidates:
    """Rank candidates anew so that they agree on who takes whom: Sinkhorn's scaling of the listed pairs only.

    x = exp((score - largest score) / temperature) over the candidates of both directions; then, in every iteration,
    first every row (source) and then every column (target) is divided by its sum. Pairs that neither direction lists
    stay zero. Columns therefore sum to 1, and rows nearly do where there are as many targets as sources. Give both
    directions where you can: a target that only one source lists draws that source to itself.

    Scores more than 600 temperatures below the best of their row count as 600 below it.

    Args:
        result: Anything with a `.forward` ranking, and a `.backward` one where it is known, as `decode` takes it.
        threshold: Candidates whose score is not above it take no part; the default, None, lets all take part.
        seeds: Known links, int (m, 2); their entities get empty rows. None by default.
        temperature: The score difference that counts as a factor e; the smaller it is, the closer x is to a matching.
        iterations: How many times rows and columns are normalised, at least once.

    Returns:
        `Candidates` in the directions that were given, as wide as they were. The scores are x, float32 in [0, 1], and 0
        where the id is -1.

    Raises:
        ValueError: A number is outside its range, or a shape does not fit.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> ranking = sf.Ranking(np.array([[0, 1], [0, 1]]), np.array([[0.9, 0.8], [0.7, 0.1]]))
        >>> sf.sinkhorn(sf.Candidates(ranking)).forward.indices[:, 0].tolist()  # the best of both was 0
        [1, 0]
    """
    temperature, iterations = _sinkhorn_options(temperature, iterations)
    usable = _usable(result, threshold, seeds)
    balanced = _balanced(_union(usable), temperature, iterations)
    forward = _reranked(balanced, usable.forward[0].shape[1], result.forward.indices)
    if usable.backward is None or result.backward is None:
        return Candidates(forward)
    return Candidates(forward, _reranked(balanced.T.tocsr(), usable.backward[0].shape[1], result.backward.indices))


def _sinkhorn_options(temperature: float, iterations: int) -> tuple[float, int]:
    temperature = validate.number(temperature, "temperature", minimum=1e-6)
    return temperature, validate.count(iterations, "iterations", minimum=1)


def _usable(result: HasRankings, threshold: float | None, seeds: ArrayLike) -> _Usable:
    """The candidates of `result` that are in no seed and above the threshold, checked."""
    if getattr(result, "forward", None) is None:
        raise TypeError(f"result must be candidates or a refinement with a .forward, got {type(result).__name__}")
    floor = -np.inf if threshold is None else validate.number(threshold, "threshold", minimum=-3e38, maximum=3e38)
    other = getattr(result, "backward", None)
    limit = validate.MAX_ID if other is None else len(other.indices)
    forward = validate.ranking(result.forward.indices, result.forward.scores, "forward", None, limit)
    num_sources = len(forward[0])
    known = validate.links(seeds, "seeds", num_sources, limit)
    num_targets = int(forward[0].max()) + 1 if other is None else limit
    free_sources, free_targets = _free(known[:, 0], num_sources), _free(known[:, 1], num_targets)
    backward = None
    if other is not None:
        backward = validate.ranking(other.indices, other.scores, "backward", None, num_sources)
        backward = _without(backward, free_targets, free_sources, floor)
    return _Usable(_without(forward, free_sources, free_targets, floor), backward, num_targets, free_sources)


def _free(known: np.ndarray, size: int) -> np.ndarray:
    """bool [size]: which entities are in no seed. A seed may have a target that nobody lists."""
    free = np.ones(size, dtype=bool)
    free[known[known < size]] = False
    return free


def _without(ranked: Ranked, free_rows: np.ndarray, free_columns: np.ndarray, floor: float) -> Ranked:
    ids, scores = ranked
    taken = np.append(~free_columns, True)  # the last stands for -1, "none"
    gone = taken[ids] | ~free_rows[:, None] | (scores <= np.float32(floor))  # 0.3 is not above a threshold of 0.3
    return np.where(gone, np.int32(-1), ids), np.where(gone, np.float32(-np.inf), scores)


def _best_candidates(usable: _Usable, *, mutual: bool) -> Found:
    best, scores = best_candidates(*usable.forward, ties="lowest")
    sources = np.flatnonzero(best >= 0)
    if mutual:
        assert usable.backward is not None
        chosen_by, _ = best_candidates(*usable.backward, ties="lowest")
        sources = mutual_rows(best, chosen_by)
    return sources, best[sources], scores[sources]


def _union(usable: _Usable) -> csr_array:
    """Scores [num_sources, num_targets] of the pairs that either direction lists; columns increase in every row."""
    from scipy.sparse import csr_array

    forward = _as_csr(usable.forward, usable.num_targets)
    forward.sort_indices()
    if usable.backward is None:
        return forward
    backward = _as_csr(usable.backward, len(usable.free)).T.tocsr()  # transposing leaves the columns sorted
    either = _filled(forward, 1) + _filled(backward, 2)  # 1: only forward, 2: only backward, 3: both
    scores = np.full(either.nnz, -np.inf, dtype=np.float32)
    scores[either.data != 2] = forward.data
    in_backward = either.data != 1
    scores[in_backward] = np.maximum(scores[in_backward], backward.data)
    return csr_array((scores, either.indices, either.indptr), shape=either.shape)


def _as_csr(ranked: Ranked, num_columns: int) -> csr_array:
    from scipy.sparse import csr_array

    ids, scores = ranked
    listed = ids >= 0
    indptr = offsets_of_counts(listed.sum(axis=1))
    return csr_array((scores[listed], ids[listed], indptr), shape=(len(ids), num_columns))


def _filled(matrix: csr_array, value: int) -> csr_array:
    """The same entries with one value."""
    from scipy.sparse import csr_array

    return csr_array((np.full(matrix.nnz, value, dtype=np.int8), matrix.indices, matrix.indptr), shape=matrix.shape)


def _matching(scores: csr_array) -> Found:
    """One-to-one pairs with the largest sum of scores."""
    rows = rows_of(scores.indptr)
    if scores.nnz == 0:
        return rows, rows, scores.data
    weights = scores.data.astype(np.float64)
    weights -= min(0.0, weights.min())
    # All weights are raised by one, which changes no choice and leaves none at zero; to stay alone is worth a little
    # less than any link.
    weights = 1.0 + weights / (weights.max() or 1.0)
    partner = best_matching(rows, scores.indices, weights, scores.shape, alone=1.0 - 1e-9)
    chosen = scores.indices == partner[rows]
    return rows[chosen], scores.indices[chosen], scores.data[chosen]


def _balanced(scores: csr_array, temperature: float, iterations: int) -> csr_array:
    """x of `sinkhorn`, float32 at the entries of `scores`.

    Scaling factors u of the rows and v of the columns take the place of dividing every entry again and again; they
    are multiplied in at the end, or when they become large. Subtracting each row's own largest score instead of
    the largest of all changes nothing after the first division by the row's sum, and keeps far rows from vanishing.
    """
    from scipy.sparse import csr_array

    if scores.nnz == 0:
        return scores
    counts = np.diff(scores.indptr)
    x = scores.data.astype(np.float64)
    x -= np.repeat(_row_max(scores), counts)
    x /= temperature
    np.exp(np.maximum(x, _FAINTEST, out=x), out=x)
    matrix = csr_array((x, scores.indices, scores.indptr), shape=scores.shape)
    v = np.ones(scores.shape[1])
    for step in range(iterations):
        u = _inverse(matrix @ v)
        v = _inverse(matrix.T @ u)
        if step == iterations - 1 or max(u.max(), v.max()) > _LARGE:
            matrix.data *= np.repeat(u, counts)
            matrix.data *= v[matrix.indices]
            v = np.ones_like(v)
    return csr_array((matrix.data.astype(np.float32), scores.indices, scores.indptr), shape=scores.shape)


def _inverse(sums: Any) -> np.ndarray:
    """1 / sums [n], and 1 for the empty rows and columns, which sum to zero."""
    return 1.0 / np.where(sums > 0, sums, 1.0)


def _row_max(matrix: csr_array) -> np.ndarray:
    """Every row's largest entry, -inf for empty rows."""
    return reduce_groups(np.maximum, matrix.data, matrix.indptr, -np.inf)


def _row_best(matrix: csr_array) -> Found:
    """Every row's largest entry; of equal ones the first."""
    rows = rows_of(matrix.indptr)
    largest = np.flatnonzero(matrix.data == _row_max(matrix)[rows])
    sources, first = np.unique(rows[largest], return_index=True)
    best = largest[first]
    return sources, matrix.indices[best], matrix.data[best]


def _reranked(matrix: csr_array, k: int, template: Array) -> Ranking:
    """The k largest entries of every row, best first; of equal ones the lower column first."""
    num_rows, counts = matrix.shape[0], np.diff(matrix.indptr)
    indices, scores = np.full((num_rows, k), -1, dtype=np.int32), np.zeros((num_rows, k), dtype=np.float32)
    # Bits of floats that are not negative have the order of the floats: one integer holds an entry and its column,
    # the smallest integer being the best. Plain integers sort many times faster than positions.
    packed = (_LAST - matrix.data.view(np.int32).astype(np.int64)) << 32 | matrix.indices
    # Rows of similar length are sorted together, so that filling up the shorter ones costs little.
    for rows in np.array_split(np.argsort(counts, kind="stable"), num_rows // 256 + 1):
        place = np.arange(counts[rows].max(initial=0))
        listed = place < counts[rows, None]
        block = np.full(listed.shape, np.iinfo(np.int64).max)
        block[listed] = packed[(matrix.indptr[rows, None] + place)[listed]]
        block.sort(axis=1)
        row, column = np.nonzero(listed[:, :k])
        best = block[row, column]
        indices[rows[row], column] = best & _LAST
        scores[rows[row], column] = (_LAST - (best >> 32)).astype(np.int32).view(np.float32)
    return Ranking(like(template, indices), like(template, scores))
