"""The obvious engine: finds nothing by itself, so that every row is searched in double precision."""

from __future__ import annotations

import numpy as np

from stea_fast.search.exact import RowCandidates, SearchRequest, SearchResult, gathered_products
from stea_fast.search.ranked import CandidateEngine


class ReferenceEngine(CandidateEngine):
    """Candidates of which every other target may be better."""

    name = "reference"
    products = staticmethod(gathered_products)

    def search(self, request: SearchRequest) -> SearchResult:
        """The first targets, said to be no better than any other."""
        if request.beta is not None:
            raise ValueError("engine='reference' gives no partition sums (beta); use 'auto', 'native' or 'torch'")
        sizes = len(request.side1), len(request.side2)
        request.step(sizes[0] * sizes[1])
        return SearchResult(_nothing(*sizes, request.keep), _nothing(*sizes[::-1], request.keep))


def _nothing(rows: int, targets: int, keep: int) -> RowCandidates:
    indices = np.tile(np.arange(min(keep, targets), dtype=np.int32), (rows, 1))
    return RowCandidates(indices, np.full(indices.shape, np.inf, dtype=np.float32))
