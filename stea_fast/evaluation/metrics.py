"""Quality of rankings and of links. The only module that reads a test link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy
from stea_fast.data.sealed import SealedLinks, reveal
from stea_fast.evaluation.ranks import mean_of, mean_rank, pessimistic_ranks, share_within
from stea_fast.types import Array, ArrayLike, HasPairs, HasRankings

POOLS = ("test", "all")
DIRECTIONS = ("forward", "backward")
RANKING_METRICS = ("hit1", "hit10", "mrr")  # names in `Metrics`
PAIR_METRICS = ("precision", "recall", "f1")


@dataclass(frozen=True)
class Metrics:
    """The quality of rankings over the test links, and of the links that were output.

    Ranks are pessimistic: a wrong target with the same score counts as ranked before the true one. A true target that
    is not among the candidates has no rank: it counts as a miss at every k, and 0 in the MRR.

    Attributes:
        hit1: The share of test links whose target is ranked first; NaN where nothing was ranked.
        hit10: The share of test links whose target is among the first ten; NaN where nothing was ranked.
        mrr: The mean of 1 / rank; NaN where nothing was ranked.
        precision: The share of the output links that are right; NaN where nothing was output.
        recall: The share of the test links that were output; NaN where nothing was output.
        f1: The harmonic mean of precision and recall; NaN where nothing was output.
        pool: "test" if the ranks are among the targets of the test links, "all" if among all targets.
        num_links: The number of test links.
        num_pairs: The number of links that were output.
        mean_rank: The mean rank of the links whose target has a rank; NaN where none has.
        hits: Hit@k by k, for every k that was asked for, up to the length of the rankings.

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> ranking = sf.Ranking(np.array([[0, 1], [0, 1]]), np.array([[0.9, 0.1], [0.8, 0.7]]))
        >>> print(sf.evaluate(sf.Candidates(ranking), [[0, 0], [1, 1]]))
        Hit@1 0.500  Hit@10 1.000  MRR 0.750
    """

    hit1: float
    hit10: float
    mrr: float
    precision: float
    recall: float
    f1: float
    pool: str
    num_links: int
    num_pairs: int
    mean_rank: float = float("nan")
    hits: dict[int, float] = field(default_factory=dict, hash=False)

    def to_dict(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Give the values by name, for JSON.

        Args:
            names: The names of the values to give, such as `("hit1", "mrr")`; the default, None, gives all of them.

        Returns:
            A dictionary from name to value.
        """
        values = asdict(self)
        return values if names is None else {name: values[name] for name in names}

    def __str__(self) -> str:
        parts = []
        if not np.isnan(self.mrr):
            parts.append(f"Hit@1 {self.hit1:.3f}  Hit@10 {self.hit10:.3f}  MRR {self.mrr:.3f}")
        if not np.isnan(self.f1):
            parts.append(f"precision {self.precision:.3f}  recall {self.recall:.3f}  F1 {self.f1:.3f}")
        return "  ".join(parts)


@dataclass(frozen=True, eq=False)
class PairsOnly:
    """Links and nothing else, to be judged by `evaluate`."""

    pairs: ArrayLike


@dataclass(frozen=True)
class PairedTest:
    """Whether two results differ by more than chance, test link by test link.

    Attributes:
        difference: The mean of (first - second).
        t: Student's t; 0 where nothing differs, ±inf where every link differs by the same amount.
        p: The two-sided probability of a |t| as large or larger if the results were equally good.
        n: The number of test links compared.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> candidates = sf.demo.candidates(pair)
        >>> sf.paired_t_test(candidates, candidates, pair.test)
        PairedTest(difference=0.0, t=0.0, p=1.0, n=144)
    """

    difference: float
    t: float
    p: float
    n: int


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """How far probabilities are from the frequencies that they promise, in bins of equal width.

    Attributes:
        error: The expected calibration error, Σ counts·|accuracy - confidence| / Σ counts.
        confidence: The mean probability of the best candidates in each bin, float64 [bins]; NaN in an empty bin.
        accuracy: The share of them that are right, float64 [bins]; NaN in an empty bin.
        counts: The number of best candidates in each bin, int64 [bins].

    Example:
        >>> import numpy as np
        >>> import stea_fast as sf
        >>> ranking = sf.Ranking(np.array([[0], [0]]), np.array([[0.5], [0.5]]))
        >>> curve = sf.calibration_error(sf.Candidates(ranking), [[0, 0], [1, 1]], bins=2)
        >>> curve.counts.tolist(), float(curve.accuracy[1]), curve.error  # one of two is right, as promised
        ([0, 2], 0.5, 0.0)
    """

    error: float
    confidence: np.ndarray
    accuracy: np.ndarray
    counts: np.ndarray


