"""Names as the page holds them: in order, shortened, and the namespace of an IRI apart from its local part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

MOST_LETTERS = 200  # of a name; what is longer no one reads, and a page of it would not open


def shortened(text: str, most: int = MOST_LETTERS) -> str:
    """The beginning and the end of a text that is longer than `most` letters."""
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def split_name(name: str) -> tuple[str, str]:
    """The namespace of an IRI and its local part; of any other name nothing and the name."""
    if "://" not in name:
        return "", name
    body = name.rstrip("/#")
    cut = max(body.rfind("/"), body.rfind("#")) + 1
    return (name[:cut], name[cut:]) if "://" in name[:cut] and cut > name.index("://") + 3 else ("", name)


def name_element(name: str, suffix: str = "") -> str:
    """The local part, with the whole name behind it; names of any direction of writing keep to themselves."""
    local = split_name(name)[1]
    return f'<bdi title="{escape(shortened(name))}">{escape(shortened(local))}</bdi>{escape(suffix)}'


@dataclass(frozen=True, eq=False)
class NamesInOrder:
    """The names of a graph's entities, in order.

    Attributes:
        order: int64 [n], the entities in the order of their names.
        place: int64 [n], the place of every entity in that order.
        names: the names, in order.
    """

    order: np.ndarray
    place: np.ndarray
    names: list[str]

    @classmethod
    def of(cls, label: Callable[[int], str], count: int) -> NamesInOrder:
        """Of the entities 0, 1, … of a graph."""
        labels = [label(entity) for entity in range(count)]
        order = np.array(sorted(range(count), key=labels.__getitem__), dtype=np.int64)
        place = np.empty(count, dtype=np.int64)
        place[order] = np.arange(count)
        return cls(order, place, [labels[entity] for entity in order.tolist()])

    def place_or_none(self, entities: np.ndarray) -> np.ndarray:
        """The places of entities, and -1 where the entity is -1."""
        return np.where(entities >= 0, self.place[entities], -1)


def packed_names(names: list[str], most: int = MOST_LETTERS) -> dict[str, Any]:
    """Names as JSON: the distinct namespaces, and of every name its namespace's place there and its local part."""
    spaces: dict[str, int] = {}
    space, local = [], []
    for name in names:
        before, after = split_name(name)
        if len(name) > most:
            before = shortened(before, most // 2)
            after = shortened(after, most - len(before))
        space.append(spaces.setdefault(before, len(spaces)))
        local.append(after)
    return {"spaces": list(spaces), "space": space, "local": local}
