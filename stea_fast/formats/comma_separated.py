"""Reading comma-separated text, where a quoted field may hold commas, line ends and megabytes.

The reader of the standard library has a limit of 128 KiB for a field, which can be changed only for the whole process,
and it takes everything from a stray quote to the next one for a field. Where it stumbles, the row is read here: a long
field is a field, and a quote that is not closed as it should be spoils only the line where it stands.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from stea_fast.formats.triple_table import Problems

MAX_FIELD = 1 << 24  # characters; behind a quote that is never closed, so many are looked through in vain

_BARE = re.compile(r'(?:[^",\r\n][^,\r\n]*)?')
_TO_CLOSING_QUOTE = re.compile(r'[^"]*(?:""[^"]*)*"(?!")')
_UNDECODED = re.compile("[\udc80-\udcff]")


class _MalformedError(ValueError):
    """A line that is no row."""


def rows(stream: IO[bytes], path: Path, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number, from 1, of the line where it begins."""
    lines = _Lines(stream)
    reader = csv.reader(lines, strict=True)
    width = 0
    while True:
        number = lines.begin_row()
        try:
            row = _next_row(reader, lines, width)
        except StopIteration:
            return
        except _MalformedError as error:
            problems.add(f"{path}:{number}", str(error))
            lines.read_again(but=1)
            continue
        if _UNDECODED.search("".join(row)):
            problems.add(f"{path}:{number}", "not UTF-8")
        elif row:
            width = width or len(row)
            yield number, row


def _next_row(reader: Iterator[list[str]], lines: _Lines, width: int) -> list[str]:
    try:
        row = next(reader)
    except csv.Error:
        lines.read_again()
        row = _row_with_long_fields(lines)
    if lines.row_length > 1 and width and len(row) != width:
        raise _MalformedError("a quote opens a field that ends lines below, in a row of another width")
    return row


class _Lines:
    """The lines of a stream, with their ends; those of the current row can be read again."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self._row: list[str] = []
        self._again: list[str] = []  # in reverse order
        self._number = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._again.pop() if self._again else next(self._text)
        self._row.append(line)
        return line

    @property
    def row_length(self) -> int:
        """How many lines the current row has so far."""
        return len(self._row)

    def begin_row(self) -> int:
        """The number of the line that comes next, which begins a row."""
        self._number += len(self._row)
        self._row = []
        return self._number + 1

    def read_again(self, *, but: int = 0) -> None:
        """Let the lines of the row come again, but for the first few."""
        self._again += reversed(self._row[but:])
        del self._row[but:]


def _row_with_long_fields(lines: _Lines) -> list[str]:
    row, line, place = [], next(lines), 0
    while True:
        if line.startswith('"', place):
            field, line, place = _quoted_field(lines, line, place + 1)
        else:
            bare = _BARE.match(line, place)
            assert bare is not None  # it may be empty
            field, place = bare[0], bare.end()
        row.append(field)
        if line[place : place + 1] != ",":
            break
        place += 1
    if line[place:].strip("\r\n"):
        raise _MalformedError("expected a comma or the end of the line behind a closing quote")
    return row


def _quoted_field(lines: _Lines, line: str, place: int) -> tuple[str, str, int]:
    """A field behind its opening quote, the line where it ends, and the place behind its closing quote."""
    parts: list[str] = []
    size = 0
    while (end := _TO_CLOSING_QUOTE.match(line, place)) is None:
        parts.append(line[place:])
        size += len(parts[-1])
        following = next(lines, None)
        if following is None or size > MAX_FIELD:
            raise _MalformedError("a quote opens a field that is not closed")
        line, place = following, 0
    parts.append(line[place : end.end() - 1])
    return "".join(parts).replace('""', '"'), line, end.end()
