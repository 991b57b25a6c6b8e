"""Texts that mean the same, spelt the same: Unicode forms, case, white space, punctuation, accents."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from stea_fast._util import validate

TIERS = ("text", "words", "letters")  # from what hardly changes a text to what loses most
CHARACTERS_AT_ONCE = 4_000_000
MAX_MARKS = 30  # combining marks in a row, as in Unicode's stream-safe form: ordering them takes quadratic time
NEWLINE, SPACE, REPLACEMENT = 0x0A, 0x20, 0xFFFD
DROPPED = 0x110000  # above all characters
# Voicing marks of kana and viramas are letters to their readers; marks of class 0 are vowels in Indic scripts.
NO_ACCENTS = frozenset({0, 8, 9})


def normalised(texts: Sequence[str], tier: str = "words") -> list[str]:
    """Spell texts in one way.

    Args:
        texts: The texts; lone surrogates and control characters may be among their characters.
        tier: "text" for Unicode's compatibility form (NFKC), folded case, and single spaces; "words" without
            punctuation and symbols as well; "letters" without accents as well.

    Returns:
        A text for each; it is empty where nothing is left. A character with more than 30 combining marks loses the rest
        of them.
    """
    validate.choice(tier, "tier", TIERS)
    found: list[str] = []
    for chunk in _chunks(texts):
        found += _normalised_chunk(chunk, tier)
    return found


def _chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text) + 1
        if size >= CHARACTERS_AT_ONCE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _normalised_chunk(texts: list[str], tier: str) -> list[str]:
    """All texts at once, as lines: no rule of Unicode reaches across the end of a line."""
    joined = "\n".join(texts)
    if joined.count("\n") != len(texts) - 1:
        joined = "\n".join([text.replace("\n", " ") for text in texts])
    if joined.isascii():
        joined = joined.lower()
    else:
        joined = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _with_few_marks(joined)).casefold())
        if tier == "letters":
            joined = unicodedata.normalize("NFC", _text(_replaced(_codes(unicodedata.normalize("NFD", joined)), tier)))
    return _text(_single_spaces(_replaced(_codes(joined), tier))).split("\n")


def _codes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _text(codes: np.ndarray) -> str:
    return codes.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")


def _with_few_marks(text: str) -> str:
    codes = _codes(text)
    characters, places = np.unique(codes, return_inverse=True)
    combining = np.array([unicodedata.combining(chr(character)) > 0 for character in characters.tolist()], dtype=bool)
    positions = np.arange(len(codes))
    last_base = np.maximum.accumulate(np.where(combining[places], 0, positions))
    return _text(codes[positions - last_base <= MAX_MARKS])


def _replaced(codes: np.ndarray, tier: str) -> np.ndarray:
    characters = np.unique(codes)
    table = np.zeros(int(characters[-1]) + 1 if len(characters) else 0, dtype=np.uint32)
    table[characters] = [_replacement(character, tier) for character in characters.tolist()]
    codes = table[codes]
    return codes[codes != DROPPED]


@cache
def _replacement(code: int, tier: str) -> int:
    """What stands for a character: itself, a space, or nothing."""
    category = unicodedata.category(chr(code))
    if code == NEWLINE:
        return code
    if category == "Cf":  # marks of direction, joiners, soft hyphens
        return DROPPED
    if category[0] == "Z" or category == "Cc":
        return SPACE
    if tier != "text" and category[0] not in "LMN":
        return SPACE
    if tier == "letters" and category == "Mn" and unicodedata.combining(chr(code)) not in NO_ACCENTS:
        return DROPPED
    return REPLACEMENT if category == "Cs" else code


def _single_spaces(codes: np.ndarray) -> np.ndarray:
    """One space between two words, none at the ends of a line."""
    is_space, ends_line = codes == SPACE, codes == NEWLINE
    after_gap = np.concatenate([[True], (is_space | ends_line)[:-1]])
    codes = codes[~(is_space & after_gap)]
    before_end = np.concatenate([codes[1:] == NEWLINE, [True]])
    return codes[~((codes == SPACE) & before_end[: len(codes)])]
