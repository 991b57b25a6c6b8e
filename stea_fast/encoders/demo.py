"""A stand-in for an encoder, so that the demo, the examples and the benches have candidates to refine.

It trains nothing: every seed pair shares one random vector, and every entity's embedding is what reaches it
from the seeds within three hops. Real encoders are far better; use yours.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from stea_fast._util import validate
from stea_fast.data.graph import KG
from stea_fast.data.pair import Pair
from stea_fast.search.topk import topk
from stea_fast.types import Candidates


def encode(pair: Pair, *, dim: int = 128, hops: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Give every entity what reaches it from the seeds within a few hops, as a stand-in for trained embeddings.

    Args:
        pair: The graphs and seeds, which are `pair.train`.
        dim: The dimension of the random vector that a seed pair shares.
        hops: How far these vectors are propagated.
        seed: The seed of the random vectors.

    Returns:
        Embeddings of both graphs, float32 [n1, d] and [n2, d] with d = dim·(hops + 1), of length 1 (or 0 where no
        seed is near).

    Example:
        >>> import stea_fast as sf
        >>> emb1, emb2 = sf.demo.encode(sf.synthetic_pair(num_entities=200, seed=0))
        >>> emb1.shape
        (200, 512)
    """
    validate.count(dim, "dim", minimum=1)
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


def candidates(pair: Pair, k: int = 10) -> Candidates:
    """Find the candidates of the stand-in encoder, ready for `refine`.

    Args:
        pair: The graphs and seeds, which are `pair.train`.
        k: The number of candidates of every entity.

    Returns:
        Candidates in both directions, as `topk` gives them.

    Example:
        >>> import stea_fast as sf
        >>> sf.demo.candidates(sf.synthetic_pair(num_entities=200, seed=0)).forward.indices.shape
        (200, 10)
    """
    return topk(*encode(pair), k, csls=0, metric="ip")
