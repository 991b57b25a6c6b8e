"""Reading tab-separated text. Every error names the file and, where there is one, the line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_INT64 = np.iinfo(np.int64)


def read_integers(path: Path, width: int) -> np.ndarray:
    """int64 [n, width]: a file of tab-separated integers; blank lines are skipped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # some NumPy versions read "1.5" as 1 and only warn
            # Not UTF-8: NumPy's reader looks some characters beyond ASCII up outside of its table, and crashes.
            table = np.loadtxt(path, dtype=np.int64, delimiter="\t", comments=None, ndmin=2, encoding="ascii")
        if table.shape[1] == width:
            return table
    except (ValueError, Warning):
        pass
    # NumPy's reader is fast, but its errors name no file; reading line by line finds what is wrong
    return _read_integers_by_line(path, width)


def read_strings(path: Path, width: int) -> list[list[str]]:
    """Rows of `width` non-empty tab-separated strings; blank lines are skipped."""
    rows = [line.split("\t") for line in _lines(path) if line]
    if any(len(row) != width or "" in row for row in rows):
        for number, line in _numbered_lines(path):
            if line.count("\t") != width - 1 or "" in line.split("\t"):
                raise ValueError(f"{path}:{number}: expected {width} tab-separated names, got {line!r:.100}")
    return rows


def read_names(path: Path) -> dict[int, str]:
    """Names by id, from lines of an integer id, a tab and a name. An id without a name is its own name."""
    rows = [line.partition("\t") for line in _lines(path) if line]
    try:
        names = {int(key): name or key for key, _, name in rows}
        np.fromiter(names, dtype=np.int64)  # refuse ids too large here, where the line is known
    except (ValueError, OverflowError):
        names = {}
    if len(names) < len(rows):
        _explain_names(path)
    return names


def read_lines(path: Path) -> list[str]:
    """All lines without their ends, blank ones too."""
    lines = _lines(path)
    return lines[:-1] if lines[-1] == "" else lines


def line_of_row(path: Path, row: int) -> int:
    """The line number, from 1, of the `row`-th line that is not blank, from 0."""
    return [number for number, _ in _numbered_lines(path)][row]


def _read_integers_by_line(path: Path, width: int) -> np.ndarray:
    rows = []
    for number, line in _numbered_lines(path):
        row = [integer(field) for field in line.split("\t")]
        if len(row) != width or None in row:
            raise ValueError(f"{path}:{number}: expected {width} tab-separated integers, got {line!r:.100}")
        rows.append(row)
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _explain_names(path: Path) -> None:
    """Raise the error of the first line that `read_names` cannot take."""
    seen = set()
    for number, line in _numbered_lines(path):
        ident = integer(line.partition("\t")[0])
        if ident is None:
            raise ValueError(f"{path}:{number}: expected an integer id, a tab and a name, got {line!r:.100}")
        if ident in seen:
            raise ValueError(f"{path}:{number}: id {ident} is listed twice")
        seen.add(ident)


def integer(text: str) -> int | None:
    """The integer that `text` spells, or None if it spells none of 64 signed bits."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if _INT64.min <= value <= _INT64.max else None


def _numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(_lines(path), start=1) if line)


def _lines(path: Path) -> list[str]:
    """All lines without their endings. Only \\n ends a line: names may hold Unicode's other separators."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{number}: not UTF-8 ({error.reason})") from None
    return text.replace("\r\n", "\n").split("\n")
