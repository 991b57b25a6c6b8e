"""Partition sums where not all pairs are looked at: the listed candidates, and a sample of all others."""

from __future__ import annotations

import numpy as np

from stea_fast._backends.dense import dense_product
from stea_fast._util.threads import equal_blocks, run_blocks
from stea_fast.search.embeddings import Embeddings, Scoring
from stea_fast.search.exact import similarity

SAMPLE = 1024  # of the other side, the same for all rows
ROWS_AT_ONCE = 1024
SEED = 21


def sampled_sums(
    queries: Embeddings, keys: Embeddings, scoring: Scoring, beta: float, scores: np.ndarray, n_threads: int
) -> np.ndarray:
    """float64 [n]: log Σ exp(β·score) of every row over all keys, estimated.

    The candidates count as they are. What a sample holds below the last of them stands for everything else.

    Args:
        queries, keys, scoring: as in the search, seen from the queries.
        beta: inverse temperature.
        scores: float64 [n, k], of the candidates of every row, -inf where there are none.
        n_threads: how many threads compute it.
    """
    rng = np.random.default_rng(SEED)
    columns = np.sort(rng.permutation(len(keys))[:SAMPLE])
    right = keys.array[columns].astype(np.float32)
    logs = np.empty(len(queries))

    def estimate(begin: int, end: int) -> None:
        rows = np.arange(begin, end)
        product = dense_product(queries.array[begin:end].astype(np.float32), right.T).astype(np.float64)
        plain = similarity(product, queries, keys, scoring, rows[:, None], columns)
        drawn = scoring.final(plain, rows[:, None], columns)
        logs[begin:end] = _log_sums(beta, scores[begin:end], drawn, len(keys))

    run_blocks(estimate, equal_blocks(len(queries), ROWS_AT_ONCE), n_threads)
    return logs


def _log_sums(beta: float, listed: np.ndarray, drawn: np.ndarray, num_keys: int) -> np.ndarray:
    """float64 [m]: from the scores of listed candidates and of drawn keys, which may be among them."""
    present = listed > -np.inf
    least = np.where(present, listed, np.inf).min(axis=1)
    outside = drawn < least[:, None]
    shift = np.maximum(np.where(present.any(axis=1), listed.max(axis=1), -np.inf), drawn.max(axis=1))[:, None]
    others = np.where(outside, np.exp(beta * (drawn - shift)), 0.0).sum(axis=1)
    share = (num_keys - present.sum(axis=1)) / np.maximum(outside.sum(axis=1), 1)
    total = np.exp(beta * (np.where(present, listed, -np.inf) - shift)).sum(axis=1) + share * others
    sums: np.ndarray = beta * shift[:, 0] + np.log(total)
    return sums
