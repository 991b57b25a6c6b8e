"""Text that cannot do anything to a terminal but be read: names come from files of anybody."""

from __future__ import annotations

import re

# Control characters, among them those that begin an escape sequence; marks that turn the direction of all that follows
# on the line; and halves of characters, which cannot be printed at all. Tabs and line ends are left out.
_ACTIVE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_IN_TEXT = re.compile(f"[{_ACTIVE}]")
_IN_LINE = re.compile(f"[\t\n{_ACTIVE}]")


def printable(text: str) -> str:
    """Text of any number of lines."""
    return _IN_TEXT.sub(_spelt, text)


def printable_line(text: str) -> str:
    """A name, or text that must stay on its line."""
    return _IN_LINE.sub(_spelt, text)


def printable_json(text: str) -> str:
    """JSON that says the same: its strings may hold anything, and nothing else in it is active."""
    return _IN_TEXT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _spelt(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
