"""Tables of head, relation and tail: TSV, CSV, Parquet and Arrow, with a header or without."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO

from stea_fast.formats import arrow_tables, comma_separated
from stea_fast.formats.streams import LONGEST_LINE, LongLine, lines
from stea_fast.formats.terms import NAMESPACE, unmistakable, unwrap, wrap
from stea_fast.formats.triple_table import Problems, TableBuilder, TripleTable

Row = tuple[int, list[str]]

_OWN_NAMES = NAMESPACE.encode()
_BREAKS = re.compile("[\t\n\r\0]")
# At the beginning of a cell, and of what a spreadsheet with other ideas of quotes and separators takes for a cell.
_FORMULA = re.compile(r"""(?:^|[,;|"'])[\s"']*[=+\-@＝＋－＠]""")
HEADER = ("head", "relation", "tail")
_COLUMN_NAMES = (
    ("head", "subject", "source", "s", "h", "subj", "from"),
    ("relation", "predicate", "property", "p", "r", "pred", "rel"),
    ("tail", "object", "target", "o", "t", "obj", "to"),
)


def read(stream: IO[bytes], path: Path, fmt: str, problems: Problems) -> TripleTable:
    """Triples of a table. Columns are found by their names, or are the first three where there is no header."""
    builder = TableBuilder(problems)
    if fmt in ("parquet", "arrow"):
        heads, relations, tails = _arrow_columns(stream, path, fmt)
        builder.add_columns(heads, relations, tails)
        return builder.build(_name_of_cell)
    rows = text_rows(stream, path, fmt, problems)
    first = next(rows, None)
    if first is None:
        return builder.build()
    places = find_columns(first[1], _COLUMN_NAMES)
    if places is None:
        rows, places, width = chain([first], rows), [0, 1, 2], 3
    else:
        width = len(first[1])
    head, relation, tail = places
    for line, row in rows:
        if len(row) != width or not (row[head] and row[relation] and row[tail]):
            kind = "tab" if fmt == "tsv" else "comma"
            problems.add(f"{path}:{line}", f"expected {width} {kind}-separated names, got {row!r:.100}")
        else:
            builder.add(row[head].encode(), row[relation].encode(), row[tail].encode())
    return builder.build(_name_of_cell)


def _name_of_cell(key: bytes) -> bytes:
    return unwrap(key.decode()).encode() if key.startswith(_OWN_NAMES) else key


def find_columns(row: Sequence[str], names: Sequence[Sequence[str]]) -> list[int] | None:
    """Where the named columns stand if `row` is a header that has all of them, else None."""
    lowered = [field.strip().lower() for field in row]
    places = [next((lowered.index(name) for name in synonyms if name in lowered), None) for synonyms in names]
    return None if None in places else [place for place in places if place is not None]


def text_rows(stream: IO[bytes], path: Path, fmt: str, problems: Problems) -> Iterator[Row]:
    """The rows of a TSV or CSV file that are not blank, each with its line number from 1."""
    return (_tsv_rows if fmt == "tsv" else comma_separated.rows)(stream, path, problems)


def _tsv_rows(stream: IO[bytes], path: Path, problems: Problems) -> Iterator[Row]:
    for number, raw in enumerate(lines(stream), start=1):
        if isinstance(raw, LongLine):
            problems.add(f"{path}:{number}", f"a line of more than {LONGEST_LINE:,} bytes")
            continue
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            problems.add(f"{path}:{number}", f"not UTF-8 ({error.reason})")
            continue
        line = line.removesuffix("\n").removesuffix("\r")
        if line:
            yield number, line.split("\t")


def _arrow_columns(stream: IO[bytes], path: Path, fmt: str) -> list[list[bytes]]:
    table = arrow_tables.read_table(stream, path, fmt)
    places = find_columns(table.column_names, _COLUMN_NAMES)
    if places is None and table.num_columns != 3:
        raise ValueError(
            f"{path}: expected columns {', '.join(HEADER)}, or three columns; found {', '.join(table.column_names)}"
        )
    columns = [table.column(place) for place in places or (0, 1, 2)]
    names = [arrow_tables.values(column, path, lambda value: str(value).encode()) for column in columns]
    if any(None in column for column in names):
        raise ValueError(f"{path}: names must not be null")
    return names


def write(table: TripleTable, stream: IO[bytes], fmt: str, *, spreadsheet_safe: bool = False) -> None:
    """Write all triples in their order, with a header, so that no triple is taken for one."""
    spelt = partial(cell, spreadsheet_safe=spreadsheet_safe) if fmt in ("tsv", "csv") else unmistakable
    entities, relations = list(map(spelt, table.entities)), list(map(spelt, table.relations))
    if fmt in ("tsv", "csv"):
        rows = ([entities[h], relations[r], entities[t]] for h, r, t in table.triples.tolist())
        write_text(stream, fmt, HEADER, rows)
        return
    heads, kinds, tails = table.triples.T.tolist()
    columns = ([entities[i] for i in heads], [relations[i] for i in kinds], [entities[i] for i in tails])
    write_arrow(stream, fmt, dict(zip(HEADER, columns, strict=True)))


def write_text(stream: IO[bytes], fmt: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows of TSV or CSV in UTF-8; the fields of a TSV row hold neither tabs nor line ends."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=False)
    if fmt == "csv":
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    else:
        text.write("\t".join(header) + "\n")
        text.writelines("\t".join(row) + "\n" for row in rows)
    text.flush()
    text.detach()


def write_arrow(
    stream: IO[bytes], fmt: str, columns: dict[str, Sequence[object]], metadata: dict[str, str] | None = None
) -> None:
    """Columns as a Parquet or Arrow file, with metadata of the whole table."""
    arrow = arrow_tables.library()
    table = arrow.table({name: arrow.array(values) for name, values in columns.items()}, metadata=metadata)
    if fmt == "parquet":
        arrow.parquet.write_table(table, stream)
    else:
        arrow.feather.write_feather(table, stream)


def cell(name: str, *, spreadsheet_safe: bool = False) -> str:
    """A name as a field of a text table: wrapped where a tab, a line end or nothing would break the row.

    With `spreadsheet_safe` it is wrapped as well where a spreadsheet would take it for a formula.
    """
    if not name or _BREAKS.search(name) or (spreadsheet_safe and _FORMULA.search(name)):
        return wrap(name)
    return unmistakable(name)
