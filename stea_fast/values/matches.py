"""Similar values of two graphs: pairs of values with their similarity, a bounded number for every value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stea_fast._util import validate
from stea_fast._util.threads import thread_count
from stea_fast.values import parsing
from stea_fast.values.kinds import KINDS, kind_of
from stea_fast.values.labels import Labels, distinct_texts
from stea_fast.values.sparse_kernels import kernels
from stea_fast.values.tokens import character_grams, words
from stea_fast.values.vectors import tfidf

ROWS_AT_ONCE = 100_000
# How far apart dates of one precision may be, in its unit: a typing error, or another zone.
DATE_TOLERANCE = {"year": 2, "month": 2, "day": 3, "second": 3600}
# What agreement up to a year, month, day or second says, where one of the dates is more precise than that.
ROUNDED = {"year": 0.5, "month": 0.7, "day": 0.9, "second": 1.0}


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of similar values.

    Attributes:
        index1: The places of the first values, int32 [m], increasing.
        index2: The places of the second values, int32 [m].
        similarity: Their similarities in (0, 1], float32 [m]; no pair occurs twice.
    """

    index1: np.ndarray
    index2: np.ndarray
    similarity: np.ndarray


def similar_values(
    values1: Sequence[str], values2: Sequence[str], kind: str | None = None, *, max_matches: int = 10,
    min_similarity: float = 0.5, tolerance: float = 0.01, n_threads: int | None = None,
) -> Matches:  # fmt: skip
    """Find the pairs of similar values of two graphs, without comparing all pairs.

    Values that are not of the kind, such as "unknown" among dates, are compared as strings with one another.

    Args:
        values1: The distinct values of the first graph.
        values2: The distinct values of the second graph.
        kind: One of "string", "text", "number", "date", "code" and "boolean"; None, the default, for what
            `kind_of` says of all values.
        max_matches: The largest number of pairs that a value of either graph is in.
        min_similarity: The least similarity of a pair, in (0, 1].
        tolerance: The relative difference at which the similarity of two numbers is 0.
        n_threads: The number of threads; None, the default, for all that the process may use.

    Returns:
        The pairs, by the first value.
    """
    max_matches = validate.count(max_matches, "max_matches", minimum=1)
    min_similarity = validate.number(min_similarity, "min_similarity", minimum=1e-6, maximum=1.0)
    tolerance = validate.number(tolerance, "tolerance", minimum=0.0, maximum=1.0)
    kind = kind_of([*values1, *values2]) if kind is None else validate.choice(kind, "kind", KINDS)
    limits = _Limits(max_matches, min_similarity, thread_count(n_threads))
    if kind in ("string", "text"):
        return _cut([_similar_texts(values1, values2, kind == "text", limits)], limits)
    if kind in ("code", "boolean"):
        spelt = parsing.codes if kind == "code" else parsing.booleans
        return _cut([_equal(spelt(values1), spelt(values2), limits)], limits)
    found = []
    if kind == "number":
        number1, number2 = parsing.numbers(values1), parsing.numbers(values2)
        other1, other2 = np.isnan(number1), np.isnan(number2)
        found.append(_close_numbers(number1, number2, tolerance, limits))
    else:
        (date1, precision1), (date2, precision2) = parsing.dates(values1), parsing.dates(values2)
        other1, other2 = precision1 < 0, precision2 < 0
        found += _close_dates(date1, precision1, date2, precision2, limits)
    rest1, rest2 = np.flatnonzero(other1), np.flatnonzero(other2)
    if len(rest1) and len(rest2):
        rest = _similar_texts([values1[i] for i in rest1.tolist()], [values2[i] for i in rest2.tolist()], False, limits)
        found.append((rest1[rest[0]], rest2[rest[1]], rest[2]))
    return _cut(found, limits)


@dataclass(frozen=True)
class _Limits:
    max_matches: int
    min_similarity: float
    n_threads: int


Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]  # places on both sides, similarities


def _cut(found: list[Pairs], limits: _Limits) -> Matches:
    """Order the pairs, and keep the best of every value of either side."""
    first, second, similarity = (np.concatenate(parts) for parts in zip(*found, strict=True))
    keep = similarity >= np.float32(limits.min_similarity)
    first, second, similarity = first[keep], second[keep], similarity[keep].astype(np.float32)
    for by, other in ((0, 1), (1, 0)):
        sides = (first, second)
        order = np.lexsort((sides[other], -similarity, sides[by]))
        first, second, similarity = first[order], second[order], similarity[order]
        ranked = (first, second)[by]
        best = np.arange(len(ranked)) - np.searchsorted(ranked, ranked) < limits.max_matches
        first, second, similarity = first[best], second[best], similarity[best]
    order = np.lexsort((second, -similarity, first))
    return Matches(first[order].astype(np.int32), second[order].astype(np.int32), similarity[order])


