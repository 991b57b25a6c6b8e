"""Relation alignment from all links, test links included: what the leak of the published program is worth.

For comparison only. Nothing uses it unless asked for by the name `oracle`, and `audit` fails on it.
"""

from __future__ import annotations

import numpy as np

from stea_fast.data.pair import Pair
from stea_fast.data.sealed import reveal
from stea_fast.refinement.beliefs import from_pairs
from stea_fast.refinement.relations import align_relations
from stea_fast.types import RelationAlignment


def oracle_relations(pair: Pair) -> RelationAlignment:
    """P(r ⊆ r') and P(r' ⊆ r) counted over the true links.

    Nothing is uncertain about true links, so nothing is smoothed towards a prior.
    """
    sources, targets = reveal(pair.links).T
    weights = np.ones(len(sources), dtype=np.float32)
    forward = from_pairs(sources, targets, weights, pair.kg1.num_entities)
    backward = from_pairs(targets, sources, weights, pair.kg2.num_entities)
    return align_relations(pair.kg1, pair.kg2, forward, backward, smoothing=0.0)
