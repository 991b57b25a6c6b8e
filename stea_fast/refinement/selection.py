"""Selection of pseudo mappings: the paper's three strategies and its three baselines.

All of them return (pairs int64 [m, 2], values float32 [m]) in increasing order of the source; the baselines
as the kind of array that came in. Pairs that touch a seed are never selected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.array_ops import Array, ops_of
from stea_fast._util.arrays import like
from stea_fast._util.rankings import best_candidates, mutual_rows
from stea_fast._util.sparse import best_matching, run_starts
from stea_fast.types import Candidates, Ranking, RefinedRanking

Selection = tuple[Array, Array]
BY_THRESHOLD = ("forward", "backward", "either")  # nothing but a threshold decides which pairs they take
STRATEGIES = ("mutual", *BY_THRESHOLD, "none")


def select(
    strategy: str,
    forward: RefinedRanking,
    backward: RefinedRanking | None,
    threshold: float | None,
    seeds: Array,
) -> Selection:
    """Select from refined probabilities by the name of the strategy; arrays or tensors, `seeds` like the rankings."""
    check_selection(strategy, threshold)
    if strategy == "none":
        return _nothing(forward.indices)
    if strategy != "forward" and backward is None:
        raise ValueError(f"select={strategy!r} needs candidates in both directions; only one was given")
    if strategy == "mutual":
        assert backward is not None
        pairs, values = mutual_best((forward.indices, forward.probs), (backward.indices, backward.probs))
        above = values > (threshold or 0.0)
        return _without_seeds((pairs[above], values[above]), seeds)
    assert threshold is not None
    parts = []
    if strategy in ("forward", "either"):
        parts.append(above_threshold(forward.indices, forward.probs, threshold))
    if strategy in ("backward", "either"):
        assert backward is not None
        pairs, probs = above_threshold(backward.indices, backward.probs, threshold)
        parts.append((pairs[:, [1, 0]], probs))
    return _without_seeds(_union(parts), seeds)


def check_selection(strategy: str | None, threshold: float | None) -> None:
    """Fail before any work if there is no such strategy, or not the threshold that it needs; None is a default."""
    if strategy is not None:
        validate.choice(strategy, "select", STRATEGIES)
    if threshold is not None:
        validate.number(threshold, "threshold", minimum=0.0, maximum=1.0)
    elif strategy in BY_THRESHOLD:
        raise ValueError(f"select={strategy!r} needs a threshold, a probability between 0 and 1")


def mutual_best(forward: tuple[Array, Array], backward: tuple[Array, Array]) -> Selection:
    """Pairs that are each other's best candidate, with √(p(e → e')·p(e' → e))."""
    (best1, score1), (best2, score2) = best_candidates(*forward), best_candidates(*backward)
    ops = ops_of(best1)
    sources = mutual_rows(best1, best2)
    targets = best1[sources]
    values = ops.sqrt(ops.at_least(score1[sources], 0.0) * ops.at_least(score2[targets], 0.0))
    return ops.columns(sources, targets), ops.single(values)


def above_threshold(indices: Array, scores: Array, threshold: float) -> Selection:
    """Every row's best candidate where its score is above the threshold."""
    best, score = best_candidates(indices, scores)
    ops = ops_of(best)
    rows = ops.nonzero((best >= 0) & (score > threshold))
    return ops.columns(rows, best[rows]), ops.single(score[rows])


def mutual_nearest(candidates: Candidates, *, seeds: Any = ()) -> Selection:
    """Select the pairs that are each other's nearest neighbour: the baseline MutNearest of the paper (MRAEA).

    Args:
        candidates: Candidates in both directions, as `topk` returns them.
        seeds: Known links, int (m, 2), whose entities take no part; none by default.

    Returns:
        The pairs, int64 [m, 2] in increasing order of the source, and their similarities, float32 [m].

    Raises:
        ValueError: Only one direction was given, or an id is out of range.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> candidates = sf.topk(np.eye(3), np.eye(3)[[2, 0, 1]], k=1, csls=0)
        >>> pairs, similarities = sf.mutual_nearest(candidates)
        >>> pairs.tolist()
        [[0, 1], [1, 2], [2, 0]]
    """
    if candidates.backward is None:
        raise ValueError("mutual_nearest needs candidates in both directions; only one was given")
    forward = _checked(candidates.forward, "forward", len(candidates.backward.indices))
    backward = _checked(candidates.backward, "backward", len(forward[0]))
    known = validate.links(seeds, "seeds", len(forward[0]), len(backward[0]))
    pairs, _ = mutual_best(forward, backward)
    scores = best_candidates(*forward)[1][pairs[:, 0]].astype(np.float32)
    return _like(candidates, _without_seeds((pairs, scores), known))


def similarity_threshold(candidates: Candidates, threshold: float, *, seeds: Any = ()) -> Selection:
    """Select every source's nearest target whose similarity is above a threshold: the paper's baseline SimThr.

    Args:
        candidates: Candidates whose forward direction is read, as `topk` returns them.
        threshold: The similarity that a pair must exceed.
        seeds: Known links, int (m, 2), whose entities take no part; none by default.

    Returns:
        The pairs, int64 [m, 2] in increasing order of the source, and their similarities, float32 [m].

    Raises:
        ValueError: An id is out of range.
        TypeError: The threshold is not a number.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> candidates = sf.topk(np.eye(3), np.eye(3)[[2, 0, 1]], k=1, csls=0)
        >>> sf.similarity_threshold(candidates, 0.5, seeds=[[0, 1]])[0].tolist()
        [[1, 2], [2, 0]]
    """
    threshold = validate.number(threshold, "threshold")
    indices, scores = _checked(candidates.forward, "forward")
    known = validate.links(seeds, "seeds", len(indices), validate.MAX_ID)
    return _like(candidates, _without_seeds(above_threshold(indices, scores, threshold), known))


def one_to_one(candidates: Candidates, threshold: float, *, previous: Any = (), seeds: Any = ()) -> Selection:
    """Select a maximum-weight matching of similar pairs, added to earlier ones: the paper's baseline OneToOne (BootEA).

    Args:
        candidates: Candidates whose forward direction is read, as `topk` returns them.
        threshold: Only candidates more similar than this, and more similar than 0, may be matched.
        previous: The pairs of earlier rounds, int (m, 2); none by default. Where an earlier and a new pair share an
            entity, the one that is more similar now stays; a pair that is no longer among the candidates loses.
        seeds: Known links, int (m, 2), whose entities take no part; none by default.

    Returns:
        The pairs, int64 [m, 2] in increasing order of the source, and their similarities, float32 [m]. No source and no
        target occurs twice.

    Raises:
        ValueError: An id is out of range.
        TypeError: The threshold is not a number.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> indices, scores = np.array([[0, 1], [0, 1]]), np.array([[0.9, 0.8], [0.7, 0.1]])
        >>> pairs, _ = sf.one_to_one(sf.Candidates(sf.Ranking(indices, scores)), 0.0)
        >>> pairs.tolist()  # 0.8 + 0.7 is more than 0.9 + 0.1
        [[0, 1], [1, 0]]
    """
    threshold = validate.number(threshold, "threshold")
    indices, scores = _checked(candidates.forward, "forward")
    known = validate.links(seeds, "seeds", len(indices), validate.MAX_ID)
    old_pairs = validate.columns(previous, "previous", 2)
    validate.in_range(old_pairs[:, 0], "previous[:, 0]", len(indices), "source entities")
    validate.in_range(old_pairs[:, 1], "previous[:, 1]", validate.MAX_ID, "target entities")
    old = _without_seeds((old_pairs, _current_scores(old_pairs, indices, scores)), known)
    pairs, scores = _union([_matching(indices, scores, threshold, known), old])
    for side in (0, 1):
        order = np.argsort(-scores, kind="stable")
        _, first = np.unique(pairs[order, side], return_index=True)
        kept = np.sort(order[first])
        pairs, scores = pairs[kept], scores[kept]
    return _like(candidates, (pairs, scores))


def _matching(indices: np.ndarray, scores: np.ndarray, threshold: float, seeds: np.ndarray) -> Selection:
    """One-to-one pairs with the largest sum of similarities; to stay alone is worth almost nothing."""
    usable = (indices >= 0) & (scores > max(threshold, 0.0))
    usable[seeds[:, 0]] = False
    usable &= ~np.isin(indices, seeds[:, 1])
    rows, positions = np.nonzero(usable)
    if len(rows) == 0:
        return _nothing(indices)
    sources, row_of = np.unique(rows, return_inverse=True)
    targets, column_of = np.unique(indices[rows, positions], return_inverse=True)
    weights = scores[rows, positions].astype(np.float64)
    partner = best_matching(row_of, column_of, weights, (len(sources), len(targets)), alone=1e-9)
    matched = partner >= 0
    pairs = np.stack([sources[matched], targets[partner[matched]]], axis=1)
    return pairs, _current_scores(pairs, indices, scores)


def _current_scores(pairs: np.ndarray, indices: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Present similarity of each pair; -inf where the target is not among the source's candidates."""
    found = indices[pairs[:, 0]] == pairs[:, 1:]
    return np.where(found, scores[pairs[:, 0]], -np.inf).max(axis=1, initial=-np.inf).astype(np.float32)


def _checked(ranking: Ranking, name: str, num_targets: int = validate.MAX_ID) -> tuple[np.ndarray, np.ndarray]:
    return validate.ranking(ranking.indices, ranking.scores, name, None, num_targets)


def _like(candidates: Candidates, found: Selection) -> Selection:
    template = candidates.forward.indices
    return like(template, found[0]), like(template, found[1])


def _nothing(indices: Array) -> Selection:
    ops = ops_of(indices)
    none = ops.arange(0)
    return ops.columns(none, none), ops.single(none)


def _union(parts: list[Selection]) -> Selection:
    """All pairs of the parts, each once with its largest value, in increasing order."""
    ops = ops_of(parts[0][0])
    pairs, values = ops.chain([pairs for pairs, _ in parts]), ops.chain([values for _, values in parts])
    order = ops.lexsort((-values, pairs[:, 1], pairs[:, 0]))
    pairs, values = pairs[order], values[order]
    first = run_starts(pairs)
    return pairs[first], values[first]


def _without_seeds(found: Selection, seeds: Array) -> Selection:
    pairs, values = found
    ops = ops_of(pairs)
    free = ~(ops.is_in(pairs[:, 0], seeds[:, 0]) | ops.is_in(pairs[:, 1], seeds[:, 1]))
    return ops.contiguous(pairs[free]), values[free]
