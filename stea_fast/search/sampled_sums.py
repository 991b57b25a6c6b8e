"""Partition sums where not all pairs are looked at: the listed candidates, and a sample of all others."""

from __future__ import annotations

import numpy as np

from stea_fast._util.array_ops import ops_of
from stea_fast._util.threads import equal_blocks
from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.search.engines.partitioned import matrix_product, over_blocks
from stea_fast.search.exact import similarity
from stea_fast.types import Array

SAMPLE = 1024  # of the other side, the same for all rows
ROWS_AT_ONCE = 1024
SEED = 21


def sampled_sums(
    queries: Embeddings, keys: Embeddings, scoring: Scoring, beta: float, scores: Array, n_threads: int
) -> Array:
    """float64 [n]: log Σ exp(β·score) of every row over all keys, estimated.

    The candidates count as they are. What a sample holds below the last of them stands for everything else.

    Args:
        queries, keys, scoring: as in the search, seen from the queries.
        beta: inverse temperature.
        scores: float64 [n, k], of the candidates of every row, -inf where there are none.
        n_threads: how many threads compute it.
    """
    rng, ops = np.random.default_rng(SEED), queries.ops
    columns = ops.positions(np.sort(rng.permutation(len(keys))[:SAMPLE]))
    right = ops.single(keys.array[columns])
    logs = ops.full(len(queries), 0.0)

    def estimate(begin: int, end: int) -> None:
        rows = ops.arange(len(queries))[begin:end]
        product = ops.double(matrix_product(ops.single(queries.array[begin:end]), right.T))
        plain = similarity(product, queries, keys, scoring, rows[:, None], columns)
        drawn = scoring.final(plain, rows[:, None], columns)
        logs[begin:end] = _log_sums(beta, scores[begin:end], drawn, len(keys))

    blocks = equal_blocks(len(queries), ROWS_AT_ONCE)
    over_blocks(estimate, blocks, n_threads if isinstance(logs, np.ndarray) else None)
    return logs


def _log_sums(beta: float, listed: Array, drawn: Array, num_keys: int) -> Array:
    """float64 [m]: from the scores of listed candidates and of drawn keys, which may be among them."""
    ops = ops_of(listed)
    present = listed > -np.inf
    least = ops.smallest(ops.where(present, listed, np.inf))
    outside = drawn < least[:, None]
    shift = ops.largest(ops.join(ops.where(present, listed, -np.inf), drawn))[:, None]
    others = ops.where(outside, ops.exp(beta * (drawn - shift)), 0.0).sum(1)
    share = (num_keys - ops.double(present.sum(1))) / ops.at_least(ops.double(outside.sum(1)), 1.0)
    total = ops.exp(beta * (ops.where(present, listed, -np.inf) - shift)).sum(1) + share * others
    return beta * shift[:, 0] + ops.log(total)
