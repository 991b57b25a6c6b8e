"""What is known of a pair of graphs beside edges and seeds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from stea_fast.clues.exact_values import exact_pairs
from stea_fast.clues.fusion import Weights
from stea_fast.clues.name_scores import NameScores
from stea_fast.clues.value_links import ValueLinks
from stea_fast.clues.value_nodes import can_start

NOTHING_TO_START_FROM = (
    "there is nothing to start from: there are no seeds, no entity of one graph has a name like that of exactly one "
    "entity of the other, and no values that are alike say who has them; give some known links, names in a common "
    "language, or vectors of a model"
)


class NoStartError(ValueError):
    """Raised when there is nothing to start from: there are no seeds, and nothing connects the two graphs."""


@dataclass(frozen=True, eq=False)
class Clues:
    """What names, values and features say of two graphs; from `find_clues`.

    Attributes:
        anchors: Pairs of entities whose names are equal and that share them with no other entity of their graph,
            int64 [m, 2] of (source, target). No entity is in two of them.
        names: The similarity of names, where it is above 0, or the weighted sum of that and of features; None where
            neither is used.
        values: The values that are alike, and who has them; None where there are none, or they are not used.
        found: What was found, a sentence each, for the user.
        weights: What names and features weigh beside each other, and from which links that was learned; None without
            features.

    Example:
        >>> import stea_fast as sf
        >>> kg1 = sf.KG([[0, 0, 1]], entity_names=["http://a.org/Marie_Curie", "http://a.org/Polonium"])
        >>> kg2 = sf.KG([[1, 0, 0]], entity_names=["http://b.org/polonium", "http://b.org/Marie_Curie"])
        >>> sf.find_clues(sf.make_pair(kg1, kg2, seeds=[])).anchors.tolist()
        [[0, 1], [1, 0]]
    """

    anchors: np.ndarray
    names: NameScores | None = None
    values: ValueLinks | None = None
    found: tuple[str, ...] = ()
    weights: Weights | None = None

    @property
    def connects(self) -> bool:
        """Whether there is something to start from without a seed: names or values that say who is who, or features."""
        if len(self.anchors):
            return True
        by_features = self.weights is not None and self.names is not None and len(self.names.keys) > 0
        by_names = self.names is not None and self.names.can_start
        return by_features or by_names or (self.values is not None and can_start(self.values))

    @property
    def exact(self) -> np.ndarray:
        """Pairs of entities by unique equal names or, beside them, by unique equal values, int64 [m, 2].

        Both are nearly always right, so that they can stand for known links. No entity is in two of them.
        """
        if self.values is None:
            return self.anchors
        return np.concatenate([self.anchors, beside(exact_pairs(self.values), self.anchors)])

    def anchors_beside(self, seeds: np.ndarray) -> np.ndarray:
        """The anchors that contradict no seed and repeat none: seeds are what somebody has said.

        Args:
            seeds: Known links, int64 [m, 2].

        Returns:
            Anchors, int64 [n, 2].
        """
        return beside(self.anchors, seeds)

    def check_start(self, seeds: np.ndarray) -> None:
        """Make sure that there is something to start from.

        Args:
            seeds: Known links, int64 [m, 2].

        Raises:
            NoStartError: There are no seeds, and nothing connects the graphs; the message says what was looked at, and
                what helps.
        """
        if not len(seeds) and not self.connects:
            raise NoStartError(f"{NOTHING_TO_START_FROM} ({'; '.join(self.found)})")

    def without(self, pairs: np.ndarray) -> Clues:
        """The same clues as if some pairs were not among those of `exact`: aligned they can be by the rest alone.

        Their entities lose their names, and the equal values that only the two of them have.

        Args:
            pairs: Pairs of entities, int64 [m, 2] of (source, target).

        Returns:
            New `Clues`.
        """
        values = None if self.values is None else self.values.without_unique(pairs)
        return replace(self._without_names(pairs[:, 0], pairs[:, 1]), values=values)

    def without_targets(self, targets: np.ndarray) -> Clues:
        """The same clues as if some entities of the target graph had neither names nor values.

        Args:
            targets: Entities of the target graph, int64 [m].

        Returns:
            New `Clues`.
        """
        values = None if self.values is None else self.values.without_targets(targets)
        return replace(self._without_names(targets[:0], targets), values=values)

    def _without_names(self, sources: np.ndarray, targets: np.ndarray) -> Clues:
        hidden = np.isin(self.anchors[:, 0], sources) | np.isin(self.anchors[:, 1], targets)
        names = None if self.names is None else self.names.without(sources, targets)
        return replace(self, anchors=self.anchors[~hidden], names=names)

    @property
    def fingerprint(self) -> str:
        """A digest of all that a result depends on."""
        digest = hashlib.sha256(self.anchors.tobytes())
        if self.names is not None:
            digest.update(self.names.keys.tobytes() + self.names.scores.tobytes())
        for array in () if self.values is None else self.values.arrays:
            digest.update(array.tobytes())
        return digest.hexdigest()[:16]


def beside(pairs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The pairs neither of whose entities is in a known one."""
    return pairs[~np.isin(pairs[:, 0], known[:, 0]) & ~np.isin(pairs[:, 1], known[:, 1])]