def evaluate(
    result: HasRankings | HasPairs,
    test: ArrayLike | SealedLinks,
    pool: str = "test",
    *,
    direction: str = "forward",
    ks: tuple[int, ...] = (1, 3, 5, 10, 50),
) -> Metrics:
    """Compare candidates, a refinement, an alignment or links with test links.

    Args:
        result: Anything with `.forward` (and `.backward`) rankings; its `.pairs` are judged too where there are any.
            What has `.pairs` but no `.forward` is judged by its pairs alone.
        test: True links that took no part in making the result: `pair.test`, or an int (n, 2) array of (source,
            target).
        pool: "test" ranks the true target among the targets of the test links only, as papers do; "all" ranks it among
            all targets.
        direction: "forward" ranks targets for sources, "backward" ranks sources for targets.
        ks: The values of k for `Metrics.hits`. Those beyond the length of the rankings are left out, because a target
            further down could not have been seen.

    Returns:
        The `Metrics` of the rankings and of the pairs.

    Raises:
        ValueError: There are no test links, an id is out of range, or the result lacks the direction asked for.
        TypeError: The result has neither rankings nor pairs.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> print(sf.evaluate(sf.demo.candidates(pair), pair.test))
        Hit@1 0.569  Hit@10 0.847  MRR 0.651
    """
    depths = [validate.count(k, "ks", minimum=1) for k in ks]
    links = _test_links(test)
    if hasattr(result, "pairs") and not hasattr(result, "forward"):
        validate.choice(pool, "pool", POOLS)
        validate.choice(direction, "direction", DIRECTIONS)
        ranks, depths = np.zeros(0), []
    else:
        ranks = _ranks(result, links, pool, direction)
        depths = [k for k in depths if k <= np.shape(getattr(result, direction).indices)[1]]
    precision, recall, f1, num_pairs = _precision_and_recall(getattr(result, "pairs", None), links)
    return Metrics(
        hit1=share_within(ranks, 1),
        hit10=share_within(ranks, 10),
        mrr=mean_of(1.0 / ranks),
        precision=precision,
        recall=recall,
        f1=f1,
        pool=pool,
        num_links=len(links),
        num_pairs=num_pairs,
        mean_rank=mean_rank(ranks),
        hits={k: share_within(ranks, k) for k in depths},
    )


def paired_t_test(
    result_a: HasRankings,
    result_b: HasRankings,
    test: ArrayLike | SealedLinks,
    *,
    metric: str = "hit1",
    pool: str = "test",
    direction: str = "forward",
) -> PairedTest:
    """Test whether two results differ by more than chance: a two-sided paired t-test over the same test links.

    Args:
        result_a: The first result: anything with rankings, as `evaluate` takes it.
        result_b: The second result.
        test: True links, at least two: `pair.test`, or an int (n, 2) array of (source, target).
        metric: What is compared for every link: "hit1" (0 or 1) or "mrr" (1 / rank, and 0 for no rank).
        pool: "test" ranks among the targets of the test links, "all" among all targets.
        direction: "forward" ranks targets for sources, "backward" ranks sources for targets.

    Returns:
        A `PairedTest` with the mean difference, t, p and the number of links.

    Raises:
        ValueError: There are fewer than two test links, or a choice is unknown.
        TypeError: A result has no rankings.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> candidates = sf.demo.candidates(pair)
        >>> out = sf.refine(candidates, pair.kg1, pair.kg2, seeds=pair.train)
        >>> sf.paired_t_test(out, candidates, pair.test).p < 0.01
        True
    """
    validate.choice(metric, "metric", ("hit1", "mrr"))
    links = _test_links(test)
    if len(links) < 2:
        raise ValueError("test holds one link; a paired t-test needs at least two")
    ranks = [to_numpy(_ranks(result, links, pool, direction), "ranks") for result in (result_a, result_b)]
    a, b = ((rank <= 1).astype(np.float64) if metric == "hit1" else 1.0 / rank for rank in ranks)
    gain = a - b
    if (gain == gain[0]).all():  # no variance: SciPy would give NaN, or an infinite t with a warning
        t, p = (np.copysign(np.inf, gain[0]), 0.0) if gain[0] else (0.0, 1.0)
    else:
        from scipy.stats import ttest_rel

        t, p = ttest_rel(a, b)
    return PairedTest(difference=float(gain.mean()), t=float(t), p=float(p), n=len(links))


