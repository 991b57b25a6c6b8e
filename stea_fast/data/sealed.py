"""Test links in an envelope: a method may carry them to `evaluate`, and cannot read them by accident."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from stea_fast._util import validate
from stea_fast._util.arrays import freeze
from stea_fast.types import Array, ArrayLike

ONLY_EVALUATE = "test links are for sf.evaluate only"


class SealedLinks:
    """True (source, target) pairs in an envelope: they say how many they are, and nothing else.

    They have no array protocol, items, attributes or iteration. `evaluate` opens them; whoever needs the links for an
    evaluation of their own calls `stea_fast.data.sealed.reveal`, which no method of the package does.

    Args:
        links: The pairs, int (n, 2).

    Raises:
        TypeError: Anything but their number is asked of them.
    """

    __slots__ = ("_links",)

    def __init__(self, links: ArrayLike) -> None:
        self._links = freeze(validate.columns(links, "links", 2).copy())

    def __len__(self) -> int:
        return len(self._links)

    def __repr__(self) -> str:
        return f"SealedLinks({len(self):,} links, for sf.evaluate only)"

    def _refuse(self, *args: object, **options: object) -> NoReturn:
        raise TypeError(ONLY_EVALUATE)

    __array__ = __getitem__ = __iter__ = __contains__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"SealedLinks has no attribute {name!r}: {ONLY_EVALUATE}")

    def __reduce__(self) -> tuple[type[SealedLinks], tuple[np.ndarray]]:
        return SealedLinks, (self._links,)


def seal(links: ArrayLike | SealedLinks) -> SealedLinks:
    """Put links into an envelope; those that are in one stay in it."""
    return links if isinstance(links, SealedLinks) else SealedLinks(links)


def reveal(links: ArrayLike | SealedLinks) -> Array:
    """What is in the envelope, a read-only int64 [n, 2]; anything else as it is.

    For evaluation only: `tests/test_layering.py` names the modules that may call it.
    """
    return links._links if isinstance(links, SealedLinks) else links
