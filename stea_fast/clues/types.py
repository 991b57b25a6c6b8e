"""What is known of a pair of graphs beside edges and seeds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from stea_fast.clues.name_scores import NameScores

NOTHING_TO_START_FROM = (
    "there is nothing to start from: there are no seeds, and no entity of one graph has a name that exactly one entity "
    "of the other has; give some known links, or names in a common language"
)


class NoStartError(ValueError):
    """Raised when there is nothing to start from: there are no seeds, and nothing connects the two graphs."""


@dataclass(frozen=True, eq=False)
class Clues:
    """What names say of two graphs; from `find_clues`.

    Attributes:
        anchors: Pairs of entities whose names are equal and that share them with no other entity of their graph,
            int64 [m, 2] of (source, target). No entity is in two of them.
        names: The similarity of names, where it is above 0; None where names are not used.
        found: What was found, a sentence each, for the user.

    Example:
        >>> import stea_fast as sf
        >>> kg1 = sf.KG([[0, 0, 1]], entity_names=["http://a.org/Marie_Curie", "http://a.org/Polonium"])
        >>> kg2 = sf.KG([[1, 0, 0]], entity_names=["http://b.org/polonium", "http://b.org/Marie_Curie"])
        >>> sf.find_clues(sf.make_pair(kg1, kg2, seeds=[])).anchors.tolist()
        [[0, 1], [1, 0]]
    """

    anchors: np.ndarray
    names: NameScores | None = None
    found: tuple[str, ...] = ()

    def anchors_beside(self, seeds: np.ndarray) -> np.ndarray:
        """The anchors that contradict no seed and repeat none: seeds are what somebody has said.

        Args:
            seeds: Known links, int64 [m, 2].

        Returns:
            Anchors, int64 [n, 2].
        """
        free = ~np.isin(self.anchors[:, 0], seeds[:, 0]) & ~np.isin(self.anchors[:, 1], seeds[:, 1])
        return self.anchors[free]

    def check_start(self, seeds: np.ndarray) -> None:
        """Make sure that there is something to start from.

        Args:
            seeds: Known links, int64 [m, 2].

        Raises:
            NoStartError: There are neither seeds nor anchors; the message says what was looked at, and what helps.
        """
        if not len(seeds) and not len(self.anchors):
            raise NoStartError(f"{NOTHING_TO_START_FROM} ({'; '.join(self.found)})")

    def without(self, pairs: np.ndarray) -> Clues:
        """The same clues as if the entities of some pairs had no names.

        Args:
            pairs: Pairs of entities, int64 [m, 2] of (source, target).

        Returns:
            New `Clues`.
        """
        sources, targets = pairs[:, 0], pairs[:, 1]
        hidden = np.isin(self.anchors[:, 0], sources) | np.isin(self.anchors[:, 1], targets)
        names = None if self.names is None else self.names.without(sources, targets)
        return replace(self, anchors=self.anchors[~hidden], names=names)

    @property
    def fingerprint(self) -> str:
        """A digest of all that a result depends on."""
        digest = hashlib.sha256(self.anchors.tobytes())
        if self.names is not None:
            digest.update(self.names.keys.tobytes() + self.names.scores.tobytes())
        return digest.hexdigest()[:16]
