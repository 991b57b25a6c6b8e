"""What an encoder offers. Nothing here needs torch; a foreign encoder needs no base class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from stea_fast._util import validate
from stea_fast.data.graph import KG

Progress = Callable[[int, int], object]


class Encoder(Protocol):
    """What the loop asks of an encoder: an embedding for every entity, learnt from pairs that are taken to be true.

    An encoder of your own needs these members and no base class; arrays are torch tensors or NumPy arrays. `state` and
    `load_state` are needed for checkpoints only.

    Attributes:
        first_epochs: The number of epochs of the first training, on the seeds.
        round_epochs: The number of epochs of every later round of self-training.
    """

    first_epochs: int
    round_epochs: int

    def fit(self, pairs: Any, epochs: int, *, progress: Progress | None = None) -> None:
        """Train on pairs of entities.

        Args:
            pairs: Pairs of a kg1 and a kg2 entity, int (m, 2).
            epochs: The number of epochs.
            progress: A function that is called with (done, total) after every epoch, or None.
        """

    def embeddings(self) -> tuple[Any, Any]:
        """Give the embeddings of both graphs as they are now.

        Returns:
            Two float32 arrays [n1, d] and [n2, d], comparable by cosine.
        """

    def state(self) -> dict[str, Any]:
        """Give everything needed to continue bit for bit in an encoder made with the same arguments.

        Returns:
            Arrays by name.
        """

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` gave.

        Args:
            state: Arrays by name.
        """


class TrainingError(RuntimeError):
    """Training went wrong in a way that more epochs cannot mend."""


def check_pairs(pairs: Any, kg1: KG, kg2: KG) -> np.ndarray:
    """int64 (m, 2) with m ≥ 1, ids in range. An entity may occur more than once."""
    array = validate.columns(pairs, "pairs", 2)
    if len(array) == 0:
        raise ValueError("pairs is empty: an encoder needs at least one (source, target) pair to train on")
    validate.in_range(array[:, 0], "pairs[:, 0]", kg1.num_entities, "source entities")
    validate.in_range(array[:, 1], "pairs[:, 1]", kg2.num_entities, "target entities")
    return array


def check_seed(seed: Any) -> int:
    """A whole number that every random generator takes."""
    return validate.count(seed, "seed", maximum=2**63 - 1)


def check_state(state: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """The same names and shapes as `expected`."""
    shapes, given = ({name: tuple(a.shape) for name, a in arrays.items()} for arrays in (expected, state))
    wrong = [name for name in shapes if given.get(name) != shapes[name]] + sorted(given.keys() - shapes.keys())
    if wrong:
        name = wrong[0]
        raise ValueError(
            f"state does not fit this encoder: {name!r} has shape {given.get(name)}, expected {shapes.get(name)}; "
            "make the encoder with the same graphs and options"
        )
