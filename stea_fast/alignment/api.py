"""`align`: from a pair of graphs to links with calibrated probabilities, for every source entity."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy
from stea_fast._util.options import names_nearest
from stea_fast.alignment.calibration import Confidence, cross_fit
from stea_fast.alignment.decoding import decode
from stea_fast.data.pair import Pair
from stea_fast.evaluation.quality import Quality, quality
from stea_fast.formats.links import LinkRow
from stea_fast.selftraining.config import SelfTrainingConfig
from stea_fast.selftraining.history import Round, SelfTrainingResult
from stea_fast.selftraining.loop import SelfTraining
from stea_fast.selftraining.methods import Stea
from stea_fast.selftraining.presets import configured
from stea_fast.types import Candidates, Ranking

CALIBRATIONS = ("auto", "holdout", "crossfit", "none")
STATUSES = ("seed", "link", "no_counterpart")
AGREEMENTS = ("both", "forward", "backward", "none")
FOLDS = 5
CHEAP = 5_000  # entities of both graphs together, up to which cross-fitting is a matter of seconds


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


@dataclass(frozen=True, eq=False)
class Alignment:
    """What `align` returns.

    Attributes:
        pair: what was aligned.
        links: a decision for every source entity.
        confidence: how probabilities were calibrated.
        result: the run behind it, with `history`, `refinement` and rankings.
        settings: the options, to run it again.
    """

    pair: Pair
    links: LinkTable
    confidence: Confidence
    result: SelfTrainingResult
    settings: dict[str, Any]

    @property
    def pairs(self) -> np.ndarray:
        """int64 [m, 2]: the links beyond the seeds, for `evaluate`."""
        chosen = self.links.status == STATUSES.index("link")
        return np.stack([self.links.sources[chosen], self.links.targets[chosen]], axis=1)

    @property
    def forward(self) -> Any:
        """The ranking of every source entity, for `evaluate`."""
        return self.result.forward

    @property
    def backward(self) -> Any:
        """The ranking of every target entity."""
        return self.result.backward

    def quality(self) -> Quality | None:
        """What the test links say of the result; None where no test link is known."""
        return quality(self.pair, self.result.candidates, self)

    def write_links(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:
        """Write the links to a file, whole or not at all; see `stea_fast.alignment.output`."""
        from stea_fast.alignment.output import write_links

        write_links(self, path, format=format)

    def write_relations(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:
        """Write the relation alignment to a file, whole or not at all."""
        from stea_fast.alignment.output import write_relations

        write_relations(self, path, format=format)

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML page about the result, whole or not at all."""
        from stea_fast.alignment.report import write_report

        write_report(self, path)


def _parts_of_the_preset() -> dict[str, str]:
    """How parts of a configuration are given to `align`, which has only a preset."""
    return {
        field.name: f"preset=dataclasses.replace(sf.preset('fast'), {field.name}=...)"
        for field in fields(SelfTrainingConfig)
    }


@names_nearest(_parts_of_the_preset)
def align(
    pair: Pair,
    *,
    preset: str | SelfTrainingConfig = "fast",
    rounds: int | None = None,
    min_prob: float = 0.5,
    one_to_one: bool = False,
    calibration: str = "auto",
    seed: int | None = None,
    device: str = "cpu",
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callable[[Round], object]] = (),
    progress: bool | None = None,
) -> Alignment:
    """Align two graphs: self-train, calibrate, decide for every source entity.

    Args:
        pair: graphs and seeds, of `read_pair`, `make_pair` or `load_pair`.
        preset: "fast", "full", or a whole `sf.SelfTrainingConfig` whose method is "stea"; see `preset`.
        rounds: rounds of self-training; default: the preset's.
        min_prob: a source whose best candidate has a smaller calibrated probability has no counterpart.
        one_to_one: link no target twice: the matching with the largest sum of probabilities.
        calibration: "holdout" runs once more without a fifth of the seeds, "crossfit" five times without a fifth each,
            "none" not at all; "auto" cross-fits small pairs and holds out of others.
        seed: of the encoder and of the held-out seeds; default: the preset's.
        device: of the encoder: "cpu" or "cuda".
        checkpoint: a folder from which the last run continues after an interruption; see `SelfTraining`.
        callbacks: functions called with every `Round` of every run, the last of which counts.
        progress: True shows progress, False none, None (default) only on a terminal.

    Returns:
        An `Alignment`: links with probabilities, and ways to write them. The probability is that of an entity that
        has a counterpart: all held-out seeds have one.

    Raises:
        ValueError, TypeError: an argument is unusable; the message says what was expected.

    Example:
        >>> import stea_fast as sf
        >>> pair = sf.synthetic_pair(num_entities=200, seed=0)
        >>> alignment = sf.align(pair, rounds=1, calibration="none")
        >>> len(alignment.links)
        200
    """
    min_prob = validate.number(min_prob, "min_prob", minimum=0.0, maximum=1.0)
    validate.choice(calibration, "calibration", CALIBRATIONS)
    config = configured(preset, rounds=rounds, seed=seed)
    if not isinstance(config.method, Stea):
        raise ValueError(f"align needs probabilities, which only sf.Stea gives; got {config.method!r}")
    if calibration == "auto":
        calibration = "crossfit" if pair.kg1.num_entities + pair.kg2.num_entities <= CHEAP else "holdout"

    def run(part: Pair, folder: str | Path | None = None) -> SelfTrainingResult:
        return SelfTraining(
            part, preset=config, device=device, checkpoint=folder, callbacks=callbacks, progress=progress
        ).run()

    confidence = Confidence(note="not calibrated: calibration was not asked for")
    if calibration != "none":
        folds = FOLDS if calibration == "crossfit" else 1
        confidence = cross_fit(pair, lambda part: both_ways(run(part)), folds=folds, seed=config.seed)
    result = run(pair, checkpoint)
    settings = {
        "preset": preset if isinstance(preset, str) else "of its own", **config.to_dict(), "min_prob": min_prob,
        "one_to_one": one_to_one, "calibration": calibration, "device": device,
        "checkpoint": None if checkpoint is None else str(checkpoint),
    }  # fmt: skip
    links = link_table(pair, both_ways(result), confidence, min_prob=min_prob, one_to_one=one_to_one)
    return Alignment(pair, links, confidence, result, settings)


