"""Files of links between two graphs, by the names of their entities: every format that is written can be read.

TSV, CSV, JSON lines, Parquet, Arrow, N-Triples and SSSOM TSV.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any, NamedTuple

from stea_fast._util.atomic import replacing
from stea_fast.formats import arrow_tables, rdf, sssom, tabular
from stea_fast.formats.result_rows import LinkRow, link_format_of, write_statements, write_table
from stea_fast.formats.streams import compressing, lines, reading, split_suffixes
from stea_fast.formats.terms import node_of_graph, unwrap
from stea_fast.formats.triple_table import Problems

SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
_ENDS = (
    ("source", "subject_id", "subject", "head", "entity1", "left", "from"),
    ("target", "object_id", "object", "tail", "entity2", "right", "to"),
)
_PROBABILITY = ("probability", "confidence", "prob", "score")


UNCERTAIN = "uncertain"


class Link(NamedTuple):
    """A link as a file has it; `probability` is None where the file gives none."""

    line: int
    source: str
    target: str
    probability: float | None


def read_link_rows(path: Path, problems: Problems, *, format: str | None = None) -> list[Link]:
    """The links of a file. Rows without a target (entities without counterpart) and uncertain ones are no links."""
    kind = link_format_of(path, format)
    with reading(path) as stream:
        if kind == "nt":
            links = _same_as(stream, path, problems)
        elif kind == "jsonl":
            links = _json_lines(stream, path, problems)
        elif kind in ("parquet", "arrow"):
            links = _arrow_links(stream, path, kind, problems)
        else:
            links = _text_links(stream, path, kind, problems)
        return list(links)


def write_link_rows(
    rows: Sequence[LinkRow],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    name: str = "",
    comment: str = "",
    spreadsheet_safe: bool = False,
) -> None:
    """Write a row for every source entity, whole or not at all.

    SSSOM leaves out uncertain sources, and N-Triples hold `owl:sameAs` of seeds and links only: whoever reads these
    formats takes every row for a link.

    `name` goes into the metadata of SSSOM, and `comment` into those of SSSOM, Parquet and Arrow and into the first line
    of N-Triples. Rows of TSV, CSV and JSON lines say themselves how their probability was calibrated: a line before the
    header would be one that other programs stumble over. With `spreadsheet_safe` no cell of TSV or CSV is a formula to
    a spreadsheet.
    """
    path = Path(path)
    kind = link_format_of(path, format)
    with replacing(path) as raw, compressing(raw, split_suffixes(path)[1]) as stream:
        if kind == "sssom":
            sssom.write(stream, [row for row in rows if row.status != UNCERTAIN], name=name, comment=comment)
        elif kind == "nt":
            linked = ((row.source, row.target) for row in rows if row.target is not None and row.status != UNCERTAIN)
            statements = ((node_of_graph(source, 1), SAME_AS, node_of_graph(target, 2)) for source, target in linked)
            write_statements(stream, statements, comment)
        else:
            write_table(stream, kind, LinkRow._fields, rows, comment, spreadsheet_safe=spreadsheet_safe)


def _same_as(stream: IO[bytes], path: Path, problems: Problems) -> Iterator[Link]:
    table = rdf.read(stream, path, "nt", problems, literals="drop")
    for number, (head, relation, tail) in enumerate(table.triples.tolist(), start=1):
        if table.relations[relation] == SAME_AS:
            yield Link(number, table.entities[head], table.entities[tail], None)


def _json_lines(stream: IO[bytes], path: Path, problems: Problems) -> Iterator[Link]:
    for number, line in enumerate(lines(stream), start=1):
        if line.strip():
            place = f"{path}:{number}"
            try:
                record = json.loads(line)
                ends, prob = (record["source"], record.get("target")), record.get("probability")
                probability = None if prob is None else float(prob)
                uncertain = record.get("status") == UNCERTAIN
            except (ValueError, KeyError, AttributeError, TypeError, OverflowError, RecursionError):
                problems.add(place, 'expected an object with "source" and "target"')
                continue
            if not uncertain and (names := _typed_names(ends, place, problems)):
                yield Link(number, *names, probability)


def _arrow_links(stream: IO[bytes], path: Path, kind: str, problems: Problems) -> Iterator[Link]:
    table = arrow_tables.read_table(stream, path, kind)
    places = tabular.find_columns(table.column_names, _ENDS)
    if places is None and table.num_columns != 2:
        raise ValueError(f"{path}: expected columns source and target; found {', '.join(table.column_names)}")
    prob = tabular.find_columns(table.column_names, [_PROBABILITY])
    columns = [arrow_tables.values(table.column(place), path) for place in [*(places or (0, 1)), *(prob or ())]]
    status = tabular.find_columns(table.column_names, [("status",)])
    statuses = repeat("") if status is None else arrow_tables.values(table.column(status[0]), path)
    for number, (*row, status_of_row) in enumerate(zip(*columns, statuses, strict=False), start=1):
        if status_of_row != UNCERTAIN and (names := _typed_names(row[:2], f"{path}, row {number}", problems)):
            yield Link(number, *names, _number(row, [2]))


def _typed_names(ends: Sequence[Any], place: str, problems: Problems) -> tuple[str, str] | None:
    """The names of a row whose ids may be numbers; None where it is no link: a null source is noted as a problem."""
    source, target = (None if end is None else str(end) for end in ends)
    if source is None:
        problems.add(place, "the source is null")
        return None
    if not target:
        return None
    return (source, target) if _is_whole(f"{source}{target}", place, problems) else None


def _is_whole(text: str, place: str, problems: Problems) -> bool:
    """Whether a text has no lone surrogate, which escapes of JSON can spell; one that has is noted as a problem."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problems.add(place, f"a name holds half a character, {error.object[error.start]!r}")
        return False
    return True


def _text_links(stream: IO[bytes], path: Path, kind: str, problems: Problems) -> Iterator[Link]:
    rows = tabular.text_rows(stream, path, "csv" if kind == "csv" else "tsv", problems)
    prefixes: dict[str, str] = {}
    first = next(rows, None)
    while kind == "sssom" and first is not None and first[1][0].startswith("#"):
        sssom.note_prefix(first[1][0], prefixes)
        first = next(rows, None)
    if first is None:
        return
    places, prob = tabular.find_columns(first[1], _ENDS), tabular.find_columns(first[1], [_PROBABILITY])
    status = tabular.find_columns(first[1], [("status",)])
    exact = tabular.find_columns(first[1], [(name,) for name in sssom.EXACT_NAMES]) if kind == "sssom" else None
    if places is None:
        rows, places, prob, status = chain([first], rows), [0, 1], None, None
    for line, row in rows:
        if len(row) != len(first[1]) or len(row) <= max(places) or not row[places[0]]:
            problems.add(f"{path}:{line}", f"expected a source and a target, got {row!r:.100}")
            continue
        if status is not None and row[status[0]] == UNCERTAIN:
            continue
        source, target = (sssom.expanded(row[place], prefixes) for place in places)
        if prefixes and not _is_whole(source + target, f"{path}:{line}", problems):
            continue
        if exact is not None:
            source, target = row[exact[0]] or source, row[exact[1]] or target
        if target not in ("", sssom.NO_TERM_FOUND):  # an entity without a name is wrapped
            yield Link(line, unwrap(source), unwrap(target), _number(row, prob))


def _number(row: Sequence[Any], place: list[int] | None) -> float | None:
    try:
        return None if place is None else float(row[place[0]])
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
