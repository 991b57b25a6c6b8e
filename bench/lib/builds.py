"""Things that take long to build: each is built once, however many processes ask for it."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class BuildFolder:
    """What has been built, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def target(self, name: str, make: Callable[[Path], None]) -> Path:
        """Make a file or folder unless another process has made it."""
        path = self.folder / name
        with _locked(self.folder / f"{name}.lock"):
            if not path.exists():
                part = path.with_name(f"{name}.part")
                make(part)
                part.rename(path)
        return path


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
