"""What the values of an attribute are, decided by the values themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stea_fast.values import parsing

KINDS = ("string", "text", "number", "date", "code", "boolean")
SHARE = 0.9  # of the values that must be of a kind; the others are compared as strings
SAMPLE = 10_000
TEXT_WORDS = 6  # the median of the words of long texts
CODE_DIGITS = 6
YEARS = (1000, 2100)


def kind_of(values: Sequence[str]) -> str:
    """Decide how the values of an attribute are to be compared.

    Args:
        values: The distinct values of the attribute; of more than 10,000 a regular sample is looked at.

    Returns:
        "boolean", "code" (IRIs, and numbers that are names: with leading zeros, or all of one length), "date" (years
        included), "number", "text" (of six words or more) or "string". Nine tenths of the values must be of a kind.
    """
    step = max(1, len(values) // SAMPLE)
    sample = [value.strip() for value in values[::step] if value.strip()]
    if not sample:
        return "string"
    if {"true", "false"} & set(sample) and set(sample) <= {"true", "false", "0", "1"}:
        return "boolean"
    if _share([parsing.IRI.fullmatch(value) is not None for value in sample]) >= SHARE:
        return "code"
    if (found := _numeric_kind(sample)) is not None:
        return found
    if _share(parsing.dates(sample)[1] >= 0) >= SHARE:
        return "date"
    return "text" if np.median([len(value.split(maxsplit=TEXT_WORDS)) for value in sample]) >= TEXT_WORDS else "string"


def _numeric_kind(sample: list[str]) -> str | None:
    numbers = parsing.numbers(sample)
    if _share(np.isfinite(numbers)) < SHARE:
        return None
    digits = [value for value in sample if value.isdigit()]
    if _share([len(value) == 4 and YEARS[0] <= int(value) <= YEARS[1] for value in digits]) * len(
        digits
    ) >= SHARE * len(sample):
        return "date"
    padded = _share([len(value) > 1 and value[0] == "0" for value in digits])
    one_length = len(digits) == len(sample) and len({len(value) for value in digits}) == 1
    if padded >= 1 - SHARE or (one_length and len(digits) > 1 and len(digits[0]) >= CODE_DIGITS):
        return "code"
    return "number"


def _share(is_so: Sequence[bool] | np.ndarray) -> float:
    return float(np.mean(is_so)) if len(is_so) else 0.0
