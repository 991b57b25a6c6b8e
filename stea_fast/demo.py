"""A stand-in for an encoder, so that the demo, the examples and the benches have candidates to refine.

It trains nothing: every seed pair shares one random vector, and every entity's embedding is what reaches it
from the seeds within three hops. Real encoders are far better; use yours.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from stea_fast import _validate
from stea_fast.graph import KG
from stea_fast.types import Candidates, Pair, Ranking


def encode(pair: Pair, *, dim: int = 128, hops: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """float32 [n1, d] and [n2, d]: unit vectors propagated from the seeds `pair.train`."""
    _validate.count(dim, "dim", minimum=1)
    anchors = np.random.default_rng(seed).standard_normal((len(pair.train), dim), dtype=np.float32)
    return _propagate(pair.kg1, pair.train[:, 0], anchors, hops), _propagate(pair.kg2, pair.train[:, 1], anchors, hops)


def _propagate(kg: KG, seeds: np.ndarray, anchors: np.ndarray, hops: int) -> np.ndarray:
    shape = (kg.num_entities, kg.num_entities)
    adjacency = csr_array((np.ones(len(kg.edges), dtype=np.float32), kg.neighbors, kg.indptr), shape=shape)
    level = np.zeros((kg.num_entities, anchors.shape[1]), dtype=np.float32)
    level[seeds] = _unit(anchors)
    levels = [level]
    for _ in range(hops):
        level = _unit(adjacency @ level)
        levels.append(level)
    return _unit(np.concatenate(levels, axis=1))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def nearest(emb1: np.ndarray, emb2: np.ndarray, k: int = 10, *, block: int = 1024) -> Candidates:
    """The k nearest of each side by inner product, best first: plain NumPy, a block of rows at a time."""
    return Candidates(_nearest(emb1, emb2, k, block), _nearest(emb2, emb1, k, block))


def _nearest(queries: np.ndarray, keys: np.ndarray, k: int, block: int) -> Ranking:
    k = min(k, len(keys))
    indices = np.empty((len(queries), k), dtype=np.int32)
    scores = np.empty((len(queries), k), dtype=np.float32)
    for begin in range(0, len(queries), block):
        similarity = queries[begin : begin + block] @ keys.T
        top = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
        values = np.take_along_axis(similarity, top, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        indices[begin : begin + block] = np.take_along_axis(top, order, axis=1)
        scores[begin : begin + block] = np.take_along_axis(values, order, axis=1)
    return Ranking(indices, scores)


def candidates(pair: Pair, k: int = 10) -> Candidates:
    """Candidates of the stand-in encoder, ready for `refine`."""
    return nearest(*encode(pair), k)
