"""What is decided for every source entity, from rankings with probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast.alignment.calibration import ProbabilityCalibrator
from stea_fast.alignment.decoding import decode
from stea_fast.data.pair import Pair
from stea_fast.formats.result_rows import LinkRow
from stea_fast.types import HasRankings

STATUSES = ("seed", "link", "no_counterpart")
AGREEMENTS = ("both", "forward", "backward", "none")


@dataclass(frozen=True, eq=False)
class LinkTable:
    """What was decided for every source entity, as arrays of one length in increasing order of the source.

    `align` makes it; `rows` gives it line by line under the ids of your files.

    Attributes:
        sources: The source entities, int64 [n].
        targets: The target of every source, int64 [n]; -1 where there is none.
        probs: The calibrated probability of every link, float64 [n]; NaN where there is none.
        ranks: The place of the target among the candidates of the source, int64 [n] from 1; 0 where it is not listed.
        agreement: Who chose whom, int8 [n]: 0 both, 1 forward only, 2 backward only, 3 neither.
        status: What was decided, int8 [n]: 0 seed, 1 link, 2 no counterpart.
        label1: A function from a source entity to its original id.
        label2: A function from a target entity to its original id.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> links = sf.align(pair, rounds=1, calibration="none").links
        >>> len(links), links.count("seed")
        (200, 16)
    """

    sources: np.ndarray
    targets: np.ndarray
    probs: np.ndarray
    ranks: np.ndarray
    agreement: np.ndarray
    status: np.ndarray
    label1: Callable[[int], str]
    label2: Callable[[int], str]

    def __len__(self) -> int:
        return len(self.sources)

    def count(self, status: str) -> int:
        """Count the source entities of which one thing was decided.

        Args:
            status: "seed", "link" or "no_counterpart".

        Returns:
            The number of entities with that status.
        """
        return int((self.status == STATUSES.index(status)).sum())

    def rows(self) -> Iterator[LinkRow]:
        """Walk through the table in increasing order of the source's name.

        Yields:
            A `LinkRow` with names for every source entity.
        """
        names = [self.label1(source) for source in self.sources.tolist()]
        for i in sorted(range(len(self)), key=names.__getitem__):
            yield self.row(i)

    def row(self, i: int) -> LinkRow:
        """Give one source entity by its place in the table.

        Args:
            i: The place, from 0; it is also the id of the source entity.

        Returns:
            A `LinkRow` with the original ids of source and target.
        """
        name = self.label1(int(self.sources[i]))
        status = STATUSES[self.status[i]]
        target = int(self.targets[i])
        if target < 0:
            return LinkRow(name, None, None, None, None, status)
        agreement = AGREEMENTS[self.agreement[i]]
        return LinkRow(name, self.label2(target), float(self.probs[i]), int(self.ranks[i]) or None, agreement, status)


def link_table(
    pair: Pair, result: HasRankings, calibrator: ProbabilityCalibrator, *, min_prob: float, one_to_one: bool
) -> LinkTable:
    """Decide for every source entity, from rankings with probabilities."""
    below = float(np.nextafter(np.float32(calibrator.inverse(min_prob)), np.float32(-1)))  # the threshold is exclusive
    chosen = decode(result, "one_to_one" if one_to_one else "greedy", threshold=below, seeds=pair.train)
    n = pair.kg1.num_entities
    targets, status = np.full(n, -1, dtype=np.int64), np.full(n, STATUSES.index("no_counterpart"), dtype=np.int8)
    probs = np.full(n, np.nan)
    linked = to_numpy(chosen.pairs, "pairs"), calibrator(to_numpy(chosen.scores, "scores")), "link"
    for links, values, word in (linked, (pair.train, 1.0, "seed")):
        targets[links[:, 0]], probs[links[:, 0]] = links[:, 1], values
        status[links[:, 0]] = STATUSES.index(word)
    ranks, agreement = _ranks_and_agreement(result, targets)
    label1, label2 = labels(pair)
    return LinkTable(np.arange(n), targets, probs, ranks, agreement, status, label1, label2)


def _ranks_and_agreement(result: HasRankings, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    indices = to_numpy(result.forward.indices, "indices")
    is_target = (indices == targets[:, None]) & (targets >= 0)[:, None]
    ranks = np.where(is_target.any(axis=1), is_target.argmax(axis=1) + 1, 0)
    chosen_back = np.zeros(len(targets), dtype=bool)
    if result.backward is not None:
        best_source = to_numpy(result.backward.indices, "indices")[:, 0]
        linked = np.flatnonzero(targets >= 0)
        chosen_back[linked] = best_source[targets[linked]] == linked
    agreement = np.select(
        [(ranks == 1) & chosen_back, ranks == 1, chosen_back], [AGREEMENTS.index(w) for w in AGREEMENTS[:3]], 3
    )
    return ranks, agreement.astype(np.int8)


def labels(pair: Pair) -> tuple[Callable[[int], str], Callable[[int], str]]:
    """How the files of a pair call the entities: by names, else by the ids they had there."""

    def label(names: Sequence[str] | None, ids: np.ndarray | None, entity: int) -> str:
        if names is not None:
            return names[entity]
        return str(entity if ids is None else ids[entity])

    return partial(label, pair.kg1.entity_names, pair.ids1), partial(label, pair.kg2.entity_names, pair.ids2)
