"""The torch engine: everything on the device of the tensors, nothing copied to the host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from stea_fast.search.exact import RowCandidates, SearchRequest, SearchResult, gathered_products
from stea_fast.search.ranked import CandidateEngine

BLOCK_ROWS, BLOCK_COLUMNS = 2048, 8192


class TorchEngine(CandidateEngine):
    """Blocks of similarities, their best joined with the best so far."""

    name = "torch"
    products = staticmethod(gathered_products)

    def search(self, request: SearchRequest) -> SearchResult:
        """The `keep` best of every row and of every column, in single precision."""
        side1, side2, scoring, keep, beta = request.side1, request.side2, request.scoring, request.keep, request.beta
        device = side1.array.device
        scale1, scale2 = (scoring.scale1 * side1.block_norms).float(), (scoring.scale2 * side2.block_norms).float()
        offset1, offset2 = scoring.offset1.float(), scoring.offset2.float()
        rows = _Best(len(side1), min(keep, len(side2)), device)
        columns = _Best(len(side2), min(keep, len(side1)), device)
        sums1 = torch.full((len(side1),), -torch.inf, dtype=torch.float64, device=device)
        sums2 = torch.full((len(side2),), -torch.inf, dtype=torch.float64, device=device)
        with full_precision():
            for begin1 in range(0, len(side1), BLOCK_ROWS):
                span1 = slice(begin1, begin1 + BLOCK_ROWS)
                left = side1.block(begin1, begin1 + BLOCK_ROWS) * scale1[span1, None]
                for begin2 in range(0, len(side2), BLOCK_COLUMNS):
                    span2 = slice(begin2, begin2 + BLOCK_COLUMNS)
                    block = left @ side2.block(begin2, begin2 + BLOCK_COLUMNS).T
                    block = block * scale2[span2] - offset1[span1, None] - offset2[span2]
                    rows.add(block, span1, begin2)
                    columns.add(block.T, span2, begin1)
                    if beta is not None:
                        scaled = beta * block.double()
                        sums1[span1] = torch.logaddexp(sums1[span1], scaled.logsumexp(1))
                        sums2[span2] = torch.logaddexp(sums2[span2], scaled.logsumexp(0))
                    request.step(block.numel())
        return SearchResult(rows.candidates(), columns.candidates(), None if beta is None else (sums1, sums2))


class _Best:
    """The best of every line so far, best first."""

    def __init__(self, lines: int, keep: int, device: torch.device) -> None:
        self.scores = torch.full((lines, keep), -torch.inf, device=device)
        self.indices = torch.full((lines, keep), -1, dtype=torch.int64, device=device)

    def add(self, block: torch.Tensor, lines: slice, first: int) -> None:
        keep = self.scores.shape[1]
        scores, indices = block.topk(min(keep, block.shape[1]), dim=1)
        scores = torch.cat([self.scores[lines], scores], dim=1)
        indices = torch.cat([self.indices[lines], indices + first], dim=1)
        self.scores[lines], order = scores.topk(keep, dim=1)
        self.indices[lines] = indices.gather(1, order)

    def candidates(self) -> RowCandidates:
        return RowCandidates(self.indices, self.scores)


@contextmanager
def full_precision() -> Iterator[None]:
    """No TF32: its ten bits of mantissa could hide a true neighbour."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
