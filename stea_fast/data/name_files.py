"""Names of entities that a user gives: a file of ids and names, or a name for every entity."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from stea_fast.data.labels import Labels
from stea_fast.formats.streams import reading
from stea_fast.formats.tabular import text_rows
from stea_fast.formats.terms import unwrap
from stea_fast.formats.triple_table import Problems
from stea_fast.formats.value_pool import is_usable

Names = str | os.PathLike[str] | Iterable[str | None] | Labels


def given_labels(
    names: Names | None, argument: str, index: Mapping[str, int], num_entities: int, problems: Problems
) -> Labels | None:
    """The names of one graph: those of a file by the ids in `index`, or one for each entity, of which some are None."""
    if names is None:
        return None
    if isinstance(names, Labels):
        if names.num_entities != num_entities:
            raise ValueError(f"{argument} are of {names.num_entities:,} entities, and the graph has {num_entities:,}")
        return names
    if isinstance(names, (str, os.PathLike)):
        return read_name_file(Path(names), index, num_entities, problems)
    listed = list(names)
    if len(listed) != num_entities:
        raise ValueError(f"{argument} must be a name for each of {num_entities:,} entities, got {len(listed):,}")
    others = [type(name).__name__ for name in listed if name is not None and not isinstance(name, str)]
    if others:
        raise TypeError(f"{argument} must be texts, or None for an entity without one; got {others[0]}")
    pairs = ((entity, name.strip()) for entity, name in enumerate(listed) if name and name.strip())
    return Labels.from_names(pairs, num_entities, "given names")


def read_name_file(path: Path, index: Mapping[str, int], num_entities: int, problems: Problems) -> Labels:
    """The names of a file with an id, a tab and a name in every line; an entity may have several lines.

    Raises:
        ValueError: no line names an entity of the graph, or, if problems are strict, one does not.
    """

    def rows() -> Iterator[tuple[int, str]]:
        with reading(path) as stream:
            for line, row in text_rows(stream, path, "tsv", problems):
                name = " ".join("\t".join(row[1:]).split())
                entity = index.get(unwrap(row[0]))
                if len(row) < 2:
                    problems.add(f"{path}:{line}", f"expected an id, a tab and a name, got {row!r:.100}")
                elif entity is None:
                    problems.add(f"{path}:{line}", f"{row[0]:.100} is no entity of the graph")
                elif is_usable(name.encode()):
                    yield entity, name
                elif name:
                    problems.unusable_values += 1

    labels = Labels.from_names(rows(), num_entities, path.name)
    if not len(labels):
        first = f"; the first problem is {problems.first[0]}" if problems.first else ""
        raise ValueError(f"{path} names no entity of the graph{first}")
    return labels
