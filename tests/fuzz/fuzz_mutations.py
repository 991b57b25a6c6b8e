"""Files with a few things wrong in them: a pure function of a seed, so that every input can be made again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Files = dict[str, bytes]  # the content of an input by the names of its files

NUMBERS = (0, 1, 2, 7, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
WORDS = (
    b"", b"\0", b"\n", b"\r\n", b"\r", b"\t", b" ", b'"', b'""', b'"""', b"'", b"<", b">", b"<<", b"&", b"&#0;", b"&x;",
    b";", b",", b".", b"#", b"\\", b"\\u", b"\\uD800", b"\\U0010FFFF", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\xf4\x8f\xbf\xbf", b"_:", b"^^", b"@en", b"{", b"}", b"[", b"]", b"-1", b"1e999", b"NaN", b"9" * 30, b"null",
    b"true", b"%", b"urn:stea-fast:n_", b"<!ENTITY x \"y\">", b"<![CDATA[", b"]]>", b"@prefix : <> .", b"\xe2\x80\xa8",
    b"\x85", b"\x1f\x8b", b"\x28\xb5\x2f\xfd",
)  # fmt: skip
LARGEST = 1 << 16  # bytes; an input stays small, so that a thousand of them take a second


def mutated(seeds: Sequence[Files], rng: random.Random) -> Files:
    """One of the seeds with one of its files changed."""
    files = dict(rng.choice(seeds))
    name = rng.choice(list(files))
    other = rng.choice(seeds).get(name, b"")
    content = files[name]
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        content = rng.choice(MUTATIONS)(content, rng, other)
    if rng.random() < 0.01 and len(files) > 1:
        del files[name]
    else:
        files[name] = content[:LARGEST]
    return files


def _place(content: bytes, rng: random.Random) -> int:
    return rng.randrange(len(content) + 1)


def flip_bit(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """One bit."""
    if not content:
        return content
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def set_byte(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """One byte to anything."""
    place = _place(content, rng)
    return content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]


def set_number(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """A binary number of two, four or eight bytes, often where such numbers stand."""
    width = rng.choice((2, 4, 8))
    place = _place(content, rng)
    if rng.random() < 0.7:
        place -= place % width
    value = (rng.choice(NUMBERS) * rng.choice((1, 1, -1))) % 2 ** (8 * width)
    return content[:place] + value.to_bytes(width, rng.choice(("little", "little", "big"))) + content[place + width :]


def insert_word(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """Something that means something in one of the formats; sometimes many times."""
    place = _place(content, rng)
    return content[:place] + rng.choice(WORDS) * rng.choice((1, 1, 1, 2, 200)) + content[place:]


def replace_by_word(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """A few bytes by such a word."""
    place = _place(content, rng)
    return content[:place] + rng.choice(WORDS) + content[place + rng.randrange(1, 9) :]


def remove(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """A piece."""
    begin, end = sorted((_place(content, rng), _place(content, rng)))
    if rng.random() < 0.7:
        end = min(end, begin + rng.randrange(1, 17))
    return content[:begin] + content[end:]


def cut_off(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """The end."""
    return content[: _place(content, rng)]


def repeat(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """A piece, several times."""
    begin, end = sorted((_place(content, rng), _place(content, rng)))
    end = min(end, begin + 256)
    return content[:end] + content[begin:end] * rng.choice((1, 2, 50)) + content[end:]


def move(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """A piece to another place."""
    begin, end = sorted((_place(content, rng), _place(content, rng)))
    piece, rest = content[begin:end], content[:begin] + content[end:]
    place = _place(rest, rng)
    return rest[:place] + piece + rest[place:]


def splice(content: bytes, rng: random.Random, other: bytes) -> bytes:
    """The beginning of one file and the end of another."""
    return content[: _place(content, rng)] + other[_place(other, rng) :]


MUTATIONS: tuple[Callable[[bytes, random.Random, bytes], bytes], ...] = (
    flip_bit, flip_bit, set_byte, set_number, set_number, insert_word, replace_by_word, remove, cut_off, repeat, move,
    splice,
)  # fmt: skip
