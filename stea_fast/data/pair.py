"""A pair of graphs and what is known of their alignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stea_fast.data.graph import KG
from stea_fast.data.sealed import SealedLinks, seal


@dataclass(frozen=True, eq=False)
class Pair:
    """Two graphs and what is known of their alignment.

    Attributes:
        kg1, kg2: source and target graph.
        links: all true (source, target) pairs, sealed: only `evaluate` opens them.
        train: int64 [n, 2], the seeds, a part of `links` that a method may read.
        test: the rest of `links`, sealed as well.
        valid: held-out seeds where the dataset publishes them, else empty.
        ids1, ids2: the original id of every entity where the files had integer ids, else None.
        name: name of the dataset.

    Arrays given as `links` or `test` are sealed.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", seal(self.links))
        object.__setattr__(self, "test", seal(self.test))

    def __repr__(self) -> str:
        return (
            f"Pair({self.name!r}, {self.kg1}, {self.kg2}, "
            f"{len(self.train):,} train / {len(self.valid):,} valid / {len(self.test):,} test links)"
        )
