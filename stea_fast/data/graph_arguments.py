"""What the constructor of `KG` makes of its arguments: how many ids there are, a name for each of them, and values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stea_fast._util import validate
from stea_fast._util.name_table import NameTable
from stea_fast.data.attributes import Attributes
from stea_fast.data.graph_checks import fault_of_attributes


def size_of(ids: np.ndarray, size: int | None, name: str, where: str, what: str, maximum: int = validate.MAX_ID) -> int:
    """The number of ids that was given, or else the largest id + 1."""
    if size is None:
        if ids.size == 0:
            raise ValueError(f"triples is empty: give {name}, or at least one triple")
        validate.in_range(ids, where, maximum, what)
        size = int(ids.max()) + 1
    size = validate.count(size, name, minimum=1, maximum=maximum)
    validate.in_range(ids, where, size, what)
    return size


def packed_names(names: Iterable[str] | None, size: int, name: str) -> NameTable | None:
    """The names in a table, one for each id."""
    if names is None:
        return None
    table = NameTable.pack(_strings(names, name))
    if len(table) != size:
        raise ValueError(f"{name} must have one name for each of {size} ids, got {len(table)}")
    return table


def _strings(names: Iterable[str], name: str) -> Iterable[str]:
    if isinstance(names, NameTable):
        return names
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"{name} must be a sequence of strings, got {type(names).__name__}")
    listed = list(names)
    others = [type(item).__name__ for item in listed if not isinstance(item, str)]
    if others:
        raise TypeError(f"{name} must hold strings, got {others[0]}")
    return listed


def checked_attributes(attributes: Attributes | None, num_entities: int) -> Attributes | None:
    """The attributes of a graph of this size, None for those without statements."""
    if attributes is None:
        return None
    if not isinstance(attributes, Attributes):
        raise TypeError(f"attributes must be Attributes, got {type(attributes).__name__}")
    fault = fault_of_attributes(attributes, num_entities)
    if fault is not None:
        raise ValueError(fault)
    return attributes if len(attributes) else None
