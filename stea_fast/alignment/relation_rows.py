"""The relation alignment of a run as rows."""

from __future__ import annotations

import numpy as np

from stea_fast._util.sparse import entries_at
from stea_fast.data.graph import KG
from stea_fast.formats.result_rows import RelationRow
from stea_fast.types import RelationAlignment


def relation_rows(kg1: KG, kg2: KG, relations: RelationAlignment) -> list[RelationRow]:
    """All observed pairs of relations, those most alike first."""
    forward = relations.sub12[: kg1.num_relations].tocoo()  # the second half says the same of inverses
    backward = relations.sub21.tocsr()
    r, r2 = forward.coords
    there = np.asarray(forward.data, dtype=np.float64)
    back = entries_at(backward, r2, r)
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
