"""Candidates for every entity by its names: the nearest by character n-grams, in both directions."""

from __future__ import annotations

import numpy as np

from stea_fast._executors.base import Done, Executor
from stea_fast._executors.spread import spread
from stea_fast._util import validate
from stea_fast._util.progress import Progress, steps, uncounted
from stea_fast._util.threads import thread_count
from stea_fast.types import Candidates, Ranking
from stea_fast.values.labels import DistinctTexts, LabelsLike, as_labels, distinct_texts
from stea_fast.values.sparse_kernels import kernels
from stea_fast.values.tokens import character_grams
from stea_fast.values.vectors import Vectors, tfidf

TIER = "letters"  # the normalisation before n-grams are taken
MOST_NAMES = 16  # a search looks through at most this many times k names, however many belong to one entity
TRIPLES_AT_ONCE = 4_000_000
QUERIES_PER_PART = 1 << 15  # of the texts that a worker searches at a time


def name_candidates(
    labels1: LabelsLike,
    labels2: LabelsLike,
    k: int = 10,
    min_score: float = 0.05,
    n_threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = False,
) -> Candidates:
    """Find the entities with the most similar names, in both directions.

    Names are compared by their character 2- to 4-grams within words, which weigh the more the rarer they are (TF-IDF
    over the distinct names of both graphs), by cosine. Of an entity with several names the best pair of names counts.

    Args:
        labels1: The labels of the source graph, or one text (or None) per entity.
        labels2: The labels of the target graph, likewise.
        k: The number of candidates per entity.
        min_score: The least cosine of a candidate, in (0, 1].
        n_threads: The number of threads; None, the default, for all that the process may use.
        executor: Where names are searched; None, the default, for this process.
        progress: Whether it is shown how many parts of them are done, as `steps` takes it.

    Returns:
        Candidates for `refine`: int32 indices and float32 scores [n, k], best first, -1 and 0 where there are no more;
        equally good ones by id. Names beyond 1,000 characters are compared by their beginning.
    """
    k = validate.count(k, "k", minimum=1)
    min_score = validate.number(min_score, "min_score", minimum=1e-6, maximum=1.0)
    threads = thread_count(n_threads)
    side1, side2 = (distinct_texts(as_labels(labels), TIER) for labels in (labels1, labels2))
    vectors1, vectors2 = tfidf(*character_grams(side1.texts, side2.texts), threads)
    searches = _EntitySearch(side1, side2, k), _EntitySearch(side2, side1, k)
    total = float(sum(len(search.parts(search.order, executor)) for search in searches))
    with steps(progress, total, f"searching {len(side1.texts):,} and {len(side2.texts):,} names") as step:
        forward = searches[0].run(vectors1, vectors2, min_score, threads, executor, step)
        backward = searches[1].run(vectors2, vectors1, min_score, threads, executor, step)
    return Candidates(forward, backward)


