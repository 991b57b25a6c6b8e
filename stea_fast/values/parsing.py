"""Values as numbers, dates and codes; what cannot be read as one stays a string."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from urllib.parse import unquote

import numpy as np

NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d{1,4})?", re.IGNORECASE)
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
DATE = re.compile(
    r"(?P<year>-?\d{4,6})(-(?P<month>\d\d)(-(?P<day>\d\d)"
    r"([T ](?P<hour>\d\d):(?P<minute>\d\d)(:(?P<second>\d\d)([.,]\d+)?)?)?)?)?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
IRI = re.compile(r"[a-z][a-z0-9+.-]*:/?/?[^\s]+", re.IGNORECASE)
MAX_LENGTH = 100  # characters of a number or a date; what is longer is neither
PRECISIONS = ("year", "month", "day", "second")
CYCLE = 146_097  # days of 400 years, after which the calendar repeats


def numbers(values: Sequence[str]) -> np.ndarray:
    """float64 [n]: the numbers that values spell, NaN where they spell none that is finite.

    A comma groups thousands where every value with one can be read so, and is a decimal comma otherwise.
    """
    stripped = [value.strip() if len(value) <= MAX_LENGTH else "" for value in values]
    with_comma = [value for value in stripped if "," in value]
    grouped = bool(with_comma) and all(GROUPED.fullmatch(value) for value in with_comma)
    return np.array([_number(value, grouped) for value in stripped], dtype=np.float64)


def _number(value: str, grouped: bool) -> float:
    if grouped:
        value = value.replace(",", "")
    if not NUMBER.fullmatch(value):
        return np.nan
    number = float(value.replace(",", "."))
    return number if np.isfinite(number) else np.nan


def dates(values: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Dates as numbers of their years, months, days and seconds, int64 [n, 4], and their precisions, int8 [n].

    A precision is a place in `PRECISIONS`, or -1 where there is no date; numbers beyond it mean nothing. Years, months,
    days and times of ISO 8601 and XML Schema are read, in the calendar of today. A time with a zone is moved to UTC;
    one without is taken to be UTC.
    """
    numbers, precision = np.zeros((len(values), 4), dtype=np.int64), np.full(len(values), -1, dtype=np.int8)
    for place, value in enumerate(values):
        read = DATE.fullmatch(value.strip()) if len(value) <= MAX_LENGTH else None
        found = _moment(read) if read else None
        if found is not None:
            numbers[place], precision[place] = found
    return numbers, precision


def _moment(read: re.Match[str]) -> tuple[tuple[int, int, int, int], int] | None:
    parts = ("year", "month", "day", "hour", "minute", "second")
    year, month, day, hour, minute, second = (
        int(read[part] or default) for part, default in zip(parts, (0, 1, 1, 0, 0, 0), strict=True)
    )
    precision = sum(read[part] is not None for part in ("month", "day", "hour"))
    first = year % 400 + 2000  # the year of the same calendar that `date` can hold
    try:
        days = date(first, month, day).toordinal() + (year - first) // 400 * CYCLE
    except ValueError:
        return None
    if hour > 24 or minute > 59 or second > 60:
        return None
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    if precision == 3:
        seconds -= _zone(read["zone"])
        days = seconds // 86_400
        start = date(2000, 1, 1).toordinal()
        moved = date.fromordinal((days - start) % CYCLE + start)
        year, month = moved.year + (days - start) // CYCLE * 400, moved.month
    return (year, year * 12 + month - 1, days, seconds), precision


def _zone(zone: str | None) -> int:
    """Seconds before UTC."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


def booleans(values: Sequence[str]) -> list[str]:
    """The truth values of XML Schema in one spelling."""
    return [{"1": "true", "0": "false"}.get(value.strip(), value.strip().casefold()) for value in values]


def codes(values: Sequence[str]) -> list[str]:
    """Identifiers without case, spaces and hyphens; IRIs without scheme, "www." and the last "/"."""
    return [_code(value.strip()) for value in values]


def _code(value: str) -> str:
    if IRI.fullmatch(value):
        rest = unquote(value, errors="replace").split(":", 1)[1].lstrip("/")
        return rest.removeprefix("www.").rstrip("/").casefold()
    return re.sub(r"[\s\-‐-―]+", "", value).casefold()
