"""Names in the ids of entities: the local part of an IRI, where it carries words.

Whether it does is told by the ids of a namespace together, not by a list of sites: numbers, prefixes with a number
(`Q42`), hashes and keys (`/m/0k8z`) have more digits than letters, are alike but for their digits, or change between
letters and digits all the time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import unquote

from stea_fast.formats.literal_values import parse_literal

FEWEST = 20  # ids of a namespace that is judged by itself; smaller ones are judged together
MOST_JUDGED = 10_000  # ids of a namespace
LONGEST_NAME = 4096  # characters; a longer id is no name
MOST_CUTS = 4  # places, from the end, where the local part may begin

LEAST_LETTERS = 0.5  # share of letters among letters and digits
LEAST_SHAPES = 0.5  # share of ids that differ in more than their digits
MOST_CHANGES = 0.15  # share of neighbouring letters and digits of which one is a letter and one a digit

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SEPARATOR = re.compile(r"[/#]")
_ANY_SEPARATOR = re.compile(r"[/#:]")
_DIGITS = re.compile(r"\d+")
_ALPHANUMERIC = re.compile(r"[^\W_]+")
_CHANGE = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")


def local_names(names: Iterable[str]) -> list[str]:
    """The name that is in each id, or "" where there is none: percent-decoded, with blanks for underscores."""
    ids = list(names)
    cuts = list(map(_cuts, ids))
    sizes = Counter(name[: places[-1]] for name, places in zip(ids, cuts, strict=True) if places)
    spaces: dict[str, list[int]] = defaultdict(list)
    locals_: list[str] = []
    for index, (name, places) in enumerate(zip(ids, cuts, strict=True)):
        # AC/DC is a name in the namespace of all others, not DC in a namespace of its own.
        cut = max(places, key=lambda place: (sizes[name[:place]], place), default=None)
        locals_.append("" if cut is None else name[cut:])
        if cut is not None:
            spaces[name[:cut] if sizes[name[:cut]] >= FEWEST else ""].append(index)
    for members in spaces.values():
        if _are_opaque([locals_[index] for index in members]):
            for index in members:
                locals_[index] = ""
    return [_readable(local) for local in locals_]


def _cuts(name: str) -> list[int]:
    """Where the local part of an id may begin, in increasing order; empty for what has no name."""
    if not name or name.startswith("_:") or len(name) > LONGEST_NAME:
        return []
    end = len(name.rstrip("/#"))
    scheme = _SCHEME.match(name)
    start = scheme.end() if scheme else 0
    if scheme and name.startswith("//", start):
        return [match.end() for match in _SEPARATOR.finditer(name, start + 2, end)][-MOST_CUTS:]
    if not scheme and not name.startswith("/"):
        return [0]
    # Perhaps no IRI but a title, such as `Terminator: Dark Fate`: the ids around it tell whether it begins at 0.
    inner = [match.end() for match in _ANY_SEPARATOR.finditer(name, start, end)][-MOST_CUTS:]
    return [0, start, *inner] if scheme else [0, *inner]


def _are_opaque(names: list[str]) -> bool:
    """Whether these ids of one namespace are keys and no words."""
    judged = names[:: max(1, len(names) // MOST_JUDGED)]
    text = "\n".join(judged)
    digits, alphanumeric = sum(map(len, _DIGITS.findall(text))), 0
    neighbours = 0
    for run in _ALPHANUMERIC.findall(text):
        alphanumeric += len(run)
        neighbours += len(run) - 1
    if not digits:
        return False
    letters = alphanumeric - digits
    shapes = len({_DIGITS.sub("0", name) for name in judged})
    return (
        letters < LEAST_LETTERS * alphanumeric
        or shapes < LEAST_SHAPES * len(judged)
        or len(_CHANGE.findall(text)) > MOST_CHANGES * neighbours
    )


def _readable(local: str) -> str:
    if local.startswith('"'):  # a literal that was kept as an entity is its own name
        literal = parse_literal(local.encode("utf-8", "surrogatepass"))
        return local if literal is None else literal[0].decode("utf-8", "surrogatepass")
    if "%" in local:
        with suppress(UnicodeDecodeError):  # where the percent signs do not stand for UTF-8, they stay
            local = unquote(local, errors="strict")
    words = " ".join(local.replace("_", " ").split())
    return words if words.strip("/#:") else ""
