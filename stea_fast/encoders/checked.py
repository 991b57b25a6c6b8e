"""Using an encoder, whoever wrote it: what it lacks or gets wrong is an error that names it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from stea_fast._executors.base import Executor
from stea_fast._util import validate
from stea_fast._util.array_ops import ops_of
from stea_fast._util.arrays import where_it_is
from stea_fast._util.mapped import Empty
from stea_fast._util.progress import Progress, steps
from stea_fast.data.graph import KG
from stea_fast.encoders.base import Encoder
from stea_fast.encoders.propagation import Propagation

ROWS_AT_ONCE = 1 << 14  # checked at a time


def epochs_of(given: int | None, name: str, encoder: Any) -> int:
    """The epochs that were asked for, or else the encoder's own."""
    epochs = getattr(encoder, name, None) if given is None else given
    if epochs is None:
        raise ValueError(f"{name} must be given: the encoder {type(encoder).__name__} has no default")
    return validate.count(epochs, name)


def train(encoder: Encoder, pairs: np.ndarray, epochs: int, progress: bool | None) -> None:
    """Train, with progress if the encoder can report it."""
    if "progress" not in inspect.signature(encoder.fit).parameters:
        encoder.fit(pairs, epochs)
        return
    with steps(progress, float(epochs), f"training on {len(pairs):,} pairs") as step:
        encoder.fit(pairs, epochs, progress=lambda done, total: step(1.0))


def checked_embeddings(encoder: Encoder, kg1: KG, kg2: KG) -> tuple[Any, Any]:
    """Two finite matrices with a row per entity and equally many columns."""
    embeddings = encoder.embeddings()
    try:
        shapes = [tuple(side.shape) for side in embeddings]
    except (TypeError, AttributeError):
        raise TypeError("the encoder's embeddings() must return two matrices") from None
    rows = [kg1.num_entities, kg2.num_entities]
    if len(shapes) != 2 or [shape[0] for shape in shapes if len(shape) == 2] != rows:
        raise ValueError(f"the encoder must give a row per entity, {rows[0]} and {rows[1]}; got shapes {shapes}")
    if shapes[0][1] != shapes[1][1]:
        raise ValueError(f"the encoder must give both graphs equally many columns; got shapes {shapes}")
    for name, side in zip(("kg1", "kg2"), embeddings, strict=True):
        if (row := _first_infinite(side, name)) is not None:
            raise ValueError(f"the encoder's embeddings of {name} hold NaN or infinity, first in row {row}")
    return embeddings[0], embeddings[1]


def _first_infinite(matrix: Any, name: str) -> int | None:
    """The first row that holds NaN or infinity, looking at some rows at a time."""
    for begin in range(0, len(matrix), ROWS_AT_ONCE):
        rows = where_it_is(matrix[begin : begin + ROWS_AT_ONCE], name)
        ops = ops_of(rows)
        unusable = ~ops.is_finite(rows).all(1)
        if bool(unusable.any()):
            return begin + int(ops.nonzero(unusable)[0])
    return None


def computed_by(executor: Executor | None, encoder: Encoder, progress: Progress = False) -> Encoder:
    """The encoder, told where to compute its embeddings if it can compute them elsewhere, and to show how far it is."""
    if isinstance(encoder, Propagation):
        encoder.executor, encoder.progress = executor, progress
    return encoder


def keep_embeddings(empty: Empty, *encoders: Encoder | None) -> None:
    """Tell the encoders where their embeddings are to lie, if they can choose."""
    for encoder in encoders:
        if isinstance(encoder, Propagation):
            encoder.empty = empty
