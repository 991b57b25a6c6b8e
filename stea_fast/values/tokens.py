"""Texts as tokens, which are keys of 64 bits: character n-grams within words, or whole words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

GRAM_LENGTHS = (2, 3, 4)  # a key holds four characters of 16 bits
MAX_CHARACTERS = 1_000  # of a name; what is longer is compared by its beginning
MAX_WORDS = 2_000  # of a text, likewise
TEXTS_AT_ONCE = 100_000
END_OF_TEXT, SPACE, FIRST_CHARACTER, NUM_KEYS = 0, 1, 2, 1 << 16

Tokens = tuple[np.ndarray, np.ndarray]  # keys uint64 [offsets[-1]] of all texts, offsets int64 [texts + 1]


def character_grams(texts1: Sequence[str], texts2: Sequence[str]) -> tuple[Tokens, Tokens]:
    """The character n-grams of every text, words being set off by a space on either side as in " word ".

    Keys are exact as long as both sides have fewer than 65,000 different characters; beyond that some share a key.
    """
    alphabet = _alphabet(texts1, texts2)
    return _grams(texts1, alphabet), _grams(texts2, alphabet)


def words(texts1: Sequence[str], texts2: Sequence[str]) -> tuple[Tokens, Tokens]:
    """The words of every text, numbered as they come."""
    numbers: dict[str, int] = {}
    return _words(texts1, numbers), _words(texts2, numbers)


def _words(texts: Sequence[str], numbers: dict[str, int]) -> Tokens:
    keys: list[np.ndarray] = []
    for text in texts:
        found = text.split(maxsplit=MAX_WORDS)[:MAX_WORDS]
        keys.append(np.array([numbers.setdefault(word, len(numbers)) for word in found], dtype=np.uint64))
    return _joined(keys), _offsets([len(key) for key in keys])


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _offsets(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _alphabet(*sides: Sequence[str]) -> np.ndarray:
    """uint16 [largest character + 1]: a small number for every character that occurs."""
    characters = np.unique(np.concatenate([np.unique(codes) for side in sides for codes in _codes(side)] or [[]]))
    characters = characters.astype(np.int64)
    alphabet = np.zeros(int(characters.max(initial=ord(" "))) + 1, dtype=np.uint16)
    alphabet[characters] = FIRST_CHARACTER + np.arange(len(characters)) % (NUM_KEYS - FIRST_CHARACTER)
    alphabet[ord("\n")], alphabet[ord(" ")] = END_OF_TEXT, SPACE
    return alphabet


def _codes(texts: Sequence[str]) -> Iterator[np.ndarray]:
    """The characters of some texts after the other, each text as " text " and a line's end."""
    for begin in range(0, len(texts), TEXTS_AT_ONCE):
        lines = [f" {text[:MAX_CHARACTERS]} \n" for text in texts[begin : begin + TEXTS_AT_ONCE]]
        yield np.frombuffer("".join(lines).encode("utf-32-le"), dtype=np.uint32)


def _grams(texts: Sequence[str], alphabet: np.ndarray) -> Tokens:
    parts, lengths = [], []
    for codes in _codes(texts):
        characters = alphabet[codes]
        keys = _windows(characters)
        text_of = np.cumsum(characters == END_OF_TEXT)  # of a window that begins here
        counts = np.bincount(text_of, weights=(keys > 0).sum(axis=1), minlength=text_of[-1] + 1)[:-1]
        lengths.append(counts.astype(np.int64))
        parts.append(keys[keys > 0])
    return _joined(parts), _offsets(np.concatenate(lengths) if lengths else [])


def _windows(characters: np.ndarray) -> np.ndarray:
    """uint64 [characters, lengths]: the n-gram that begins at each character, 0 where none does.

    A space may only be the first or the last character of one, and the end of a text is in none.
    """
    size = len(characters)
    padded = np.concatenate([characters, np.zeros(max(GRAM_LENGTHS), dtype=characters.dtype)]).astype(np.uint64)
    keys = np.zeros((size, len(GRAM_LENGTHS)), dtype=np.uint64)
    key = padded[:size].copy()
    inside = key > END_OF_TEXT  # no end of text so far, and no space but the first character
    for length in range(2, max(GRAM_LENGTHS) + 1):
        last = padded[length - 1 : length - 1 + size]
        key |= last << np.uint64(16 * (length - 1))
        valid = inside & (last > END_OF_TEXT)
        if length in GRAM_LENGTHS:
            keys[:, GRAM_LENGTHS.index(length)] = np.where(valid, key, 0)
        inside = valid & (last > SPACE)
    return keys
