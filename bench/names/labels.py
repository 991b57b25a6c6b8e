"""Synthetic labels of any number: words of syllables, some frequent and most rare, and a second side with other spellings."""

from __future__ import annotations

import numpy as np

ONSETS = "b br c ch d dr f g gr h j k l m n p pr qu r s sh st t th tr v w z".split() + [""]
VOWELS = "a e i o u ai ea ie ou y é ü".split()
CODAS = "n r s l t m nd st ng ck x".split() + [""] * 8
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS_PER_LABEL = ((1, 2, 3, 4), (0.15, 0.4, 0.3, 0.15))


def synthetic_labels(size: int, seed: int = 0) -> tuple[list[str], list[str], np.ndarray]:
    """Labels of two sides and, for every label of the first, the place of its counterpart in the second or -1.

    Four fifths of the labels have a counterpart; half of these are spelt alike, and the others differ by typing errors,
    a missing word or another order.
    """
    rng = np.random.default_rng(seed)
    words = _vocabulary(max(100, size // 4), rng)
    labels1, others = _labels(size, words, rng), _labels(size - size * 4 // 5, words, rng)
    kept = rng.permutation(size)[: size * 4 // 5]
    labels2 = [_respelt(labels1[i], rng) for i in kept] + others
    order = rng.permutation(size)
    place = np.empty(size, dtype=np.int64)
    place[order] = np.arange(size)
    counterpart = np.full(size, -1, dtype=np.int64)
    counterpart[kept] = place[: len(kept)]
    return labels1, [labels2[i] for i in order], counterpart


def _vocabulary(size: int, rng: np.random.Generator) -> list[str]:
    parts = [rng.choice(choices, size=(size, 3)) for choices in (ONSETS, VOWELS, CODAS)]
    syllables = rng.integers(1, 4, size=size)
    return [
        "".join(parts[p][word, s] for s in range(syllables[word]) for p in range(3)).capitalize()
        for word in range(size)
    ]


def _labels(size: int, words: list[str], rng: np.random.Generator) -> list[str]:
    counts = rng.choice(WORDS_PER_LABEL[0], p=WORDS_PER_LABEL[1], size=size)
    ranks = (
        np.minimum(len(words) ** rng.random(counts.sum()), len(words)).astype(np.int64) - 1
    )  # Zipf: P(rank) ~ 1/rank
    ends = np.cumsum(counts).tolist()
    chosen = [words[rank] for rank in ranks.tolist()]
    numbers = np.where(rng.random(size) < 0.1, rng.integers(1, 2100, size=size), 0).tolist()
    return [
        " ".join(chosen[end - count : end]) + (f" {number}" if number else "")
        for end, count, number in zip(ends, counts.tolist(), numbers, strict=True)
    ]


def _respelt(label: str, rng: np.random.Generator) -> str:
    draw = rng.random()
    if draw < 0.5:
        return label
    words = label.split()
    if draw < 0.6 and len(words) > 1:
        return ", ".join([words[-1], " ".join(words[:-1])])
    if draw < 0.7 and len(words) > 1:
        return " ".join(words[:-1])
    for _ in range(1 + int(draw > 0.85)):
        at = int(rng.integers(len(label)))
        label = label[:at] + LETTERS[int(rng.integers(26))] + label[at + int(rng.integers(2)) :]
    return label
