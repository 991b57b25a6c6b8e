"""A pair of graphs and what is known of their alignment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stea_fast.data.graph import KG
from stea_fast.data.labels import Labels
from stea_fast.data.sealed import SealedLinks, seal


@dataclass(frozen=True, eq=False)
class Pair:
    """Two graphs and what is known of their alignment.

    Arrays given as `links` or `test` are sealed: they tell how many they are, and only `evaluate` opens them.

    Attributes:
        kg1: The source graph.
        kg2: The target graph.
        links: All true (source, target) pairs, sealed.
        train: The seeds, int64 [n, 2]: the part of `links` that a method may read.
        test: The rest of `links`, sealed.
        valid: Held-out seeds, int64 [n, 2], where the dataset publishes them; else empty.
        ids1: The original id of every source entity where the files had integer ids, else None.
        ids2: The original id of every target entity where the files had integer ids, else None.
        name: The name of the dataset.
        names1: Names of the source entities that were given with the pair, else None; `labels_of_pair` finds others.
        names2: Names of the target entities that were given with the pair, else None.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> pair.train.shape, len(pair.test)
        ((16, 2), 144)
    """

    kg1: KG
    kg2: KG
    links: SealedLinks
    train: np.ndarray
    test: SealedLinks
    valid: np.ndarray
    ids1: np.ndarray | None = None
    ids2: np.ndarray | None = None
    name: str = ""
    names1: Labels | None = None
    names2: Labels | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", seal(self.links))
        object.__setattr__(self, "test", seal(self.test))

    def without_structure(self) -> Pair:
        """Take the triples of both graphs away, so that names and values alone decide.

        Returns:
            A new `Pair` with the same entities, names, values and links.

        Example:
            >>> import stea_fast as sf
            >>> sf.synthetic_pair(num_entities=200, seed=0).without_structure().kg1.num_triples
            0
        """
        return replace(self, kg1=_without_triples(self.kg1), kg2=_without_triples(self.kg2))

    def __repr__(self) -> str:
        return (
            f"Pair({self.name!r}, {self.kg1}, {self.kg2}, "
            f"{len(self.train):,} train / {len(self.valid):,} valid / {len(self.test):,} test links)"
        )


def _without_triples(kg: KG) -> KG:
    names = {"entity_names": kg.entity_names, "relation_names": kg.relation_names}
    nothing = np.zeros((0, 3), dtype=np.int64)
    return KG(nothing, kg.num_entities, kg.num_relations, **names, attributes=kg.attributes)
