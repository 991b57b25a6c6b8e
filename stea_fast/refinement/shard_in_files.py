"""A shard whose pairs lie in files between its steps, where memory is short.

Within a step it computes in memory as every shard does; then what it keeps is copied to files without names. So of
all shards of a process only those at work, one for each thread, have their pairs in memory; of the others the system
keeps there what it has room for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from stea_fast._util.mapped import moved_to_a_file
from stea_fast.refinement.pair_set import PairSet
from stea_fast.refinement.shard import Shard

LEAST_BYTES = 1 << 14  # a file for less saves nothing
Moved = dict[int, tuple[Any, Any]]  # by the number of an object: itself, and what replaces it wherever it is shared
STEPS = ("begin", "propose", "weigh", "judge", "scale", "finish", "match", "restore")


class ShardInFiles(Shard):
    """As a `Shard`, to the same bits."""

    def move_to_files(self) -> None:
        """Copy to files what has come into memory since it was done last."""
        moved: Moved = {}
        _move(vars(self), moved)
        for own in self.proposers:
            own.indices, own.strongest, own.changed = _in_files(own.state(), moved)


def _then_moved(step: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(step)
    def moving(self: ShardInFiles, *given: Any) -> Any:
        result = step(self, *given)
        self.move_to_files()
        return result

    return moving


for _name in STEPS:
    setattr(ShardInFiles, _name, _then_moved(getattr(Shard, _name)))


def _move(attributes: dict[str, Any], moved: Moved) -> None:
    """Replace the arrays among the attributes of an object, and those of its sets of pairs."""
    for name, value in attributes.items():
        attributes[name] = _in_files(value, moved)


def _in_files(value: Any, moved: Moved) -> Any:
    """The same in files: an array, a tuple of arrays, or a set of pairs, of which its own arrays are replaced."""
    if type(value) is tuple:
        return tuple(_in_files(each, moved) for each in value)
    if id(value) in moved:
        return moved[id(value)][1]
    if isinstance(value, PairSet):
        moved[id(value)] = value, value
        _move(vars(value), moved)
    elif isinstance(value, np.ndarray) and value.nbytes >= LEAST_BYTES:
        moved[id(value)] = value, moved_to_a_file(value, "pairs")
        return moved[id(value)][1]
    return value
