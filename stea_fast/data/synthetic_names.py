"""Invented names for the entities of a synthetic pair: both graphs spell them alike, up to noise."""

from __future__ import annotations

import numpy as np

from stea_fast._util.arrays import freeze
from stea_fast._util.name_table import NameTable
from stea_fast._util.sparse import offsets_of_counts
from stea_fast.data.labels import Labels

CONSONANTS = np.frombuffer(b"bcdfghjklmnprstvwz", dtype=np.uint8)
VOWELS = np.frombuffer(b"aeiou", dtype=np.uint8)
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)
SYLLABLES = 3  # of a word, at most
WORD = 2 * SYLLABLES
NUM_WORDS = 2
VOCABULARY_SHARE = 0.25  # words per entity: names share words, as those of people and places do
SPACE, NOTHING = 32, 0
ROWS_AT_ONCE = 1 << 18
SOURCE = "invented"


def invented_names(rng: np.random.Generator, num_entities: int) -> np.ndarray:
    """uint8 [n, 13]: two words with a space between them, letters in ASCII and 0 where a word is shorter."""
    vocabulary = _words(rng, max(16, round(VOCABULARY_SHARE * num_entities)))
    names = np.full((num_entities, NUM_WORDS * (WORD + 1) - 1), SPACE, dtype=np.uint8)
    for number in range(NUM_WORDS):
        begin = number * (WORD + 1)
        names[:, begin : begin + WORD] = vocabulary[rng.integers(len(vocabulary), size=num_entities)]
    return names


def _words(rng: np.random.Generator, count: int) -> np.ndarray:
    """uint8 [count, 6]: two or three syllables of a consonant and a vowel."""
    words = np.empty((count, SYLLABLES, 2), dtype=np.uint8)
    words[:, :, 0] = CONSONANTS[rng.integers(len(CONSONANTS), size=(count, SYLLABLES))]
    words[:, :, 1] = VOWELS[rng.integers(len(VOWELS), size=(count, SYLLABLES))]
    words[rng.integers(2, size=count) == 0, -1] = NOTHING
    return words.reshape(count, WORD)


def noisy_labels(rng: np.random.Generator, names: np.ndarray, noise: float) -> Labels:
    """The names as one graph spells them: a share `noise` of the letters becomes another letter or falls out."""
    texts, lengths = [], []
    for begin in range(0, len(names), ROWS_AT_ONCE):
        block = names[begin : begin + ROWS_AT_ONCE].copy()
        chance = rng.random(block.shape)
        letters = (block != NOTHING) & (block != SPACE)
        swapped = letters & (chance < noise / 2)
        block[swapped] = LETTERS[rng.integers(len(LETTERS), size=int(swapped.sum()))]
        block[letters & (chance >= noise / 2) & (chance < noise)] = NOTHING
        present = block != NOTHING
        texts.append(block[present])
        lengths.append(present.sum(axis=1))
    offsets = offsets_of_counts(np.concatenate(lengths))
    table = NameTable(freeze(np.concatenate(texts)), freeze(offsets))
    size = len(names)
    return Labels(np.arange(size, dtype=np.int32), table, size, {SOURCE: size})
