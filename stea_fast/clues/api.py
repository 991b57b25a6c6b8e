"""`find_clues`: what the names of two graphs say of each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stea_fast.clues.name_scores import NameScores
from stea_fast.clues.types import Clues
from stea_fast.data.labels import Labels
from stea_fast.data.naming import labels_of_pair
from stea_fast.data.pair import Pair
from stea_fast.types import Ranking
from stea_fast.values import labels as values
from stea_fast.values.candidates import name_candidates
from stea_fast.values.exact import unique_matches


def find_clues(
    pair: Pair, *, languages: Sequence[str] | None = None, k: int = 10, n_threads: int | None = None
) -> Clues:
    """Look for names that connect two graphs.

    Names are labels, the names that the pair was given, or the local parts of IRIs; see `labels_of_pair`. No link of the
    pair is read.

    Args:
        pair: The pair of graphs.
        languages: Language tags of the names, the best first. The default, None, takes the language in which most
            entities of both graphs have names.
        k: The number of entities with similar names that are kept for every entity.
        n_threads: The number of threads; the default, None, takes `STEA_NUM_THREADS` or all CPUs of this process.

    Returns:
        `Clues`, to be given to `align` or `SelfTraining`. Where nothing connects the graphs they are empty, and say so.

    Raises:
        ValueError: An argument has an unusable value.

    Example:
        >>> import stea_fast as sf
        >>> kg1 = sf.KG([[0, 0, 1]], entity_names=["http://a.org/Marie_Curie", "http://a.org/Polonium"])
        >>> kg2 = sf.KG([[1, 0, 0]], entity_names=["http://b.org/polonium", "http://b.org/Marie_Curie"])
        >>> clues = sf.find_clues(sf.make_pair(kg1, kg2, seeds=[]))
        >>> clues.anchors.tolist(), clues.found[-1]
        ([[0, 1], [1, 0]], '2 names are equal and belong to one entity of each graph')
    """
    labels = labels_of_pair(pair, languages=languages)
    texts = [values.Labels(side.entity, list(side.text), side.num_entities) for side in labels]
    matches = unique_matches(*texts)
    candidates = name_candidates(*texts, k=k, n_threads=n_threads)
    assert isinstance(candidates.backward, Ranking), "both directions"
    names = NameScores.of_rankings(candidates.forward, candidates.backward)
    return Clues(matches.pairs.astype(np.int64), names, _sentences(labels, names, len(matches.pairs)))


def _sentences(labels: tuple[Labels, Labels], names: NameScores, num_anchors: int) -> tuple[str, ...]:
    """What was found, for the user."""
    origins = (
        f"names of the {which} graph: {side.source}" for which, side in zip(("first", "second"), labels, strict=True)
    )
    similar = len(np.unique(names.keys // names.shape[1]))
    return (
        *origins,
        f"{similar:,} entities of the first graph have a name that is similar to one of the second",
        f"{num_anchors:,} names are equal and belong to one entity of each graph",
    )
