"""Files of relation alignments: TSV, CSV, JSON lines, Parquet, Arrow and N-Triples. They are only written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stea_fast._util.atomic import replacing
from stea_fast.formats.result_rows import RelationRow, link_format_of, write_statements, write_table
from stea_fast.formats.streams import compressing, split_suffixes
from stea_fast.formats.terms import node_of_graph

SUB_PROPERTY_OF = "http://www.w3.org/2000/01/rdf-schema#subPropertyOf"
LEAST_STATED = 0.5  # a relation alignment is stated as a fact only where it is more likely than this


def write_relation_rows(
    rows: Sequence[RelationRow],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    spreadsheet_safe: bool = False,
) -> None:
    """Write a row for every pair of relations, whole or not at all.

    N-Triples hold `rdfs:subPropertyOf` of those more likely than not; a relation that is the inverse of another has
    no place there. With `spreadsheet_safe` no cell of TSV or CSV is a formula to a spreadsheet.
    """
    path = Path(path)
    kind = link_format_of(path, format)
    if kind == "sssom":
        raise ValueError("relation alignments are not written as SSSOM; use tsv, csv, jsonl, parquet, arrow or nt")
    with replacing(path) as raw, compressing(raw, split_suffixes(path)[1]) as stream:
        if kind == "nt":
            write_statements(stream, _sub_properties(rows))
        else:
            write_table(stream, kind, RelationRow._fields, rows, spreadsheet_safe=spreadsheet_safe)


def _sub_properties(rows: Iterable[RelationRow]) -> Iterable[tuple[Any, str, Any]]:
    for row in rows:
        if row.inverse:
            continue
        source, target = node_of_graph(row.source, 1), node_of_graph(row.target, 2)
        if row.source_in_target > LEAST_STATED:
            yield source, SUB_PROPERTY_OF, target
        if row.target_in_source > LEAST_STATED:
            yield target, SUB_PROPERTY_OF, source
