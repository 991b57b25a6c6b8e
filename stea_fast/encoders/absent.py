"""The encoder of runs that have none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stea_fast.encoders.base import Progress

NAME = "none"


class NoEncoder:
    """Stands where an encoder would: there is nothing to train, nothing to keep, and there are no embeddings."""

    first_epochs = round_epochs = 0

    def fit(self, pairs: Any, epochs: int, *, progress: Progress | None = None) -> None:
        """Learn nothing."""

    def embeddings(self) -> tuple[Any, Any]:
        """Fail: nobody should ask."""
        raise TypeError("a run by structure alone has no encoder, and so no embeddings")

    def state(self) -> dict[str, Any]:
        """Nothing is needed to continue."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """There is nothing to continue from."""