def both_ways(result: Any) -> Candidates:
    """Rankings by √(p·p'), where p is the probability of source → target and p' that of target → source.

    A source without counterpart may be sure of its best target, but that target is sure of another source: only what
    both directions hold likely is likely a link. A pair that one direction does not list has p' = 0. Nor is a pair
    likelier than its support: two entities without counterpart may be left over for each other.
    """
    forward, backward = (_arrays(side) for side in (result.forward, result.backward))
    return Candidates(_joint(forward, backward), _joint(backward, forward))


def _arrays(ranking: Any) -> tuple[np.ndarray, np.ndarray]:
    indices = to_numpy(ranking.indices, "indices").astype(np.int64)
    probs = np.clip(to_numpy(ranking.scores, "scores"), 0.0, 1.0)
    if getattr(ranking, "support", None) is not None:
        probs = np.minimum(probs, to_numpy(ranking.support, "support"))
    return indices, np.where(indices >= 0, probs, 0.0)


def _joint(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> Ranking:
    """Each row of `one` by the joint probability, best first."""
    (indices, probs), (back, back_probs) = one, other
    width = len(indices)
    keys = np.where(back >= 0, np.arange(len(back))[:, None] * width + back, -1).ravel()
    order = np.argsort(keys)
    wanted = np.where(indices >= 0, indices * width + np.arange(width)[:, None], -2)
    places = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    listed = keys[order[places]] == wanted
    joint = np.sqrt(probs * np.where(listed, back_probs.ravel()[order[places]], 0.0)).astype(np.float32)
    best_first = np.argsort(-joint, axis=1, kind="stable")
    return Ranking(np.take_along_axis(indices, best_first, axis=1), np.take_along_axis(joint, best_first, axis=1))


def link_table(pair: Pair, result: Any, confidence: Confidence, *, min_prob: float, one_to_one: bool) -> LinkTable:
    """Decide for every source entity, from rankings with probabilities."""
    below = float(np.nextafter(np.float32(confidence.inverse(min_prob)), np.float32(-1)))  # the threshold is exclusive
    found = decode(result, "one_to_one" if one_to_one else "greedy", threshold=below, seeds=pair.train)
    n = pair.kg1.num_entities
    targets, status = np.full(n, -1, dtype=np.int64), np.full(n, STATUSES.index("no_counterpart"), dtype=np.int8)
    probs = np.full(n, np.nan)
    for links, values, word in ((to_numpy(found.pairs, "pairs"), confidence(to_numpy(found.scores, "scores")), "link"),
                                (pair.train, 1.0, "seed")):  # fmt: skip
        targets[links[:, 0]], probs[links[:, 0]] = links[:, 1], values
        status[links[:, 0]] = STATUSES.index(word)
    ranks, agreement = _ranks_and_agreement(result, targets)
    label1, label2 = labels(pair)
    return LinkTable(np.arange(n), targets, probs, ranks, agreement, status, label1, label2)


def _ranks_and_agreement(result: Any, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
