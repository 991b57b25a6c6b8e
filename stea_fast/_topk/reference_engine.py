"""The obvious engine: finds nothing by itself, so that every row is searched in double precision."""

from __future__ import annotations

import numpy as np

from stea_fast._progress import Step
from stea_fast._topk.embeddings import Embeddings, Scoring
from stea_fast._topk.exact import Floors, Found, Pass, gathered_products


class ReferenceEngine:
    """Candidates of which every other target may be better."""

    name = "reference"
    products = staticmethod(gathered_products)

    def search(
        self,
        side1: Embeddings,
        side2: Embeddings,
        scoring: Scoring,
        keep: int,
        beta: float | None,
        step: Step,
        floors: Floors | None = None,
    ) -> Pass:
        """The first targets, said to be no better than any other."""
        if beta is not None:
            raise ValueError("engine='reference' gives no partition sums (beta); use 'auto', 'native' or 'torch'")
        step(len(side1) * len(side2))
        return Pass(_nothing(len(side1), len(side2), keep), _nothing(len(side2), len(side1), keep))


def _nothing(rows: int, targets: int, keep: int) -> Found:
    indices = np.tile(np.arange(min(keep, targets), dtype=np.int32), (rows, 1))
    return Found(indices, np.full(indices.shape, np.inf, dtype=np.float32))
