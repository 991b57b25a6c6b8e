"""The knowledge graph: a set of triples as CSR adjacency of its inverse closure."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import freeze
from stea_fast._util.name_table import NameTable
from stea_fast.data import graph_saving, graph_store
from stea_fast.data.adjacency import functionality, inverse_closure
from stea_fast.data.attributes import Attributes
from stea_fast.data.graph_arguments import checked_attributes, packed_names, size_of
from stea_fast.data.interop import FromOtherLibraries
from stea_fast.types import ArrayLike

if TYPE_CHECKING:
    import torch

    from stea_fast.data.device_graph import DeviceGraph


@dataclass(frozen=True)
class DegreeStats:
    """The degrees of a graph, in which every triple counts at its head and at its tail.

    Attributes:
        mean: The mean degree.
        median: The median degree.
        maximum: The largest degree.
        isolated: The number of entities without triples.
    """

    mean: float
    median: float
    maximum: int
    isolated: int


class KG(FromOtherLibraries):
    """An immutable knowledge graph over its own 0-based entity and relation ids.

    The graph is closed under inverses: the triple r(h, t) gives the edge (r, t) at h and the edge
    (r + R, h) at t, so there are 2R directed relations. Duplicate triples count once; entities without
    triples are kept.

    Args:
        triples: The triples (head, relation, tail), int (n, 3): a NumPy array, a torch tensor or nested lists.
        num_entities: The number of entities; the default, None, takes the largest id + 1.
        num_relations: The number R of relations; the default, None, takes the largest id + 1.
        entity_names: A name for every entity, shown in explanations and files; the default, None, shows ids.
        relation_names: A name for every relation, shown in explanations and files; the default, None, shows ids.
        attributes: The values of the entities, such as names and dates; the default, None, is for none.

    Attributes:
        indptr: The start of every entity's edges, int64 [num_entities + 1].
        edges: The edges (neighbor, relation), int32 [num_edges, 2], ordered by both within an entity.
        functionality: The distinct heads of r divided by the distinct (head, tail) of r, for every directed relation
            r, float32 [2R].

    Raises:
        ValueError: An id is negative or beyond its number, there is not one name for each id, or the attributes are of
            another number of entities.
        TypeError: The triples are not integers, the names are not strings, or the attributes are no `Attributes`.

    Example:
        >>> import stea_fast as sf
        >>> kg = sf.KG([[0, 0, 1], [1, 1, 2]])  # 0 -r0-> 1 -r1-> 2
        >>> kg
        KG(3 entities, 2 relations, 2 triples)
        >>> kg.edges_of(1).tolist()  # (neighbor, relation): 0 by the inverse of r0, and 2 by r1
        [[0, 2], [2, 1]]
    """

    __slots__ = (
        "__weakref__", "attributes", "device_graph", "edges", "entity_names", "functionality", "indptr", "num_entities",
        "num_relations", "relation_names",
    )  # fmt: skip
    indptr: np.ndarray
    edges: np.ndarray
    functionality: np.ndarray
    num_entities: int
    num_relations: int
    entity_names: NameTable | None
    relation_names: NameTable | None
    attributes: Attributes | None
    device_graph: DeviceGraph | None

    def __init__(
        self,
        triples: ArrayLike,
        num_entities: int | None = None,
        num_relations: int | None = None,
        *,
        entity_names: Iterable[str] | None = None,
        relation_names: Iterable[str] | None = None,
        attributes: Attributes | None = None,
    ) -> None:
        array = validate.columns(triples, "triples", 3)
        n = size_of(array[:, [0, 2]], num_entities, "num_entities", "triples[:, [0, 2]]", "entities")
        r = size_of(array[:, 1], num_relations, "num_relations", "triples[:, 1]", "relations", validate.MAX_ID // 2)
        indptr, edges = inverse_closure(array, n, r)
        self._set("num_entities", n)
        self._set("num_relations", r)
        self._set("indptr", freeze(indptr))
        self._set("edges", freeze(edges))
        self._set("functionality", freeze(functionality(indptr, edges, n, r)))
        self._set("entity_names", packed_names(entity_names, n, "entity_names"))
        self._set("relation_names", packed_names(relation_names, r, "relation_names"))
        self._set("attributes", checked_attributes(attributes, n))
        self._set("device_graph", None)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"KG is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"KG is immutable; cannot delete {name!r}")

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        of_this_object = ("__weakref__", "device_graph")
        return None, {name: getattr(self, name) for name in self.__slots__ if name not in of_this_object}

    def __setstate__(self, state: tuple[None, dict[str, object]]) -> None:
        self._set("device_graph", None)  # what is on a device stays there
        self._set("attributes", None)  # a graph that was pickled before there were any has none
        for name, value in state[1].items():  # a copy or an unpickled graph: as immutable as the original
            self._set(name, freeze(value) if isinstance(value, np.ndarray) else value)

    def to(self, device: str | torch.device) -> KG:
        """Copy the graph's arrays to a torch device, for `refine` and `Refiner` to use there.

        Args:
            device: The device, such as "cuda" or "cuda:1"; "cpu" forgets the copy.

        Returns:
            This graph with a copy on the device. The arrays on the host stay and are shared.
        """
        import torch

        from stea_fast.data.device_graph import DeviceGraph

        moved = copy.copy(self)
        place = torch.empty(0, device=device).device  # "cuda" names one of several devices: the current one
        moved._set("device_graph", None if place.type == "cpu" else DeviceGraph.upload(self, place))
        return moved

    @property
    def num_triples(self) -> int:
        """The number of distinct triples."""
        return len(self.edges) // 2

    @property
    def neighbors(self) -> np.ndarray:
        """The neighbour that every edge leads to, int32 [num_edges]."""
        return self.edges[:, 0]

    @property
    def relations(self) -> np.ndarray:
        """The directed relation of every edge, int32 [num_edges] in [0, 2R)."""
        return self.edges[:, 1]

    @property
    def inverse_functionality(self) -> np.ndarray:
        """For every directed relation, fun⁻¹(r) = distinct tails of r / distinct (head, tail) of r, float32 [2R]."""
        return np.roll(self.functionality, self.num_relations)

    @property
    def degrees(self) -> np.ndarray:
        """The number of edges of every entity, int64 [num_entities]."""
        return np.diff(self.indptr)

    @property
    def triples(self) -> np.ndarray:
        """The distinct triples (head, relation, tail), int32 [num_triples, 3], ordered by (head, tail, relation)."""
        forward = self.relations < self.num_relations
        heads = np.repeat(np.arange(self.num_entities, dtype=np.int32), self.degrees)[forward]
        return np.stack([heads, self.relations[forward], self.neighbors[forward]], axis=1)

    def without(self, entities: ArrayLike) -> KG:
        """Take the triples and values of some entities away; all ids and names stay, and these entities stand alone.

        Args:
            entities: The ids of the entities, int [m].

        Returns:
            A new `KG` with as many entities and relations.

        Raises:
            ValueError: An id is not one of the graph.
            TypeError: The ids are no integers.

        Example:
            >>> import stea_fast as sf
            >>> sf.KG([[0, 0, 1], [1, 0, 2]]).without([2]).num_triples
            1
        """
        removed = np.zeros(self.num_entities, dtype=bool)
        ids = validate.integers(entities, "entities")
        validate.in_range(ids, "entities", self.num_entities, "entities")
        removed[ids] = True
        triples = self.triples
        kept = triples[~(removed[triples[:, 0]] | removed[triples[:, 2]])]
        attributes = None if self.attributes is None else self.attributes.without(ids)
        names = {"entity_names": self.entity_names, "relation_names": self.relation_names}
        return KG(kept, self.num_entities, self.num_relations, **names, attributes=attributes)

    def with_attributes(self, attributes: Attributes | None) -> KG:
        """Give the graph other values.

        Args:
            attributes: The values of its entities; None takes them away.

        Returns:
            A `KG` that shares all other arrays with this one.

        Raises:
            ValueError: The attributes are of another number of entities.
            TypeError: They are no `Attributes`.

        Example:
            >>> import stea_fast as sf
            >>> kg = sf.KG([[0, 0, 1]])
            >>> kg.with_attributes(sf.Attributes.from_statements([(0, "name", "Berlin")], kg.num_entities))
            KG(2 entities, 1 relations, 1 triples, 1 values)
        """
        changed = copy.copy(self)
        changed._set("attributes", checked_attributes(attributes, self.num_entities))
        return changed

    def degree_stats(self) -> DegreeStats:
        """Summarise how many edges the entities have.

        Returns:
            The mean, median and largest degree, and the number of entities without triples.
        """
        degrees = self.degrees
        return DegreeStats(
            float(degrees.mean()), float(np.median(degrees)), int(degrees.max()), int((degrees == 0).sum())
        )

    def edges_of(self, entity: int) -> np.ndarray:
        """Look up the edges of one entity.

        Args:
            entity: The id of the entity.

        Returns:
            The edges (neighbor, relation), int32 [degree, 2].
        """
        return self.edges[self.indptr[entity] : self.indptr[entity + 1]]

    def entity_label(self, entity: int) -> str:
        """Name an entity for a person to read.

        Args:
            entity: The id of the entity.

        Returns:
            Its name, or its id as text where the graph has no names.
        """
        return self.entity_names[entity] if self.entity_names is not None else str(entity)

    def relation_label(self, relation: int) -> str:
        """Name a directed relation for a person to read.

        Args:
            relation: The id of the relation, in [0, 2R).

        Returns:
            Its name or id; the inverse of r is written r⁻.
        """
        base = relation % self.num_relations
        label = self.relation_names[base] if self.relation_names is not None else str(base)
        return label if relation < self.num_relations else f"{label}⁻"

    def __repr__(self) -> str:
        values = "" if self.attributes is None else f", {len(self.attributes):,} values"
        counts = f"{self.num_entities:,} entities, {self.num_relations:,} relations, {self.num_triples:,} triples"
        return f"KG({counts}{values})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KG):
            return NotImplemented
        return self is other or (  # what is looked up by a graph, which tables that hold it weakly compare
            self.num_relations == other.num_relations
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.edges, other.edges)
            and self.entity_names == other.entity_names
            and self.relation_names == other.relation_names
            and self.attributes == other.attributes
        )

    __hash__ = object.__hash__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a folder of .npy files, whole or not at all.

        Args:
            path: The folder. A graph that is saved there is replaced when the new one is on the disk, also after a kill
                or a power cut in between; any other folder is not.

        Raises:
            ValueError: There is a folder that is not a saved graph.
            OSError: The folder cannot be written; a graph that was there still is.
        """
        parts = {field.name: getattr(self, field.name) for field in fields(graph_store.StoredGraph)}
        graph_saving.save(graph_store.StoredGraph(**parts), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False) -> KG:
        """Read a graph that `save` wrote.

        Args:
            path: The folder.
            mmap: Whether the arrays stay on the disk until they are touched.

        Returns:
            The graph, equal to the one that was saved.

        Raises:
            ValueError: The folder is not a saved graph, or is damaged.
        """
        stored = graph_store.load(path, mmap=mmap)
        kg = cls.__new__(cls)
        for field in fields(stored):
            kg._set(field.name, getattr(stored, field.name))
        kg._set("device_graph", None)
        return kg
