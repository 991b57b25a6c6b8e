"""What is decided for every source entity, from rankings with probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast.alignment.decoding import decode
from stea_fast.data.pair import Pair
from stea_fast.formats.result_rows import LinkRow
from stea_fast.types import HasRankings

STATUSES = ("seed", "link", "uncertain", "no_counterpart")
MIN_UNCERTAIN = 0.1  # a candidate that is right less often than this is not worth a look
AGREEMENTS = ("both", "forward", "backward", "none")


@dataclass(frozen=True, eq=False)
class LinkTable:
    """What was decided for every source entity, as arrays of one length in increasing order of the source.

    `align` makes it; `rows` gives it line by line under the ids of your files.

    Attributes:
        sources: The source entities, int64 [n].
        targets: The target of every source, int64 [n]; -1 where there is none. That of an uncertain source is no link.
        probs: The calibrated probability of every target, float64 [n]; NaN where there is none.
        ranks: The place of the target among the candidates of the source, int64 [n] from 1; 0 where it is not listed.
        agreement: Who chose whom, int8 [n]: 0 both, 1 forward only, 2 backward only, 3 neither.
        status: What was decided, int8 [n]: 0 seed, 1 link, 2 uncertain, 3 no counterpart.
        considered: The one target that was judged for every source, int64 [n], -1 where no candidate was left; also
            where it was too unlikely to be named in `targets`.
        considered_probs: The calibrated probability of what was considered, float64 [n]; NaN where there is none.
        label1: A function from a source entity to its original id.
        label2: A function from a target entity to its original id.
        calibration: What the probabilities rest on, in a few words; the default, "", says nothing.

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
    considered: np.ndarray
    considered_probs: np.ndarray
    label1: Callable[[int], str]
    label2: Callable[[int], str]
    calibration: str = ""

    def __len__(self) -> int:
        return len(self.sources)

    def count(self, status: str) -> int:
        """Count the source entities of which one thing was decided.

        Args:
            status: "seed", "link", "uncertain" or "no_counterpart".

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
        return LinkRow(
            name, self.label2(target), float(self.probs[i]), int(self.ranks[i]) or None, AGREEMENTS[self.agreement[i]],
            status, "given" if status == "seed" else self.calibration or None,
        )  # fmt: skip


def chosen_targets(pair: Pair, joint: HasRankings, *, one_to_one: bool) -> np.ndarray:
    """int64 [n]: the candidate of every source that is in no seed, -1 for none."""
    chosen = decode(joint, "one_to_one" if one_to_one else "greedy", seeds=pair.train)
    targets = np.full(pair.kg1.num_entities, -1, dtype=np.int64)
    pairs = to_numpy(chosen.pairs, "pairs")
    targets[pairs[:, 0]] = pairs[:, 1]
    return targets


def threshold_for_precision(probs: np.ndarray, precision: float) -> float:
    """The least probability above which links are expected to be right this often; above 1 where none are."""
    ordered = np.sort(probs[probs > 0])[::-1]
    expected = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
    enough = np.flatnonzero(expected >= precision)
    return float(ordered[enough[-1]]) if len(enough) else float(np.nextafter(1.0, 2.0))


def link_table(
    pair: Pair, joint: HasRankings, targets: np.ndarray, probs: np.ndarray, *, min_prob: float, calibration: str = ""
) -> LinkTable:
    """Decide for every source entity.

    Args:
        pair: graphs and seeds.
        joint: rankings by the joint probability.
        targets: int64 [n], the candidate of every source, -1 for none; `chosen_targets` gives it.
        probs: float64 [n], the calibrated probability of every candidate.
        min_prob: the least probability of a link.
        calibration: what the probabilities rest on, in a few words.
    """
    kept = (targets >= 0) & (probs >= min(MIN_UNCERTAIN, min_prob))
    names = np.select([kept & (probs >= min_prob), kept], [STATUSES.index("link"), STATUSES.index("uncertain")], 3)
    considered, considered_probs = targets.copy(), np.where(targets >= 0, probs, np.nan)
    status = names.astype(np.int8)
    sources, of_seeds = pair.train.T
    considered[sources], considered_probs[sources], status[sources] = of_seeds, 1.0, STATUSES.index("seed")
    named = status != STATUSES.index("no_counterpart")
    targets, probs = np.where(named, considered, -1), np.where(named, considered_probs, np.nan)
    ranks, agreement = _ranks_and_agreement(joint, targets)
    everyone = np.arange(len(targets))
    return LinkTable(
        everyone, targets, probs, ranks, agreement, status, considered, considered_probs, *labels(pair), calibration
    )


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
