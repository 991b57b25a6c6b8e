"""Literals that would be too much for the RDF library: long ones, and those that entities of XML blow up.

Where literals are left out their content does not matter, and a long one is no value: it is emptied on its way to the
parser. Where they are kept it is an error: a parser holds a whole literal in memory, and that of Turtle ends at 16 MiB.
"""

from __future__ import annotations

import io
import re
from abc import abstractmethod
from pathlib import Path
from typing import IO, Any

from stea_fast.formats.streams import CHUNK
from stea_fast.formats.value_pool import LONGEST_VALUE

LONGEST_LITERAL = LONGEST_VALUE  # bytes; longer ones are emptied unless literals are kept
LONGEST_KEPT = 1 << 24  # bytes; longer ones are an error where literals are kept
LONGEST_ENTITY = 1 << 10  # bytes; entities stand for the namespaces of an ontology
FREE_EXPANSION = 1 << 24  # bytes that entities may add to any file ...
MOST_EXPANSION = 8  # ... and this many times its length

# Complete tokens of Turtle. A string of one quote ends with its line at the latest, and an IRI where it is malformed.
# No repetition stands directly in another one: on a string without an end that would take exponential time.
_TURTLE = re.compile(
    rb"""(?: [^"'#<\\]+ | \\. | \#[^\n]*\n | <[^<>"{}|^`\\\x00-\x20]*(?:>|(?=[<"{}|^`\\\x00-\x20]))
    | \"""[^"\\]*(?:(?:\\.|""?(?!"))[^"\\]*)*\""" | "(?=[^"]|"[^"])[^"\\\n]*(?:\\.[^"\\\n]*)*["\n]
    | '''[^'\\]*(?:(?:\\.|''?(?!'))[^'\\]*)*''' | '(?=[^']|'[^'])[^'\\\n]*(?:\\.[^'\\\n]*)*['\n] )*""",
    re.VERBOSE | re.DOTALL,
)
_INSIDE = {  # of a string, up to its end
    b'"""': re.compile(rb'[^"\\]*(?:(?:\\.|""?(?=[^"]))[^"\\]*)*', re.DOTALL),
    b"'''": re.compile(rb"[^'\\]*(?:(?:\\.|''?(?=[^']))[^'\\]*)*", re.DOTALL),
    b'"': re.compile(rb'[^"\\\n]*(?:\\.[^"\\\n]*)*', re.DOTALL),
    b"'": re.compile(rb"[^'\\\n]*(?:\\.[^'\\\n]*)*", re.DOTALL),
}
_ENTITY = re.compile(rb"""!ENTITY\s*%?\s*([^\s"'&<>]+)\s+"([^"&<]*)"\s*>""")
_ENTITY_ROOM = LONGEST_ENTITY + 256
_REFERENCE = re.compile(rb"&([^;&<\s]{1,256});")


class _Filter(io.RawIOBase):
    """A stream on its way to the parser, piece by piece."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.ended = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self.ended:
            self._ready = memoryview(self.next_piece())
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    @abstractmethod
    def next_piece(self) -> bytes:
        """What comes next, which may be nothing; sets `ended` with the last of it."""


class TurtleWithoutLongLiterals(_Filter):
    """Turtle whose strings of more than `LONGEST_LITERAL` bytes hold nothing but their line ends."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream)
        self._held = b""  # begins with a token that is not complete, or with what follows in a long string
        self._inside: bytes | None = None  # the quotes of the long string
        self._line_ends = 0

    def next_piece(self) -> bytes:
        """Up to a token that is not complete, or to the end of a long string."""
        chunk = self.stream.read(max(CHUNK, len(self._held)))
        text = self._held + chunk
        if not chunk:
            self.ended = True
            return text
        if self._inside is not None:
            return self._skip(text, self._inside)
        end = _end_of_tokens(text)
        self._held = text[end:]
        if len(self._held) < LONGEST_LITERAL:
            return text[:end]
        quotes = next((quotes for quotes in _INSIDE if self._held.startswith(quotes)), None)
        if quotes is None:  # an IRI or a comment: no concern of ours
            self._held = b""
            return text
        self._held, self._inside, self._line_ends = self._held[len(quotes) :], quotes, 0
        return text[:end] + quotes

    def _skip(self, text: bytes, quotes: bytes) -> bytes:
        end = _INSIDE[quotes].match(text).end()  # type: ignore[union-attr]
        self._line_ends += text.count(b"\n", 0, end)
        self._held = text[end:]
        if self._held.startswith(quotes):
            self._held = self._held[len(quotes) :]
        elif not self._held.startswith(b"\n"):  # a backslash or quotes, of which the rest is still to come
            return b""
        self._inside = None
        return b"\n" * min(self._line_ends, LONGEST_LITERAL) + quotes


