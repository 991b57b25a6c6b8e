"""The relation alignment of a run as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from stea_fast.alignment.api import Alignment


class RelationRow(NamedTuple):
    """Two relations that are seen together.

    Attributes:
        source, target: names of the relations.
        inverse: whether the source's relation is compared with the inverse of the target's.
        source_in_target: P(r ⊆ r'): of the statements of r, the share that r' makes too.
        target_in_source: P(r' ⊆ r).
    """

    source: str
    target: str
    inverse: bool
    source_in_target: float
    target_in_source: float


def relation_rows(alignment: Alignment) -> list[RelationRow]:
    """All observed pairs of relations, those most alike first; empty for methods that align no relations."""
    refinement = alignment.result.refinement
    if refinement is None:
        return []
    kg1, kg2 = alignment.pair.kg1, alignment.pair.kg2
    forward = refinement.relations.sub12[: kg1.num_relations].tocoo()  # the second half says the same of inverses
    backward = refinement.relations.sub21.tocsr()
    r, r2 = forward.coords
    there = np.asarray(forward.data, dtype=np.float64)
    back = np.asarray(backward[r2, r], dtype=np.float64).ravel()
    return [
        RelationRow(
            kg1.relation_label(int(r[i])),
            kg2.relation_label(int(r2[i]) % kg2.num_relations),
            bool(r2[i] >= kg2.num_relations),
            float(there[i]),
            float(back[i]),
        )
        for i in np.lexsort((r2, r, -there - back)).tolist()
    ]
