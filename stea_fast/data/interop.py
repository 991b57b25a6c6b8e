"""Constructors of `KG` from the graphs of other libraries, none of which is imported here."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import to_numpy
from stea_fast._util.name_table import NameTable
from stea_fast.data.attributes import Attributes
from stea_fast.formats.entity_tables import ValueSink, attribute_columns, entity_column
from stea_fast.formats.literal_values import names_as_values, spell_literal
from stea_fast.formats.tabular import HEADER
from stea_fast.formats.triple_table import Problems, TableBuilder, TripleTable
from stea_fast.formats.triples import LITERALS
from stea_fast.formats.value_pool import Value

if TYPE_CHECKING:
    from typing_extensions import Self


class FromOtherLibraries:
    """What `KG` inherits. None of the libraries is imported: their graphs are read through their own methods."""

    __slots__ = ()

    @classmethod
    def from_pandas(cls, frame: Any, columns: Sequence[Any] | None = None, *, entities: Any = None) -> Self:
        """Make a graph from a pandas DataFrame with a row for every triple.

        Args:
            frame: The DataFrame; its values become names.
            columns: The columns of head, relation and tail. The default, None, takes those called "head", "relation"
                and "tail", or else the first three.
            entities: A DataFrame with a row for every entity: a column called "id" or "entity", or else the first,
                names it, and all others are attributes, with values where they are not missing. The default, None, is
                for no values.

        Returns:
            The graph, with names of entities and relations, and with values.

        Raises:
            ValueError: A column is not there, or one of names holds missing values.
        """
        return cls.from_table(_table_from_pandas(frame, columns, entities))

    @classmethod
    def from_networkx(cls, graph: Any, relation: str = "relation") -> Self:
        """Make a graph from a NetworkX graph with an edge for every triple.

        Args:
            graph: The NetworkX graph; its nodes become entities, also those without edges.
            relation: The attribute of an edge that names its relation; without it the key of a multigraph's edge
                counts.

        Returns:
            The graph, with names of entities and relations.
        """
        return cls.from_table(_table_from_networkx(graph, relation))

    @classmethod
    def from_rdflib(cls, graph: Any, literals: str = "values") -> Self:
        """Make a graph from an rdflib Graph.

        Args:
            graph: The rdflib Graph.
            literals: "values" makes values (`kg.attributes`) of literals, "keep" makes entities of them, and "drop"
                leaves them out.

        Returns:
            The graph, with names of entities and relations, and with values.

        Raises:
            ValueError: The choice of `literals` is unknown.
        """
        return cls.from_table(_table_from_rdflib(graph, literals))

    @classmethod
    def from_pykeen(cls, factory: Any) -> Self:
        """Make a graph from a PyKEEN TriplesFactory.

        Args:
            factory: The TriplesFactory, whose ids and labels are kept.

        Returns:
            The graph, with names of entities and relations.

        Raises:
            ValueError: The ids of the factory are not 0 to n - 1.
        """
        return cls.from_table(_table_from_pykeen(factory))

    @classmethod
    def from_pyg(cls, data: Any) -> Self:
        """Make a graph from a PyTorch Geometric `Data`.

        Args:
            data: An object with `edge_index` [2, n] and `num_nodes`, and with `edge_type` [n] if it has several
                relations.

        Returns:
            The graph, with the ids of the data and without names.
        """
        return cls(*_arrays_from_pyg(data))  # type: ignore[call-arg]

    @classmethod
    def from_table(cls, table: TripleTable) -> Self:
        """Make a graph from a table of triples, as the readers of `stea_fast.formats` fill it.

        Args:
            table: A `stea_fast.formats.triples.TripleTable`.

        Returns:
            The graph, with names of entities and relations, and with values.
        """
        attributes = None if table.attributes is None else Attributes.from_table(table.attributes, len(table.entities))
        relations = table.relations if len(table.relations) else None  # a graph of nothing but values has none
        return cls(  # type: ignore[call-arg]
            table.triples,
            len(table.entities),
            max(len(table.relations), 1),
            entity_names=table.entities,
            relation_names=relations,
            attributes=attributes,
        )


def _table_from_pandas(frame: Any, columns: Sequence[Hashable] | None, entities: Any) -> TripleTable:
    """A row per triple; columns head, relation, tail, those named, or the first three."""
    if columns is None:
        columns = HEADER if set(HEADER) <= set(frame.columns) else list(frame.columns)[:3]
    if len(columns) != 3:
        raise ValueError(f"columns must name head, relation and tail; got {list(columns)}")
    absent = [column for column in columns if column not in frame.columns]
    if absent:
        raise ValueError(f"the frame has no column {absent[0]!r}; it has {list(frame.columns)}")
    if frame[list(columns)].isna().any(axis=None):
        raise ValueError("the frame holds missing values: every head, relation and tail needs a name")
    rows = zip(*(frame[column].tolist() for column in columns), strict=True)
    if entities is None:
        return _of_rows(rows)
    header = [str(column) for column in entities.columns]
    place = entity_column(header)
    attributes = attribute_columns(header, place, Path("entities"))
    names = entities.iloc[:, place]
    if names.isna().any():
        raise ValueError(f"the column {header[place]!r} of entities holds missing values: every entity needs a name")
    names = [str(name) for name in names.tolist()]
    table = _of_rows(rows, names)
    sink = ValueSink(Path("entities"), {name: ident for ident, name in enumerate(table.entities)}, table.problems)
    idents = [sink.entity(name) for name in names]
    for column, attribute in attributes:
        cells = entities.iloc[:, column]
        for ident, cell, missing in zip(idents, cells.tolist(), cells.isna().tolist(), strict=True):
            sink.add_cell(None if missing else ident, attribute, cell)
    return replace(table, attributes=sink.build())


def _table_from_networkx(graph: Any, relation: str) -> TripleTable:
    """A triple per edge; its relation is the attribute of the edge, or else its key in a multigraph."""
    if graph.is_multigraph():
        edges = ((u, data.get(relation, key), v) for u, v, key, data in graph.edges(keys=True, data=True))
    else:
        edges = ((u, data.get(relation, relation), v) for u, v, data in graph.edges(data=True))
    return _of_rows(edges, graph.nodes)


def _table_from_rdflib(graph: Any, literals: str) -> TripleTable:
    """The triples of an rdflib graph; a literal is written as in N-Triples."""
    validate.choice(literals, "literals", LITERALS)
    problems = Problems()
    rows = []
    for triple in graph:
        if type(triple[2]).__name__ == "Literal" and literals == "drop":
            problems.dropped_literals += 1
        else:
            rows.append([_rdflib_name(term) for term in triple])
    table = _of_rows(sorted(rows), problems=problems)  # rdflib has no order of its own
    return names_as_values(table, certain=True) if literals == "values" else table


def _rdflib_name(term: Any) -> str:
    if type(term).__name__ == "Literal":
        return spell_literal(Value(str(term), str(term.datatype or ""), str(term.language or "").lower()))
    return str(term) if type(term).__name__ == "URIRef" else str(term.n3())


def _table_from_pykeen(factory: Any) -> TripleTable:
    """A triples factory with its own ids and labels."""
    triples = to_numpy(factory.mapped_triples, "mapped_triples").astype(np.int64)
    return TripleTable(triples, _labels(factory.entity_to_id, "entity"), _labels(factory.relation_to_id, "relation"))


def _labels(ids: dict[str, int], what: str) -> NameTable:
    by_id = sorted((ident, str(label)) for label, ident in ids.items())
    if [ident for ident, _ in by_id] != list(range(len(by_id))):
        raise ValueError(f"the {what} ids of the factory are not 0 to n - 1")
    return NameTable.pack(label for _, label in by_id)


def _arrays_from_pyg(data: Any) -> tuple[np.ndarray, int]:
    """(n, 3) triples and the number of nodes of a PyTorch Geometric graph with `edge_index` and `edge_type`."""
    edges = to_numpy(data.edge_index, "edge_index").astype(np.int64)
    kinds = getattr(data, "edge_type", None)
    relations = np.zeros(edges.shape[1], dtype=np.int64) if kinds is None else to_numpy(kinds, "edge_type")
    return np.stack([edges[0], relations.astype(np.int64), edges[1]], axis=1), int(data.num_nodes)


def _of_rows(rows: Iterable[Sequence[Any]], nodes: Iterable[Any] = (), problems: Problems | None = None) -> TripleTable:
    builder = TableBuilder(problems or Problems())
    for head, relation, tail in rows:
        builder.add(str(head).encode(), str(relation).encode(), str(tail).encode())
    return builder.build(isolated=[str(node).encode() for node in nodes])
