"""Options that can be misspelt, and are not lost when they are: errors that name the nearest one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def unknown_option(owner: str, name: str, options: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> str:
    """The message about an option that `owner` does not have: the nearest one, or all of them.

    `elsewhere` says of options that other things have how they are written there.
    """
    options = [option for option in options if option not in ("self", "cls")]
    text = f"{owner} has no option {name!r}"
    if elsewhere and name in elsewhere:
        return f"{text}; write {elsewhere[name]}"
    nearest = get_close_matches(name, options, n=1, cutoff=0.7)  # 0.6 would take "colour" for "holdout"
    return f"{text}; did you mean {nearest[0]!r}?" if nearest else f"{text}; it has {', '.join(options)}"


def names_nearest(
    elsewhere: Callable[[], Mapping[str, str]] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: a misspelt keyword of the function becomes a `TypeError` that names the nearest one.

    Python does so itself from version 3.13 on. `elsewhere` is called only when it is needed; see `unknown_option`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        names = list(inspect.signature(function).parameters)
        owner = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in names:
                    raise TypeError(unknown_option(f"{owner}()", name, names, elsewhere() if elsewhere else None))
            return function(*args, **kwargs)

        return checked

    return decorate


def option_class(cls: type[T]) -> type[T]:
    """For a frozen keyword-only dataclass of options: a misspelt one is a `TypeError` that names the nearest."""
    cls.__init__ = names_nearest()(cls.__init__)  # type: ignore[method-assign]
    return cls
