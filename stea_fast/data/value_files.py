"""Files of values for a graph that has been read already: tables of entities, attribute statements, RDF of literals."""

from __future__ import annotations

import os
from pathlib import Path

from stea_fast.data.attributes import Attributes
from stea_fast.data.files import name_index
from stea_fast.data.graph import KG
from stea_fast.formats.attribute_table import merged
from stea_fast.formats.entity_tables import read_values
from stea_fast.formats.triple_table import Problems


def add_values(kg: KG, path: str | os.PathLike[str], *, format: str | None = None, strict: bool = False) -> KG:
    r"""Add the values of a file to a graph, by the names of its entities.

    Args:
        kg: The graph, whose own values stay.
        path: A table with a row for every entity (a column `id`, or else the first, names it; all others are
            attributes), a table of entity, attribute and value, or RDF whose literals are taken.
        format: "tsv", "csv", "parquet", "arrow", "nt", "ttl" or "rdf"; the default, None, goes by the suffix of the
            file's name.
        strict: Whether malformed rows and unknown entities are errors; otherwise they are left out.

    Returns:
        The graph with all values.

    Raises:
        OSError: The file cannot be opened.
        ValueError: The format is unknown, no value is of an entity of the graph, or, if `strict`, a row cannot be used;
            the message names file and line.
        ModuleNotFoundError: The format needs a package that is missing; the message says how to install it.

    Example:
        >>> from pathlib import Path
        >>> import stea_fast as sf
        >>> kg = sf.KG([[0, 0, 1]], entity_names=["Q64", "Q183"])
        >>> _ = Path("cities.csv").write_text("id,name,population\nQ64,Berlin,3644826\n")
        >>> sf.add_values(kg, "cities.csv").attributes.of(0)[0]
        ('name', Value(text='Berlin', datatype='', language=''))
    """
    return with_values_of(kg, Path(path), Problems(strict), format)


def with_values_of(kg: KG, path: Path, problems: Problems, format: str | None = None) -> KG:
    """The graph with the values of a file; what cannot be used is noted in `problems`."""
    table = read_values(path, name_index(kg), problems, format)
    if not len(table.statements):
        first = f"; the first problem is {problems.first[0]}" if problems.first else ""
        raise ValueError(f"{path} holds no value of an entity of the graph{first}")
    if kg.attributes is not None:
        table = merged(kg.attributes.to_table(), table)
    return kg.with_attributes(Attributes.from_table(table, kg.num_entities))
