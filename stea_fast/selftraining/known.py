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


def check_graphs(pair: Pair, clues: Clues | None) -> bool:
    """Whether both graphs have triples; one that has none is an error unless something else connects the graphs."""
    check_separate(pair.kg1, pair.kg2, pair.train)
    empty = [name for name, graph in (("kg1", pair.kg1), ("kg2", pair.kg2)) if graph.num_triples == 0]
    if empty and (clues is None or not clues.connects):
        raise ValueError(f"pair.{empty[0]} has no triples: there is nothing to learn from, and nothing to check by")
    return not empty


def check_start(certain: np.ndarray, clues: Clues | None, method: SelfTrainingMethod) -> None:
    """There are certain pairs, or the method can start from what is alike."""
    by_clues = clues is not None and clues.connects and isinstance(method, (Stea, Structural))
    if not len(certain) and not by_clues:
        raise ValueError(NOTHING_KNOWN)


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
