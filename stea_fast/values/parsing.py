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
UNITS = (1, 12, 372, 372 * 86_400)  # of a year; every month has 31 days, so that precisions nest


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
    """Points in time in seconds, int64 [n], and their precisions, places in `PRECISIONS`, int8 [n]; -1 for no date.

    Years, months, days and times of ISO 8601 and XML Schema are read. A time with a zone is moved to UTC; one without
    is taken to be UTC.
    """
    seconds, precision = np.zeros(len(values), dtype=np.int64), np.full(len(values), -1, dtype=np.int8)
    for place, value in enumerate(values):
        read = DATE.fullmatch(value.strip()) if len(value) <= MAX_LENGTH else None
        found = _moment(read) if read else None
        if found is not None:
            seconds[place], precision[place] = found
    return seconds, precision


def _moment(read: re.Match[str]) -> tuple[int, int] | None:
    year, month, day, hour, minute, second = (
        int(read[part]) if read[part] else None for part in ("year", "month", "day", "hour", "minute", "second")
    )
    assert year is not None
    precision = 0 if month is None else 1 if day is None else 2 if hour is None else 3
    month, day, hour, minute, second = month or 1, day or 1, hour or 0, minute or 0, second or 0
    in_range = 1 <= month <= 12 and 1 <= day <= 31 and hour <= 24 and minute < 60 and second <= 60
    if not in_range or (read["month"] and int(read["month"]) == 0) or (read["day"] and int(read["day"]) == 0):
        return None
    if precision >= 2 and not _is_day(year, month, day):
        return None
    days = (year * 12 + month - 1) * 31 + day - 1
    moment = days * 86_400 + hour * 3600 + minute * 60 + second
    if precision == 3 and read["zone"] not in (None, "Z"):
        sign, digits = read["zone"][0], read["zone"][1:].replace(":", "")
        moment -= (1 if sign == "+" else -1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
    return moment, precision


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        date(year % 400 + 2000, month, day)  # the calendar repeats after 400 years
    except ValueError:
        return False
    return True


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