def _nearest(
    texts: np.ndarray, n_threads: int, vectors: Vectors, others: Vectors, width: int, min_score: float
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest texts of some texts, and their cosines; what is found of a text does not depend on the others."""
    chosen = vectors.rows(texts).arrays
    return kernels().cosine_topk(chosen, others.arrays, others.num_columns, width, min_score, n_threads)


class _EntitySearch:
    """From the nearest texts of every text to the nearest entities of every entity."""

    def __init__(self, queries: DistinctTexts, targets: DistinctTexts, k: int) -> None:
        self.queries, self.targets, self.k = queries, targets, k
        self.indptr = targets.indptr
        self.owners = np.minimum(np.diff(self.indptr), k)  # of a text; the lowest come first, others are never needed
        # In alphabetical order, neighbours lead to the same places in memory, which are then still in the cache.
        self.order = np.array(sorted(range(len(queries.texts)), key=queries.texts.__getitem__), dtype=np.int64)

    @staticmethod
    def parts(texts: np.ndarray, executor: Executor | None) -> list[np.ndarray]:
        """The texts in parts for workers; in one where there are none."""
        size = QUERIES_PER_PART if executor is not None else max(len(texts), 1)
        return [texts[begin : begin + size] for begin in range(0, len(texts), size)]

    def run(
        self, vectors: Vectors, others: Vectors, min_score: float, n_threads: int, executor: Executor | None, done: Done
    ) -> Ranking:
        """Search, with more texts where those found belong to too few entities."""
        width = min(self.k, max(len(self.targets.texts), 1))
        pending = self.order
        out = Ranking(
            np.full((self.queries.num_entities, self.k), -1, dtype=np.int32),
            np.zeros((self.queries.num_entities, self.k), dtype=np.float32),
        )
        found: list[tuple[np.ndarray, ...]] = []
        while len(pending):
            common = vectors, others, width, min_score
            nearest = list(spread(executor, _nearest, self.parts(pending, executor), n_threads, *common, done=done))
            done = uncounted  # the few that are searched again
            indices, scores = (np.concatenate(each) for each in zip(*nearest, strict=True))
            short = self._too_few(indices) if width < min(MOST_NAMES * self.k, len(self.targets.texts)) else None
            enough = slice(None) if short is None else ~short
            found.append((pending[enough], indices[enough], scores[enough]))
            pending = pending[:0] if short is None else pending[short]
            width = min(2 * width, len(self.targets.texts))
        self._collect(found, out)
        return out

    def _too_few(self, indices: np.ndarray) -> np.ndarray:
        """bool [rows]: the list is full, but its texts belong to fewer than k entities."""
        if len(self.targets.entity) == len(np.unique(self.targets.entity)):
            return np.zeros(len(indices), dtype=bool)  # every entity has one text
        full = np.flatnonzero(indices[:, -1] >= 0)
        short = np.zeros(len(indices), dtype=bool)
        for part in np.array_split(full, 1 + full.size * indices.shape[1] * self.k // TRIPLES_AT_ONCE):
            row, entity, _ = self._expanded(part, indices[part], np.zeros(indices[part].shape, np.float32))
            pairs = np.unique(row.astype(np.int64) * self.targets.num_entities + entity)
            counts = np.bincount(pairs // self.targets.num_entities, minlength=len(indices))[part]
            short[part] = counts < self.k
        return short

    def _expanded(self, rows: np.ndarray, texts: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, ...]:
        """(row, entity, score) of every entity that has one of the row's texts."""
        there = texts >= 0
        row = np.repeat(rows, there.sum(axis=1))
        text, score = texts[there], scores[there]
        owners = self.owners[text]
        begin = np.repeat(self.indptr[text] - (np.cumsum(owners) - owners), owners)
        return np.repeat(row, owners), self.targets.entity[begin + np.arange(len(begin))], np.repeat(score, owners)

    def _collect(self, found: list[tuple[np.ndarray, ...]], out: Ranking) -> None:
        """The best entities of every entity that has texts, some entities after the other."""
        place = np.empty((len(self.queries.texts), 2), dtype=np.int64)
        for number, (texts, _, _) in enumerate(found):
            place[texts] = np.column_stack([np.full(len(texts), number), np.arange(len(texts))])
        order = np.argsort(self.queries.entity, kind="stable")
        entity, text = self.queries.entity[order], self.queries.text[order]
        widest = max((indices.shape[1] for _, indices, _ in found), default=1)
        step = max(1, TRIPLES_AT_ONCE // (widest * min(self.k, int(self.owners.max(initial=1)))))
        begin = 0
        while begin < len(entity):
            end = int(np.searchsorted(entity, entity[min(begin + step, len(entity)) - 1], "right"))
            triples = []
            for number, (_, indices, scores) in enumerate(found):
                here = begin + np.flatnonzero(place[text[begin:end], 0] == number)
                rows = place[text[here], 1]
                triples.append(self._expanded(entity[here], indices[rows], scores[rows]))
            self._write(out, *(np.concatenate(parts) for parts in zip(*triples, strict=True)))
            begin = end

    def _write(self, out: Ranking, row: np.ndarray, entity: np.ndarray, score: np.ndarray) -> None:
        order = np.lexsort((-score, entity, row))
        row, entity, score = row[order], entity[order], score[order]
        first = np.ones(len(row), dtype=bool)  # of several names of a pair of entities, the best
        first[1:] = (row[1:] != row[:-1]) | (entity[1:] != entity[:-1])
        row, entity, score = row[first], entity[first], score[first]
        order = np.lexsort((entity, -score, row))
        row, entity, score = row[order], entity[order], score[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        best = rank < self.k
        out.indices[row[best], rank[best]], out.scores[row[best], rank[best]] = entity[best], score[best]
