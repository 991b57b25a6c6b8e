"""The result of a finished run, as a checkpoint holds it: nothing of the run is repeated to have it again.

Embeddings are not among what is held: they may be gigabytes, and follow from the state of the encoder. They are
computed when somebody asks for them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from stea_fast.clues.value_nodes import ValueNodes
from stea_fast.data.pair import Pair
from stea_fast.encoders.base import Encoder
from stea_fast.encoders.checked import checked_embeddings
from stea_fast.refinement.surroundings import Surroundings
from stea_fast.search.topk import pair_scorer
from stea_fast.selftraining.history import Round, SelfTrainingResult
from stea_fast.selftraining.records import packed, unpacked
from stea_fast.types import Array, PairScores

LEFT_OUT = ("score", "_around")  # what holds embeddings or graphs


class PackedResult(NamedTuple):
    """A result as plain data, and the arrays that it names."""

    plain: Any
    arrays: dict[str, Any]


def pack_result(result: SelfTrainingResult) -> PackedResult:
    """Everything of a result but its history, which a checkpoint has anyway, and its embeddings."""
    arrays: dict[str, Any] = {}
    parts = [result.pairs, result.pair_probs, result.candidates, result.refinement]
    # The means of CSLS: with them scores of other pairs can be computed.
    means = getattr(getattr(result.candidates, "score", None), "means", None)
    return PackedResult(packed([*parts, means], "part", arrays, LEFT_OUT), arrays)


def unpack_result(
    held: PackedResult, history: list[Round], encoder: Encoder, pair: Pair, values: ValueNodes | None
) -> SelfTrainingResult:
    """The result of a run whose encoder is in its last state; equal to the bit to the one that was packed."""
    embeddings: Any = _Embeddings(encoder, pair)
    *parts, means = held.plain
    score = _Scores(embeddings, unpacked(means, held.arrays, {}))
    left_out = {"score": score, "_around": Surroundings((pair.kg1, pair.kg2), values)}
    pairs, probs, candidates, refinement = unpacked(parts, held.arrays, left_out)
    if candidates is None:
        embeddings = None
    return SelfTrainingResult(tuple(history), pairs, probs, candidates, refinement, embeddings)


class _Embeddings:
    """The embeddings of a finished run, computed when they are first asked for."""

    def __init__(self, encoder: Encoder, pair: Pair) -> None:
        self.encoder, self.pair = encoder, pair

    @cached_property
    def computed(self) -> tuple[Array, Array]:
        return checked_embeddings(self.encoder, self.pair.kg1, self.pair.kg2)

    def __call__(self) -> tuple[Array, Array]:
        return self.computed


class _Scores:
    """Scores of any pairs, as `topk` gives them, from embeddings that are computed when the first is asked for."""

    def __init__(self, embeddings: _Embeddings, means: tuple[Array, Array] | None) -> None:
        self.embeddings, self.means = embeddings, means

    @cached_property
    def scorer(self) -> PairScores:
        return pair_scorer(*self.embeddings(), means=self.means)

    def __call__(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.scorer(rows, columns)
