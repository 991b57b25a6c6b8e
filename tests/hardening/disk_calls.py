"""Every system call of the writers, watched or made to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stea_fast._util import disk

KINDS = ("create", "open_path", "write", "truncate", "sync", "rename", "remove", "make_folder", "remove_folder")


class Calls:
    """Replaces the calls of `disk` during a `with` block; `act` is asked to make each of them."""

    def __init__(self, act: Callable[[str, int, Callable[[], Any], tuple[Any, ...]], Any]) -> None:
        self.act = act
        self.made: list[str] = []
        self.patch = pytest.MonkeyPatch()

    def __enter__(self) -> Calls:
        for kind in KINDS:
            self.patch.setattr(disk, kind, self._replaced(kind, getattr(disk, kind)))
        return self

    def __exit__(self, *error: object) -> None:
        self.patch.undo()

    def _replaced(self, kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            number = self.made.count(kind)
            self.made.append(kind)
            return self.act(kind, number, lambda: original(*arguments), arguments)

        return call


def watched() -> Calls:
    """Calls that are made as always."""
    return Calls(lambda kind, number, original, arguments: original())


def failing(kind: str, number: int, error: OSError, *, forever: bool = False) -> Calls:
    """The call of this kind with this number fails, or all from there on."""

    def act(called: str, place: int, original: Callable[[], Any], arguments: tuple[Any, ...]) -> Any:
        if called == kind and (place == number or (forever and place > number)):
            raise error
        return original()

    return Calls(act)
