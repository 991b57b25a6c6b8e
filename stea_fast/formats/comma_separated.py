"""Reading comma-separated text, where a quoted field may hold commas, quotes, line ends and megabytes.

The reader of the standard library has a limit of 128 KiB for a field, which can be changed only for the whole process,
and takes everything from a stray quote to the next one for a field. It is given single lines here. What it cannot read
is read below: a quote that is not closed as it should be spoils the line where it stands, and the next line is read as
if nothing had been.
"""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from stea_fast.formats.streams import LONGEST_LINE
from stea_fast.formats.triple_table import Problems

MOST_LINES = 1000  # of one row; so far the end of a quoted field is looked for

_UNDECODED = re.compile("[\udc80-\udcff]")
_QUOTES = re.compile('"+')


class _MalformedError(ValueError):
    """A line that is no row."""


def rows(stream: IO[bytes], path: Path, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number, from 1, of the line where it begins."""
    lines = _Lines(stream)
    number, width = 1, 0
    while line := lines.next():
        more: list[str] = []  # lines of the row behind its first
        try:
            row = _row(line, lines, more)
            if more and width not in (0, len(row)):
                raise _MalformedError("a quote opens a field that ends lines below, in a row of another width")
        except _MalformedError as error:
            problems.add(f"{path}:{number}", str(error))
            lines.put_back(more)
            number += 1
            continue
        if (more or not line.isascii()) and _UNDECODED.search("".join(row)):
            problems.add(f"{path}:{number}", "not UTF-8")
        elif row != [""] or '"' in line:
            width = width or len(row)
            yield number, row
        number += 1 + len(more)


class _Lines:
    """The lines of a stream with their ends; of one that is too long, the beginning."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self._again: deque[str] = deque()

    def next(self) -> str:
        """Empty at the end of the file."""
        if self._again:
            return self._again.popleft()
        line = part = self._text.readline(LONGEST_LINE)
        while len(part) == LONGEST_LINE and not part.endswith(("\n", "\r")):
            part = self._text.readline(LONGEST_LINE)
        return line

    def put_back(self, lines: list[str]) -> None:
        """Let these lines come next."""
        self._again.extendleft(reversed(lines))


def _row(line: str, lines: _Lines, more: list[str]) -> list[str]:
    """The fields of the row that begins with a line; the lines that it also needs are put into `more`."""
    if len(line) == LONGEST_LINE:
        raise _MalformedError(f"a line of more than {LONGEST_LINE:,} characters")
    if '"' not in line:
        return line.rstrip("\r\n").split(",")
    try:
        return next(csv.reader((line,), strict=True))
    except csv.Error:
        return _row_with_long_fields(line, lines, more)


def _row_with_long_fields(line: str, lines: _Lines, more: list[str]) -> list[str]:
    row, place = [], 0
    while True:
        if line.startswith('"', place):
            field, line, place = _quoted_field(line, place + 1, lines, more)
            if line[place : place + 1] not in (",", "\r", "\n", ""):
                raise _MalformedError("expected a comma or the end of the line behind a closing quote")
        else:
            end = line.find(",", place)
            field = line[place:end] if end >= 0 else line[place:].rstrip("\r\n")
            place += len(field)
        row.append(field)
        if line[place : place + 1] != ",":
            return row
        place += 1


def _quoted_field(line: str, place: int, lines: _Lines, more: list[str]) -> tuple[str, str, int]:
    """A field behind its opening quote, the line where it ends, and the place behind its closing quote."""
    parts: list[str] = []
    size = 0
    while (end := _closing_quote(line, place)) is None:
        parts.append(line[place:])
        size += len(parts[-1])
        if size >= LONGEST_LINE or len(more) >= MOST_LINES or not (following := lines.next()):
            raise _MalformedError("a quote opens a field that is not closed")
        more.append(following)
        line, place = following, 0
    parts.append(line[place:end])
    return "".join(parts).replace('""', '"'), line, end + 1


def _closing_quote(line: str, place: int) -> int | None:
    """Two quotes stand for one: of several that follow each other the last one closes, if it is left over."""
    return next((run.end() - 1 for run in _QUOTES.finditer(line, place) if len(run[0]) % 2), None)
