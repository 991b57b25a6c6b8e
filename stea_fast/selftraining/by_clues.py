"""A run on graphs without triples: there is nothing to train on, and what is known is put together once."""

from __future__ import annotations

import numpy as np

from stea_fast._util.arrays import to_numpy
from stea_fast.clues.name_scores import NameScores
from stea_fast.clues.value_nodes import ValueNodes
from stea_fast.data.pair import Pair
from stea_fast.evaluation.monitor import Monitor
from stea_fast.refinement.structural import refine_by_structure
from stea_fast.selftraining.history import SelfTrainingResult, State


def run_by_clues(
    pair: Pair, anchors: np.ndarray, names: NameScores | None, values: ValueNodes | None, k: int
) -> SelfTrainingResult:
    """The result of names and values alone, in the form of a run with a single round.

    Args:
        pair: the graphs, which have no triples, and the seeds.
        anchors: int64 [m, 2], pairs by equal names, none of them with an entity of a seed.
        names: how alike names are; None leaves them out.
        values: values as nodes of the graphs; None leaves them out.
        k: how many candidates an entity has.
    """
    state = State(Monitor(pair))
    shape = pair.kg1.num_entities, pair.kg2.num_entities
    nothing = NameScores(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32), shape)
    with state.stage("select"):
        certain = np.concatenate([pair.train, anchors])
        found = refine_by_structure(pair.kg1, pair.kg2, certain, k=k, names=names, values=values)
    pairs = np.concatenate([anchors, to_numpy(found.pairs, "pairs")])
    probs = to_numpy(found.pair_probs, "pair_probs")
    probs = np.concatenate([np.ones(len(anchors), dtype=probs.dtype), probs])
    candidates = (nothing if names is None else names).candidates(k)
    state.finish_round(candidates, found, pairs)
    embeddings = tuple(np.zeros((size, 0), dtype=np.float32) for size in shape)
    return SelfTrainingResult(tuple(state.history), pairs, probs, candidates, found, (embeddings[0], embeddings[1]))
