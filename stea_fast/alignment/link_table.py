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
    """What was decided for every source entity; arrays of one length, by increasing source.

    Attributes:
        sources, targets: int64; -1 for no target.
        probs: float64; NaN for no link.
        ranks: int64, from 1; 0 where the target is not among the source's candidates.
        agreement, status: int8, places in `AGREEMENTS` and `STATUSES`.
        label1, label2: original ids of the entities.
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
        """How many entities have a status."""
        return int((self.status == STATUSES.index(status)).sum())

    def rows(self) -> Iterator[LinkRow]:
        """By increasing name of the source."""
        names = [self.label1(source) for source in self.sources.tolist()]
        for i in sorted(range(len(self)), key=names.__getitem__):
            yield self.row(i)

    def row(self, i: int) -> LinkRow:
        """One entity by its place in the table."""
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
