"""Results as files, with the original ids. Every file appears whole or not at all.

Formats of links and of relation alignments: TSV, CSV, JSON lines, Parquet, Arrow, N-Triples; links also SSSOM TSV.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from stea_fast._util.atomic import replacing
from stea_fast.alignment.relation_rows import RelationRow, relation_rows
from stea_fast.formats import rdf, sssom, tabular
from stea_fast.formats.links import SAME_AS, link_format_of
from stea_fast.formats.streams import compressing, split_suffixes
from stea_fast.formats.triple_table import Problems, TableBuilder

if TYPE_CHECKING:
    from stea_fast.alignment.api import Alignment

LINK_COLUMNS = ("source", "target", "probability", "rank", "agreement", "status")
SUB_PROPERTY_OF = "http://www.w3.org/2000/01/rdf-schema#subPropertyOf"
LIKELY = 0.5  # a relation alignment is stated as a fact only where it is more likely than not


def write_links(alignment: Alignment, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """A row for every source entity; N-Triples hold `owl:sameAs` of seeds and links only."""
    path = Path(path)
    kind = link_format_of(path, format)
    rows = list(alignment.links.rows())
    with replacing(path) as raw, compressing(raw, split_suffixes(path)[1]) as stream:
        if kind == "sssom":
            sssom.write(stream, rows, name=alignment.pair.name, comment=alignment.calibrator.note)
        elif kind == "nt":
            _write_statements(stream, ((row.source, SAME_AS, row.target) for row in rows if row.target is not None))
        else:
            _write_table(stream, kind, LINK_COLUMNS, rows)


def write_relations(alignment: Alignment, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """A row for every observed pair of relations, likely ones first.

    N-Triples hold `rdfs:subPropertyOf` of those more likely than not; a relation that is the inverse of another has
    no place there.
    """
    path = Path(path)
    kind = link_format_of(path, format)
    if kind == "sssom":
        raise ValueError("relation alignments are not written as SSSOM; use tsv, csv, jsonl, parquet, arrow or nt")
    rows = relation_rows(alignment)
    with replacing(path) as raw, compressing(raw, split_suffixes(path)[1]) as stream:
        if kind == "nt":
            _write_statements(stream, _sub_properties(rows))
        else:
            _write_table(stream, kind, RelationRow._fields, rows)


def _sub_properties(rows: Iterable[RelationRow]) -> Iterable[tuple[str, str, str]]:
    for row in rows:
        if not row.inverse and row.source_in_target > LIKELY:
            yield row.source, SUB_PROPERTY_OF, row.target
        if not row.inverse and row.target_in_source > LIKELY:
            yield row.target, SUB_PROPERTY_OF, row.source


def _write_statements(stream: IO[bytes], triples: Iterable[tuple[str, str, str]]) -> None:
    builder = TableBuilder(Problems())
    for head, relation, tail in triples:
        builder.add(head.encode(), relation.encode(), tail.encode())
    rdf.write(builder.build(), stream, "nt")


def _write_table(stream: IO[bytes], kind: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if kind == "jsonl":
        for row in rows:
            line = json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False)
            stream.write(line.encode() + b"\n")
    elif kind in ("tsv", "csv"):
        tabular.write_text(stream, kind, header, ([_field(value) for value in row] for row in rows))
    else:
        columns = list(zip(*rows, strict=True)) or [()] * len(header)
        tabular.write_arrow(stream, kind, dict(zip(header, columns, strict=True)))


def _field(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else tabular.cell(str(value))