def calibration_error(result: HasRankings, test: ArrayLike | SealedLinks, *, bins: int = 10) -> ReliabilityCurve:
    """Measure how well the probabilities of the best candidates predict how often they are right.

    A source without candidates counts as wrong with probability 0. The best candidate is right where the true target
    has rank 1 among all targets; so two best candidates with the same probability are both wrong.

    Args:
        result: Anything with a `.forward` ranking whose `.probs`, or else `.scores`, are probabilities in [0, 1].
        test: True links that took no part in making the result: `pair.test`, or an int (n, 2) array.
        bins: The number of bins of equal width. A probability on an edge belongs to the upper bin, 1 to the last.

    Returns:
        A `ReliabilityCurve` with the expected calibration error.

    Raises:
        ValueError: There are no test links, or the scores are not probabilities.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> out = sf.refine(sf.demo.candidates(pair), pair.kg1, pair.kg2, seeds=pair.train)
        >>> sf.calibration_error(out, pair.test).error < 0.1
        True
    """
    bins = validate.count(bins, "bins", minimum=1)
    links = _test_links(test)
    right = to_numpy(_ranks(result, links, "all", "forward"), "ranks") <= 1
    rows = validate.integers(result.forward.indices, "indices")[links[:, 0]]
    name = "probs" if hasattr(result.forward, "probs") else "scores"
    probs = to_numpy(getattr(result.forward, name), name)[links[:, 0]].astype(np.float64)
    probs = np.where(rows >= 0, probs, 0.0)
    if not ((probs >= 0) & (probs <= 1 + 1e-6)).all():  # float32 sums may exceed 1 by a rounding error
        raise ValueError(f"{name} must be probabilities in [0, 1], got {probs.min():g} to {probs.max():g}")
    return reliability(probs.max(axis=1, initial=0.0), right, bins=bins)


def reliability(probs: np.ndarray, right: np.ndarray, *, bins: int = 10) -> ReliabilityCurve:
    """How well probabilities [n] in [0, 1] predict what is right, bool [n]; n is at least 1."""
    place = np.minimum((probs * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    sums = [np.bincount(place, weights=values, minlength=bins) for values in (probs, right)]
    error = np.abs(sums[0] - sums[1]).sum() / len(probs)
    confidence, accuracy = (np.divide(each, counts, out=np.full(bins, np.nan), where=counts > 0) for each in sums)
    return ReliabilityCurve(float(error), confidence, accuracy, counts)


def _test_links(test: ArrayLike | SealedLinks) -> np.ndarray:
    links = validate.columns(reveal(test), "test", 2)
    if len(links) == 0:
        raise ValueError("test is empty: there is nothing to evaluate against")
    return links


def _ranks(result: HasRankings | HasPairs, links: np.ndarray, pool: str, direction: str) -> Array:
    """float64 [n]: rank of every link in one direction of a result, inf where it is missing."""
    validate.choice(pool, "pool", POOLS)
    validate.choice(direction, "direction", DIRECTIONS)
    if not hasattr(result, direction):
        raise TypeError(f"result must be candidates or a refinement with a .{direction}, got {type(result).__name__}")
    ranking = getattr(result, direction)
    if ranking is None:
        raise ValueError(f"the result has no {direction} ranking")
    for column, side in enumerate(DIRECTIONS):
        other = getattr(result, side, None)
        limit = validate.MAX_ID if other is None else len(other.indices)
        validate.in_range(links[:, column], f"test[:, {column}]", limit, f"rows in the {side} ranking")
    return pessimistic_ranks(ranking, links if direction == "forward" else links[:, ::-1], pool)


def _precision_and_recall(pairs: ArrayLike | None, links: np.ndarray) -> tuple[float, float, float, int]:
    if pairs is None:
        return float("nan"), float("nan"), float("nan"), 0
    output = set(map(tuple, validate.columns(pairs, "pairs", 2).tolist()))
    correct = len(output & set(map(tuple, links.tolist())))
    precision = correct / len(output) if output else 0.0
    recall = correct / len(links)
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return precision, recall, f1, len(output)
