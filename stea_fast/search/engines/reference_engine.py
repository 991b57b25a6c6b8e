"""The obvious engine: finds nothing by itself, so that every row is searched in double precision."""

from __future__ import annotations

import numpy as np

from stea_fast.search.exact import Found, Pass, Query, gathered_products


class ReferenceEngine:
    """Candidates of which every other target may be better."""

    name = "reference"
    products = staticmethod(gathered_products)

    def search(self, query: Query) -> Pass:
        """The first targets, said to be no better than any other."""
        if query.beta is not None:
            raise ValueError("engine='reference' gives no partition sums (beta); use 'auto', 'native' or 'torch'")
        sizes = len(query.side1), len(query.side2)
        query.step(sizes[0] * sizes[1])
        return Pass(_nothing(*sizes, query.keep), _nothing(*sizes[::-1], query.keep))


def _nothing(rows: int, targets: int, keep: int) -> Found:
    indices = np.tile(np.arange(min(keep, targets), dtype=np.int32), (rows, 1))
    return Found(indices, np.full(indices.shape, np.inf, dtype=np.float32))
