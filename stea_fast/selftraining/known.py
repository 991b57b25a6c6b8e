"""What a run of self-training knows before its first round, checked: graphs, seeds, anchors, values."""

from __future__ import annotations

import numpy as np

from stea_fast.clues.types import Clues
from stea_fast.clues.value_nodes import ValueNodes, value_nodes
from stea_fast.data.id_space import check_separate
from stea_fast.data.pair import Pair
from stea_fast.refinement.config import Joint
from stea_fast.selftraining.methods import SelfTrainingMethod, Stea, Structural

NOTHING_KNOWN = (
    "pair.train is empty, and there are no clues: self-training needs a seed, or names or values that both graphs share"
)


def check_graphs(pair: Pair) -> None:
    """Graphs with triples, and ids of their own."""
    for name, graph in (("kg1", pair.kg1), ("kg2", pair.kg2)):
        if graph.num_triples == 0:
            raise ValueError(f"pair.{name} has no triples: there is nothing to learn from, and nothing to check by")
    check_separate(pair.kg1, pair.kg2, pair.train)


def split_links(pair: Pair, anchors: np.ndarray, validation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Seeds and anchors to train on, and seeds held out for calibration."""
    count = int(validation * len(pair.train))
    order = np.random.default_rng(seed).permutation(len(pair.train))
    held_out = np.concatenate([pair.train[np.sort(order[:count])], pair.valid])
    return np.concatenate([pair.train[np.sort(order[count:])], anchors]), held_out


def usable_values(pair: Pair, clues: Clues | None, method: SelfTrainingMethod) -> ValueNodes | None:
    """Values as nodes of the graphs, where the method refines jointly and aligns relations itself."""
    if clues is None or clues.values is None:
        return None
    if isinstance(method, Stea):
        used = isinstance(method.plan.method(0, last=False), Joint) and method.relations == "estimated"
    else:
        used = isinstance(method, Structural)
    return value_nodes(pair.kg1, pair.kg2, clues.values) if used else None
