"""Several encoders side by side: each errs in its own way, and the sum of their similarities less than any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stea_fast import _validate
from stea_fast._arrays import is_torch, to_numpy
from stea_fast.encoders.base import Encoder, Progress


class Combined:
    """The embeddings of several encoders next to each other, as unit rows times a weight each.

    Args:
        parts: encoders by name; all are trained on the same pairs, for as many epochs as each is asked for.
        weights: one per part; the cosine of the whole is the mean of theirs, by the squares of the weights.
    """

    def __init__(self, parts: Mapping[str, Encoder], weights: Sequence[float] | None = None) -> None:
        self.parts = dict(parts)
        self.weights = [1.0] * len(self.parts) if weights is None else list(weights)
        if len(self.weights) != len(self.parts) or not self.parts:
            raise ValueError(f"weights must be {len(self.parts)} numbers, one per encoder; got {len(self.weights)}")
        for weight in self.weights:
            _validate.number(weight, "weights", minimum=0.0)
        self.first_epochs = max(part.first_epochs for part in self.parts.values())
        self.round_epochs = max(part.round_epochs for part in self.parts.values())

    def fit(self, pairs: Any, epochs: int, *, progress: Progress | None = None) -> None:
        """Train every part; progress is that of the slowest kind, the one with the most epochs."""
        for part in self.parts.values():
            shown = progress if part.first_epochs == self.first_epochs else None
            part.fit(pairs, epochs, progress=shown)

    def embeddings(self) -> tuple[Any, Any]:
        """float32 [n1, Σ d] and [n2, Σ d]; tensors if a part gives tensors, on its device."""
        sides = list(zip(*(part.embeddings() for part in self.parts.values()), strict=True))
        return self._joined(sides[0]), self._joined(sides[1])

    def _joined(self, matrices: Sequence[Any]) -> Any:
        template = next((matrix for matrix in matrices if is_torch(matrix)), None)
        scaled = [
            weight * _unit_rows(to_numpy(matrix, "embeddings"))
            for weight, matrix in zip(self.weights, matrices, strict=True)
        ]
        together = np.concatenate(scaled, axis=1).astype(np.float32, copy=False)
        if template is None:
            return together
        import torch

        return torch.from_numpy(together).to(template.device)

    def state(self) -> dict[str, Any]:
        """The states of all parts, their names before the keys."""
        return {f"{name}.{key}": value for name, part in self.parts.items() for key, value in part.state().items()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`."""
        for name, part in self.parts.items():
            begin = f"{name}."
            part.load_state({key[len(begin) :]: value for key, value in state.items() if key.startswith(begin)})


def _unit_rows(matrix: np.ndarray) -> np.ndarray:
    """Rows of length 1; zero rows stay zero."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.divide(matrix, norms, out=np.zeros(matrix.shape, dtype=np.float32), where=norms > 0)
