"""Refinement without an encoder: what is known spreads over the edges until the matched pairs settle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stea_fast._util.arrays import placed
from stea_fast.clues.name_scores import NAME_BETA, NameScores
from stea_fast.clues.value_nodes import ValueNodes
from stea_fast.data.graph import KG
from stea_fast.refinement.api import Refinement, refined
from stea_fast.refinement.config import Joint
from stea_fast.refinement.problem import Execution, problem_of
from stea_fast.types import Candidates, Ranking

# Evidence stands alone here: it weighs more, one witness is not trusted fully, and damping keeps rivals from swinging.
# Relations that meet at seeds help in every sweep, because from few seeds nothing else says which relations are alike.
STRUCTURAL = Joint(evidence_weight=24.0, sweeps=24, lone_witness=0.5, damping=0.3, start_sweeps=24, beta=0.0)
# Where no other view takes part, weak proposals are noise. Beside one they are not, unless the graphs are so sparse
# that many entities have no others (bench/NOTES.md).
ALONE = replace(STRUCTURAL, least_proposal=0.03)
SPARSE = 6.5  # edges of an entity, in the mean: between the 4.9 and the 8.5 of the graphs where it was tried

HERE = Execution()


def beside_another_view(kg1: KG, kg2: KG) -> Joint:
    """How structure alone is refined where its result is one of two views."""
    edges, entities = len(kg1.edges) + len(kg2.edges), kg1.num_entities + kg2.num_entities
    return ALONE if edges < SPARSE * entities else STRUCTURAL


def refine_by_structure(
    kg1: KG,
    kg2: KG,
    seeds: np.ndarray,
    *,
    k: int,
    method: Joint = STRUCTURAL,
    names: NameScores | None = None,
    values: ValueNodes | None = None,
    execution: Execution = HERE,
) -> Refinement:
    """Spread seeds over both graphs: matched neighbours propose pairs, and no encoder has a say.

    Args:
        kg1, kg2: the graphs.
        seeds: int64 [m, 2], what is taken for certain.
        k: how many candidates the rankings hold.
        method: how the pairs are refined; where names or values take part, every proposal counts.
        names: how alike names are; None leaves them out.
        values: values as nodes of the graphs; None leaves them out.
        execution: where it runs.
    """
    candidates = _no_candidates(kg1, kg2, k, execution.device) if names is None else names.candidates(k)
    problem = problem_of(candidates, kg1, kg2, seeds, (), None, execution)
    if names is not None or values is not None:
        method = replace(method, least_proposal=0.0)
    return refined(replace(problem, values=values), method if names is None else replace(method, beta=NAME_BETA))


def _no_candidates(kg1: KG, kg2: KG, k: int, device: str) -> Candidates:
    """Empty lists, which lie where the refinement is to work."""
    there = None if device == "cpu" else device
    sides = (np.full((kg.num_entities, k), -1, dtype=np.int32) for kg in (kg1, kg2))
    forward, backward = (
        Ranking(placed(indices, "indices", there), placed(np.zeros(indices.shape, dtype=np.float32), "scores", there))
        for indices in sides
    )
    return Candidates(forward, backward)
