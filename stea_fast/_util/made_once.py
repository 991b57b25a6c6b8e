"""What several threads need of one object, and only one of them makes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary


class MadeOnce:
    """Something made of each of some objects, and kept for as long as the object lives."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._lock = Lock()

    def of(self, source: Any, make: Callable[[], Any], is_valid: Callable[[Any], bool] = lambda made: True) -> Any:
        """What was made of `source`, or is made now; whoever asks meanwhile waits for it.

        Args:
            source: the object.
            make: makes it; nothing is kept if it fails.
            is_valid: whether what was made before still holds; if not, it is made anew.
        """
        with self._lock:
            made = self._made.get(source)
            if made is None or not is_valid(made):
                made = self._made[source] = make()
            return made