def _similar_texts(values1: Sequence[str], values2: Sequence[str], long: bool, limits: _Limits) -> Pairs:
    """By cosine of words or character n-grams; of many values with the same normalised text the first are taken."""
    tier = "words" if long else "letters"
    side1, side2 = (distinct_texts(Labels(np.arange(len(v)), v), tier) for v in (values1, values2))
    tokens = (words if long else character_grams)(side1.texts, side2.texts)
    vectors1, vectors2 = tfidf(*tokens, limits.n_threads)
    indices, scores = kernels().cosine_topk(
        vectors1.arrays, vectors2.arrays, vectors2.num_columns, limits.max_matches, limits.min_similarity,
        limits.n_threads,
    )  # fmt: skip
    text1, place = np.nonzero(indices >= 0)
    text2, score = indices[text1, place], np.minimum(scores[text1, place], 1.0)
    owners1, owners2 = (_first_owners(side.entity, side.indptr, limits.max_matches) for side in (side1, side2))
    pair, one, two = np.nonzero((owners1[text1] >= 0)[:, :, None] & (owners2[text2] >= 0)[:, None, :])
    return owners1[text1[pair], one], owners2[text2[pair], two], score[pair]


def _first_owners(entity: np.ndarray, indptr: np.ndarray, most: int) -> np.ndarray:
    """int64 [texts, m]: the first values that have a text, at most `most`; -1 beyond."""
    counts = np.minimum(np.diff(indptr), most)
    owners = np.full((len(counts), int(counts.max(initial=1))), -1, dtype=np.int64)
    row = np.repeat(np.arange(len(counts)), counts)
    column = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    owners[row, column] = entity[indptr[row] + column]
    return owners


def _equal(keys1: list[str], keys2: list[str], limits: _Limits) -> Pairs:
    numbers: dict[str, int] = {}
    code1, code2 = (
        np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.float64) for keys in (keys1, keys2)
    )
    empty = numbers.get("", -1)
    code1[code1 == empty], code2[code2 == empty] = np.nan, np.nan
    return _nearest(code1, code2, np.zeros(len(code1)), limits)


def _close_numbers(number1: np.ndarray, number2: np.ndarray, tolerance: float, limits: _Limits) -> Pairs:
    return _nearest(number1, number2, tolerance * np.abs(number1), limits)


def _close_dates(
    date1: np.ndarray, precision1: np.ndarray, date2: np.ndarray, precision2: np.ndarray, limits: _Limits
) -> list[Pairs]:
    """Dates of every two precisions, both rounded to the coarser one."""
    found = []
    for one in range(len(parsing.PRECISIONS)):
        for two in range(len(parsing.PRECISIONS)):
            coarse = parsing.PRECISIONS[min(one, two)]
            rounded1, rounded2 = (
                np.where(precision == wanted, numbers[:, min(one, two)], np.nan)
                for numbers, precision, wanted in ((date1, precision1, one), (date2, precision2, two))
            )
            allowed = DATE_TOLERANCE[coarse] if one == two else 0
            first, second, similarity = _nearest(rounded1, rounded2, np.full(len(date1), float(allowed)), limits)
            found.append((first, second, similarity * (1.0 if one == two else ROUNDED[coarse])))
    return found


def _nearest(point1: np.ndarray, point2: np.ndarray, reach: np.ndarray, limits: _Limits) -> Pairs:
    """The nearest points within reach, by windows in the sorted points; NaN is near to nothing.

    The similarity falls from 1 at the same place to 0 at the end of the reach. Of many equal
    points the first are taken.
    """
    order = np.argsort(point2, kind="stable")[: int(np.count_nonzero(~np.isnan(point2)))]
    sorted2, m = point2[order], limits.max_matches
    rows = np.flatnonzero(~np.isnan(point1))
    parts: list[Pairs] = []
    for begin in range(0, len(rows) if len(order) else 0, ROWS_AT_ONCE):
        row = rows[begin : begin + ROWS_AT_ONCE]
        middle = np.searchsorted(sorted2, point1[row])
        window = middle[:, None] + np.arange(-m, m)
        inside = (window >= 0) & (window < len(order))
        place = np.where(inside, window, 0)
        distance = np.abs(sorted2[place] - point1[row, None])
        near = inside & ((distance == 0) | (distance < reach[row, None]))
        which, column = np.nonzero(near)
        with np.errstate(invalid="ignore", divide="ignore"):
            similarity = 1.0 - np.where(distance == 0, 0.0, distance / reach[row, None])
        parts.append((row[which], order[place[which, column]], similarity[which, column].astype(np.float32)))
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    first, second, similarity = (np.concatenate(part) for part in zip(*parts, strict=True))
    return first, second, similarity
