"""Constructors of `KG` from the graphs of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class FromOtherLibraries:
    """What `KG` inherits. None of the libraries is imported: their graphs are read through their own methods."""

    __slots__ = ()

    @classmethod
    def from_pandas(cls, frame: Any, columns: Sequence[Any] | None = None) -> Self:
        """A graph from a pandas DataFrame: `columns` (default: head, relation, tail, or the first three)."""
        from stea_fast.formats import foreign

        return cls.from_table(foreign.from_pandas(frame, columns))

    @classmethod
    def from_networkx(cls, graph: Any, relation: str = "relation") -> Self:
        """A graph from a NetworkX graph; an edge's relation is that attribute, or its key in a multigraph."""
        from stea_fast.formats import foreign

        return cls.from_table(foreign.from_networkx(graph, relation))

    @classmethod
    def from_rdflib(cls, graph: Any, literals: str = "drop") -> Self:
        """A graph from an rdflib Graph; `literals="keep"` makes entities of literals."""
        from stea_fast.formats import foreign

        return cls.from_table(foreign.from_rdflib(graph, literals))

    @classmethod
    def from_pykeen(cls, factory: Any) -> Self:
        """A graph from a PyKEEN TriplesFactory, with its ids and labels."""
        from stea_fast.formats import foreign

        return cls.from_table(foreign.from_pykeen(factory))

    @classmethod
    def from_pyg(cls, data: Any) -> Self:
        """A graph from PyTorch Geometric `Data` with `edge_index` and `edge_type`, with its ids."""
        from stea_fast.formats import foreign

        return cls(*foreign.from_pyg(data))  # type: ignore[call-arg]

    @classmethod
    def from_table(cls, table: Any) -> Self:
        """A graph from a `stea_fast.formats.TripleTable`."""
        names = {"entity_names": table.entities, "relation_names": table.relations}
        return cls(table.triples, len(table.entities), len(table.relations), **names)  # type: ignore[call-arg]
