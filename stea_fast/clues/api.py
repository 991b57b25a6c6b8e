"""`find_clues`: what names, values and features of two graphs say of each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stea_fast._executors.base import Executor
from stea_fast._executors.named import executor_of
from stea_fast._util.progress import Progress
from stea_fast._util.threads import thread_count
from stea_fast.clues.features import Features, feature_scores
from stea_fast.clues.fusion import fuse
from stea_fast.clues.name_scores import NameScores
from stea_fast.clues.types import Clues
from stea_fast.clues.value_links import ValueLinks, similar_statements
from stea_fast.clues.value_nodes import attribute_affinity, belief_weights
from stea_fast.data.labels import Labels
from stea_fast.data.naming import labels_of_pair
from stea_fast.data.pair import Pair
from stea_fast.types import Ranking
from stea_fast.values import labels as texts
from stea_fast.values.candidates import name_candidates
from stea_fast.values.exact import unique_matches

SIDES = ("first", "second")
MOST_ATTRIBUTES, LEAST_SHARED = 5, 0.01  # of the attributes that the user is told of


def find_clues(
    pair: Pair,
    *,
    names: bool = True,
    values: bool = True,
    features: Features | None = None,
    languages: Sequence[str] | None = None,
    k: int = 10,
    n_threads: int | None = None,
    executor: str | Executor | None = None,
    progress: Progress = False,
) -> Clues:
    """Look for names and values that connect two graphs, and take in vectors of a model of yours.

    Names are labels, the names that the pair was given, or the local parts of IRIs; see `labels_of_pair`. All other
    values are compared by what they are: texts, numbers, dates, codes. No link is read.

    Args:
        pair: The pair of graphs.
        names: Whether names are looked at; if not, labels are values like others.
        values: Whether the values of the graphs are looked at.
        features: Vectors of the entities of either graph from any model, [n1, d] and [n2, d], NumPy or torch: row i is
            of entity i, and a row of zeros says nothing. What they weigh beside names is learned from seeds, or from
            pairs that are next to the same anchors (`Clues.weights`). The default, None, has none.
        languages: Language tags of the names, the best first. The default, None, takes the language in which most
            entities of both graphs have names.
        k: The number of entities with similar names or features that are kept for every entity.
        n_threads: The number of threads; the default, None, takes `STEA_NUM_THREADS` or all CPUs of this process.
        executor: Where names are searched, as for `refine`; the default, None, takes the threads of this process.
        progress: True shows how many parts of the search for names are done, None on a terminal only, a function is
            called with (done, total); the default, False, shows nothing.

    Returns:
        `Clues`, to be given to `align` or `SelfTraining`. Where nothing connects the graphs they are empty, and say so.

    Raises:
        ValueError: An argument has an unusable value: features that have not a row for every entity, or hold NaN.
        TypeError: An argument is of the wrong type.

    Example:
        >>> import stea_fast as sf
        >>> kg1 = sf.KG([[0, 0, 1]], entity_names=["http://a.org/Marie_Curie", "http://a.org/Polonium"])
        >>> kg2 = sf.KG([[1, 0, 0]], entity_names=["http://b.org/polonium", "http://b.org/Marie_Curie"])
        >>> clues = sf.find_clues(sf.make_pair(kg1, kg2, seeds=[]))
        >>> clues.anchors.tolist(), clues.found[-1]
        ([[0, 1], [1, 0]], '2 names are equal and belong to one entity of each graph')
    """
    threads = thread_count(n_threads)
    sentences: list[str] = []
    anchors, scores, left_out = np.zeros((0, 2), dtype=np.int64), None, frozenset[str]()
    if names:
        labels = labels_of_pair(pair, languages=languages)
        anchors, scores = _by_name(labels, k, threads, executor_of(executor), progress)
        left_out = frozenset(name for side in labels for name in side.counts)
        sentences += _about_names(labels, scores, len(anchors))
    links = similar_statements(pair, left_out, threads) if values else None
    if values:
        sentences += _about_values(links)
    weights = None
    if features is not None:
        views = {} if scores is None or not len(scores.keys) else {"names": scores}
        shape = pair.kg1.num_entities, pair.kg2.num_entities
        scores, weights = fuse({**views, "features": feature_scores(features, shape, k, threads)}, pair, anchors)
        sentences.append(str(weights))
    return Clues(anchors, scores, links, tuple(sentences), weights)


def _by_name(
    labels: tuple[Labels, Labels], k: int, n_threads: int, executor: Executor | None, progress: Progress
) -> tuple[np.ndarray, NameScores]:
    """Pairs by unique equal names, and how alike names are."""
    texts1, texts2 = (texts.Labels(side.entity, list(side.text), side.num_entities) for side in labels)
    candidates = name_candidates(texts1, texts2, k=k, n_threads=n_threads, executor=executor, progress=progress)
    assert isinstance(candidates.backward, Ranking), "both directions"
    scores = NameScores.of_rankings(candidates.forward, candidates.backward)
    return unique_matches(texts1, texts2).pairs.astype(np.int64), scores


def _about_names(labels: tuple[Labels, Labels], names: NameScores, num_anchors: int) -> list[str]:
    """What was found, for the user."""
    similar = len(np.unique(names.keys // names.shape[1]))
    return [
        *(f"names of the {which} graph: {side.source}" for which, side in zip(SIDES, labels, strict=True)),
        f"{similar:,} entities of the first graph have a name that is similar to one of the second",
        f"{num_anchors:,} names are equal and belong to one entity of each graph",
    ]


def _about_values(links: ValueLinks | None) -> list[str]:
    """What was found, for the user; nothing where there are no values at all."""
    if links is None:
        return []
    first, second = links.sides
    shared = attribute_affinity(links, belief_weights(links)).tocoo()
    best = np.argsort(-shared.data, kind="stable")[:MOST_ATTRIBUTES]
    alike = [
        f"{first.attribute_names[shared.coords[0][i]]} ≈ {second.attribute_names[shared.coords[1][i]]} "
        f"({shared.data[i]:.0%})"
        for i in best.tolist()
        if shared.data[i] >= LEAST_SHARED
    ]
    similar = len(np.unique(first.entity))
    return [
        f"{similar:,} entities of the first graph have a value that is similar to one of the second",
        *([f"attributes that share values: {', '.join(alike)}"] if alike else []),
    ]
