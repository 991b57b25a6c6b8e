"""Values as nodes of a graph: what they are believed to be is given by their similarity, and never changes.

An attribute is then a relation that leads from entities to values, and the evidence, the alignment of relations and
proposals treat it as any other. The belief that a value v is the value v' is

    w(v, v') = similarity(v, v') / max(f(v, v'), f(v', v)),

where f(v, v') counts the entities of the other graph whose values are at least as similar to v as v' is. This is the
inverse functionality at one value: a name that one person has says who it is, "1990" hardly says anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from stea_fast._util.arrays import freeze
from stea_fast._util.sparse import offsets, rows_of
from stea_fast.clues.value_links import ValueLinks, ValueSide
from stea_fast.data.graph import KG
from stea_fast.types import Beliefs

MIN_WEIGHT = 0.001  # of a belief; what is below adds nothing that could be seen
ENOUGH_TO_START = 0.5  # of the beliefs of one entity's values together: it is this entity or, no likelier, one other


class GraphWithValues(KG):
    """A graph whose last entities are values, and whose last relations are attributes.

    The inverse functionality of attributes is 1, because the beliefs about values have it, value by value.
    """

    __slots__ = ("plain", "side")
    plain: KG
    side: ValueSide

    def __init__(self, plain: KG, side: ValueSide) -> None:
        n, r = plain.num_entities, plain.num_relations
        statements = np.stack([side.entity, r + side.attribute, n + side.value], axis=1)
        size = n + len(side.texts), r + len(side.attribute_names)
        super().__init__(np.concatenate([plain.triples.astype(np.int64), statements]), *size)
        functionality = self.functionality.copy()
        functionality[r : size[1]] = functionality[size[1] + r :] = 1.0
        self._set("functionality", freeze(functionality))
        self._set("plain", plain)
        self._set("side", side)

    def entity_label(self, entity: int) -> str:
        """The name of an entity, or a value in quotation marks."""
        n = self.plain.num_entities
        return self.plain.entity_label(entity) if entity < n else f'"{self.side.texts[entity - n]}"'

    def relation_label(self, relation: int) -> str:
        """The name of a relation or attribute; the inverse of r is written r⁻."""
        base, r = relation % self.num_relations, self.plain.num_relations
        label = self.plain.relation_label(base) if base < r else self.side.attribute_names[base - r]
        return label if relation < self.num_relations else f"{label}⁻"


@dataclass(frozen=True, eq=False)
class ValueNodes:
    """Two graphs with their values as nodes, and what the values are believed to be.

    Attributes:
        graphs: The graphs; entities and relations have the ids that they have without values.
        beliefs: Of the value nodes of either graph alone: the ids of values of the other graph, and weights.
        affinity: How far the directed relations of both graphs meet at similar values, float32 [2R1, 2R2]: what is
            known of attributes before any entity is.
    """

    graphs: tuple[GraphWithValues, GraphWithValues]
    beliefs: tuple[Beliefs, Beliefs]
    affinity: csr_array


def value_nodes(kg1: KG, kg2: KG, links: ValueLinks) -> ValueNodes:
    """Put the values of two graphs behind their entities."""
    first, second = (GraphWithValues(kg, side) for kg, side in zip((kg1, kg2), links.sides, strict=True))
    all_weights = belief_weights(links)
    kept = all_weights >= MIN_WEIGHT
    (one, two), weights = links.pairs[kept].T, all_weights[kept]
    beliefs = (
        _beliefs(one, kg2.num_entities + two, weights, len(links.sides[0].texts)),
        _beliefs(two, kg1.num_entities + one, weights, len(links.sides[1].texts)),
    )
    return ValueNodes((first, second), beliefs, _of_relations(attribute_affinity(links, all_weights), first, second))


def belief_weights(links: ValueLinks) -> np.ndarray:
    """float64 [p]: the belief that two values are the same, and that what has one has the other."""
    (one, two), similarity = links.pairs.T, links.similarity.astype(np.float64)
    owners1, owners2 = (side.owners for side in links.sides)
    rivals = np.maximum(
        _at_least_as_similar(one, similarity, owners2[two]), _at_least_as_similar(two, similarity, owners1[one])
    )
    return similarity / np.maximum(rivals, 1)


def can_start(links: ValueLinks) -> bool:
    """Whether the values of some entity together say who it is; what all share does not."""
    side, best = links.sides[0], np.zeros(len(links.sides[0].texts))
    np.maximum.at(best, links.pairs[:, 0], belief_weights(links))
    entity, value = np.unique(np.stack([side.entity, side.value]), axis=1)
    return bool(np.bincount(entity, weights=best[value]).max(initial=0.0) >= ENOUGH_TO_START)


def _at_least_as_similar(group: np.ndarray, similarity: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """int64 [p]: how many owners the pairs of a group have in all that are at least as similar as this one."""
    order = np.lexsort((-similarity, group))
    ordered, total = np.stack([group[order], similarity[order]], axis=1), np.cumsum(owners[order])
    ends = np.flatnonzero(np.append((ordered[1:] != ordered[:-1]).any(axis=1), True))  # of equally similar ones
    upto = total[ends][np.searchsorted(ends, np.arange(len(order)))]
    starts = np.flatnonzero(np.append(True, ordered[1:, 0] != ordered[:-1, 0]))
    before = np.concatenate([[0], total])[starts][np.searchsorted(starts, np.arange(len(order)), side="right") - 1]
    found = np.empty(len(order), dtype=np.int64)
    found[order] = upto - before
    return found


def _beliefs(rows: np.ndarray, targets: np.ndarray, weights: np.ndarray, size: int) -> Beliefs:
    order = np.lexsort((targets, rows))
    return Beliefs(offsets(rows[order], size), targets[order].astype(np.int32), weights[order].astype(np.float32))


def attribute_affinity(links: ValueLinks, weights: np.ndarray) -> csr_array:
    """float32 [A1, A2]: c²/((n(a) + 1)·(n(a') + 1)), with c the weight of the values at which two attributes meet.

    n counts the values of an attribute that are like any of the other graph.
    """
    occurring = [_occurring(side) for side in links.sides]
    one, two = links.pairs.T
    alike = csr_array(coo_array((weights, (one, two)), shape=(occurring[0].shape[0], occurring[1].shape[0])))
    together = csr_array(occurring[0].T @ alike @ occurring[1])
    totals = [np.asarray(side.sum(axis=0)).ravel() + 1.0 for side in occurring]
    total1, total2 = totals[0][rows_of(together.indptr)], totals[1][together.indices]
    share = np.minimum(together.data, np.minimum(total1, total2)) ** 2 / (total1 * total2)
    return csr_array((share.astype(np.float32), together.indices, together.indptr), shape=together.shape)


def _of_relations(attributes: csr_array, first: GraphWithValues, second: GraphWithValues) -> csr_array:
    """The affinity of attributes and of their inverses where these stand among directed relations, [2R1, 2R2]."""
    rows = first.plain.num_relations + rows_of(attributes.indptr)
    columns = second.plain.num_relations + attributes.indices
    rows = np.concatenate([rows, rows + first.num_relations])
    columns = np.concatenate([columns, columns + second.num_relations])
    shape = 2 * first.num_relations, 2 * second.num_relations
    return csr_array(coo_array((np.tile(attributes.data, 2), (rows, columns)), shape=shape))


def _occurring(side: ValueSide) -> csr_array:
    """float64 [values, attributes]: 1 where a value occurs with an attribute."""
    value, attribute = np.unique(np.stack([side.value, side.attribute]), axis=1)
    shape = len(side.texts), len(side.attribute_names)
    return csr_array(coo_array((np.ones(len(value)), (value, attribute)), shape=shape))
