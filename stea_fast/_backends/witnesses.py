"""What counts as one independent witness of a pair (e, e'): the names of the choices, for every backend."""

from __future__ import annotations

WITNESSES = ("neighbour", "statement")


def by_neighbour(witnesses: str) -> bool:
    """Whether the facts about one pair of neighbours are one witness, and not each fact one of its own.

    Raises:
        ValueError: `witnesses` is neither "neighbour" nor "statement".
    """
    if witnesses not in WITNESSES:
        raise ValueError(f"witnesses must be one of {', '.join(map(repr, WITNESSES))}; got {witnesses!r}")
    return witnesses == "neighbour"