def _end_of_tokens(text: bytes) -> int:
    """How far the text, which begins outside of strings, consists of complete tokens for certain."""
    if b'"""' not in text and b"'''" not in text:  # then no token is longer than a line
        end = text.rfind(b"\n") + 1
        if len(text) - end < LONGEST_LITERAL:
            return end
    return _TURTLE.match(text).end()  # type: ignore[union-attr]


class CheckedXml(_Filter):
    """RDF/XML that neither its entities nor its literals can make much longer than it is.

    The parser expands entities of entities: a few hundred bytes become gigabytes. Entities that are plain text, as
    ontologies have them for their namespaces, pass as long as they do not add up to a multiple of the file.
    """

    def __init__(self, stream: IO[bytes], path: Path, *, keep: bool) -> None:
        super().__init__(stream)
        self.path, self.keep = path, keep
        self._line, self._length, self._expansion, self._in_text = 1, 0, 0, 0
        self._entities: dict[bytes, int] = {}
        self._last = b""

    def next_piece(self) -> bytes:
        """A piece that has been checked."""
        chunk = self.stream.read(CHUNK)
        self.ended = not chunk
        seen = self._last + chunk
        place = seen.find(b"!ENTITY")
        while place >= 0:
            if len(seen) - place < _ENTITY_ROOM and (more := self.stream.read(_ENTITY_ROOM)):
                chunk, seen = chunk + more, seen + more
            self._declare(seen[place : place + _ENTITY_ROOM], seen.count(b"\n", 0, place))
            place = seen.find(b"!ENTITY", place + 1)
        self._last = seen[-len(b"!ENTITY") + 1 :]
        self._length += len(chunk)
        if self._entities:
            self._expansion += sum(self._entities.get(name, 0) for name in _REFERENCE.findall(chunk))
        if self._expansion > FREE_EXPANSION + MOST_EXPANSION * self._length:
            raise self._error(0, "entities make the file many times as long as it is; write them out")
        checked = self._without_long_text(chunk)
        self._line += chunk.count(b"\n")
        return checked

    def _declare(self, declaration: bytes, lines: int) -> None:
        entity = _ENTITY.match(declaration)
        if entity is None or len(entity[2]) > LONGEST_ENTITY:
            raise self._error(
                lines, f"only entities that are plain text of at most {LONGEST_ENTITY:,} bytes are expanded"
            )
        self._entities[entity[1]] = len(entity[2])

    def _without_long_text(self, chunk: bytes) -> bytes:
        """Without what stands too far behind the last `<`; the end of character data stays.

        What was passed on of such a text before is filled up, so that it is too long for a value and not taken for one.
        """
        limit = LONGEST_KEPT if self.keep else LONGEST_LITERAL
        begin = chunk.find(b"<")
        filling = b"x" * (LONGEST_VALUE + 1) if self._in_text <= limit else b""
        self._in_text += len(chunk) if begin < 0 else begin
        if self._in_text <= limit:
            if begin >= 0:
                self._in_text = len(chunk) - chunk.rfind(b"<")
            return chunk
        if self.keep:
            raise self._error(
                0, f"a literal of more than {limit:,} bytes; leave long ones out ('values'), or all ('drop')"
            )
        text = chunk if begin < 0 else chunk[:begin]
        kept = filling + b"\n" * text.count(b"\n") + (b"]]>" if text.rstrip().endswith(b"]]>") else b"")
        if begin < 0:
            return kept
        self._in_text = len(chunk) - chunk.rfind(b"<")
        return kept + chunk[begin:]

    def _error(self, lines: int, message: str) -> ValueError:
        return ValueError(f"{self.path}:{self._line + lines}: {message}")
